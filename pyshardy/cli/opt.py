"""`pyshardy-opt`: runs passes over a file, with the command line of upstream's `sdy_opt`.

pyshardy-opt model.mlir -sdy-propagation-pipeline
pyshardy-opt - -sdy-add-data-flow-edges -sdy-aggressive-propagate='propagation-strategy=basic'
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import BinaryIO, TextIO

from pyshardy.cli.files import OUT_OF_MEMORY, writing_to_standard_output
from pyshardy.cli.instruments import Instruments, InvalidAfterPass, Timer, find_invalid_pass, print_op
from pyshardy.cli.opt_command import (
    DEFAULT_SEPARATOR,
    Command,
    asks_for_help,
    help_text,
    parse_command,
    passes_text,
)
from pyshardy.core.files import write_whole
from pyshardy.core.text import STANDARD_INPUT
from pyshardy.errors import InvalidModuleError, NotationError, ShardyError, UnsupportedVersionError, UsageError
from pyshardy.frontend.from_text import (
    is_bytecode,
    load_bytes,
    read_bytes,
    read_text_or_bytecode,
    text_in,
    text_or_bytecode,
)
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics, Severity
from pyshardy.ir.locations import THIS_FILE, source_position
from pyshardy.ir.module import Module
from pyshardy.ir.readable import check_readable
from pyshardy.passes.options import format_options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of this process."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return writing_to_standard_output(lambda: run_opt(arguments, sys.stdout.buffer, sys.stderr))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def run_opt(argv: Sequence[str], stdout: BinaryIO, stderr: TextIO, stdin: BinaryIO | None = None) -> int:
    """Run a command line; return the exit status: 0, 1 for a failure, 2 for a wrong command line.

    Args:
        argv: The arguments.
        stdout: Where the module goes.
        stderr: Where diagnostics, dumps and times go.
        stdin: The input for `-`; None for that of the process.
    """
    if asks_for_help(argv):
        stdout.write(help_text().encode())
        return 0
    timer = Timer()
    try:
        command = parse_command(argv)
        if "show-passes" in command.flags:
            stdout.write(passes_text().encode())
            return 0
        if "dump-pass-pipeline" in command.flags:
            stderr.write(_pipeline_text(command))
        status = _Driver(command, timer, stderr).run(_read(command, stdin), stdout)
    except ShardyError as error:
        stderr.write(f"error: {error}\n")
        return 2 if isinstance(error, (UsageError, NotationError)) else 1
    except MemoryError:
        stderr.write(f"error: {OUT_OF_MEMORY}\n")
        return 1
    if "mlir-timing" in command.flags:
        timer.print_table(stderr)
    return status


def _read(command: Command, stdin: BinaryIO | None) -> str | bytes:
    is_given = stdin is not None and command.source == STANDARD_INPUT
    content = stdin.read() if stdin is not None and is_given else read_bytes(command.source)
    if "isolate" in command.flags:
        text = text_in(content)
        if text is not None or is_bytecode(content):
            return content if text is None else text
        return read_text_or_bytecode(
            content, command.source, "allow-unregistered-dialect" in command.flags, isolate=True
        )[1]
    return text_or_bytecode(content, command.source)


def _pipeline_text(command: Command) -> str:
    """The passes as `-dump-pass-pipeline` prints them and `-pass-pipeline` reads them."""
    passes = []
    for pass_ in command.passes:
        options = format_options(pass_)
        passes.append(pass_.name + (f"{{{options}}}" if options else ""))
    return f"Pass Manager with {len(passes)} passes:\nbuiltin.module({','.join(passes)})\n"


class _Driver:
    """One run of a command."""

    def __init__(self, command: Command, timer: Timer, stderr: TextIO) -> None:
        self._command = command
        self._timer = timer
        self._stderr = stderr

    def run(self, content: str | bytes, stdout: BinaryIO) -> int:
        """Run the passes over all modules, and write those without failures; return the exit status.

        As in MLIR, standard output gets the good modules even if others failed, but a file then stays unchanged.
        """
        command = self._command
        run_chunk = self._run_and_compare if command.is_verifying_diagnostics else self._run_and_report
        results, failed = list[bytes | None](), False
        for chunk in _chunks(command, content):
            result, has_failed = run_chunk(chunk)
            failed |= has_failed
            results.append(result)
        output = self._join(results)
        if command.output is None or command.output == STANDARD_INPUT:
            stdout.write(output)
        elif not failed:
            write_whole(command.output, output)
        return int(failed)

    def _join(self, results: Sequence[bytes | None]) -> bytes:
        """The modules with their separators, as in MLIR; failed modules also get separators."""
        marker = self._command.values.get("output-split-marker", DEFAULT_SEPARATOR)
        end = b"" if "emit-bytecode" in self._command.flags else b"\n"
        joined = _encoded(f"{marker}\n").join(b"" if result is None else result + end for result in results)
        return joined.removesuffix(end) if results[-1] is not None else joined

    def _run_and_report(self, chunk: str | bytes) -> tuple[bytes | None, bool]:
        """The module after the passes, or None, and whether it failed."""
        result, messages, broken_by = self._run_chunk(chunk)
        if broken_by is not None:
            messages.append(Diagnostic(Severity.NOTE, f"the module is invalid after the pass {broken_by}"))
        self._report(messages, chunk)
        return result, result is None

    def _run_and_compare(self, chunk: str | bytes) -> tuple[bytes | None, bool]:
        """The module after the passes, or None, and whether the diagnostics differ from the expected ones."""
        from pyshardy.cli.expectations import check_expectations, find_expectations

        result, messages, _ = self._run_chunk(chunk)
        only = self._command.values["verify-diagnostics"] == "only-expected"
        try:
            expected = find_expectations(chunk) if isinstance(chunk, str) else []
            problems = list(check_expectations(expected, messages, only_expected=only))
        except InvalidModuleError as error:
            problems = list(error.diagnostics)
        self._report(problems, chunk)
        return result, bool(problems)

    def _run_chunk(self, chunk: str | bytes) -> tuple[bytes | None, list[Diagnostic], str | None]:
        """The module after the passes, or None; all diagnostics; the pass that left an invalid module, if any."""
        diagnostics = Diagnostics()
        try:
            return self._print(self._transform(chunk, diagnostics)), diagnostics.messages, None
        except InvalidModuleError as error:
            messages = [*diagnostics.messages, *(error.diagnostics or [Diagnostic(Severity.ERROR, str(error))])]
            return None, messages, error.pass_name if isinstance(error, InvalidAfterPass) else None

    def _transform(self, chunk: str | bytes, diagnostics: Diagnostics) -> Module:
        command, timer = self._command, self._timer
        allow = "allow-unregistered-dialect" in command.flags
        with timer.step("parse"):
            if "isolate" in command.flags:
                content = chunk.encode() if isinstance(chunk, str) else chunk
                module = load_bytes(content, command.source, allow, isolate=True)
            else:
                module = Module.parse(chunk, name=command.source, allow_unregistered_dialects=allow)
        if not command.passes:
            return module
        result = Instruments(command, module, timer, self._stderr).run(diagnostics)
        if "verify-each" not in command.values:
            with timer.step("write and verify"):
                try:
                    result.verify()
                except InvalidModuleError:
                    with suppress(UnsupportedVersionError):  # of an intermediate module, which need not be written
                        find_invalid_pass(module, command)
                    raise
        return result

    def _print(self, module: Module) -> bytes:
        with self._timer.step("print"):
            if "emit-bytecode" in self._command.flags:
                return module.bytecode()
            with module.context:
                text = print_op(module.mlir.operation, self._command)
            if "mlir-pretty-debuginfo" not in self._command.flags:
                check_readable(text, module.context)
            return text.encode()

    def _report(self, diagnostics: Iterable[Diagnostic], chunk: str | bytes) -> None:
        lines = chunk.split("\n") if isinstance(chunk, str) else []
        self._report_lines(diagnostics, lines)

    def _report_lines(self, diagnostics: Iterable[Diagnostic], lines: Sequence[str]) -> None:
        source, stderr = self._command.source, self._stderr
        for diagnostic in diagnostics:
            position = source_position(diagnostic.location)
            message = f"{diagnostic.severity.value}: {diagnostic.message}\n"
            if position is None:
                stderr.write(f"{source}: {message}")
            else:
                file, line, column = position
                stderr.write(f"{source if file == THIS_FILE else file}:{line}:{column}: {message}")
                if file == THIS_FILE and 0 < line <= len(lines):
                    stderr.write(_caret(lines[line - 1], column))
            self._report_lines(diagnostic.notes, lines)


def _encoded(text: str) -> bytes:
    """A text from the command line as bytes; invalid UTF-8 is preserved."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace")


def _caret(line: str, column: int) -> str:
    """A line, and below it a caret at a column; MLIR counts columns in bytes from 1."""
    line = line.rstrip("\r")
    before = line.encode()[: column - 1].decode(errors="ignore")
    space = "".join("\t" if character == "\t" else " " for character in before)
    return f"{line}\n{space}{' ' * max(column - 1 - len(line.encode()), 0)}^\n"


def _chunks(command: Command, content: str | bytes) -> list[str | bytes]:
    """The modules of the input. Blank lines before each keep its line numbers."""
    if isinstance(content, bytes) or command.separator is None:
        return [content]
    separator = re.compile(rf"^{re.escape(command.separator)}.*$", re.MULTILINE)
    chunks: list[str | bytes] = []
    start = 0
    for match in [*separator.finditer(content), None]:
        end = len(content) if match is None else match.start()
        chunks.append("\n" * content.count("\n", 0, start) + content[start:end])
        start = len(content) if match is None else match.end()
    return chunks


if __name__ == "__main__":
    sys.exit(main())
