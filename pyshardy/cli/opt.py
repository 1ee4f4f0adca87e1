"""`pyshardy-opt`: runs passes over a file, with the command line of upstream's `sdy_opt`.

pyshardy-opt model.mlir -sdy-propagation-pipeline
pyshardy-opt - -sdy-add-data-flow-edges -sdy-aggressive-propagate='propagation-strategy=basic'
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

from pyshardy.cli.expectations import check_expectations, find_expectations
from pyshardy.cli.files import write_whole, writing_to_standard_output
from pyshardy.errors import InvalidModuleError, NotationError, ShardyError, UsageError
from pyshardy.frontend.from_text import STANDARD_INPUT, read_bytes, text_or_bytecode
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics, Severity, source_position
from pyshardy.ir.module import Module
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import PIPELINES, is_pass_or_pipeline, named_passes, parse_option_text, parse_pipeline
from pyshardy.passes.table import PASSES

_FLAGS = {
    "split-input-file": "treat the input as several modules separated by lines of '// -----'",
    "verify-diagnostics": "check the diagnostics against 'expected-...' comments instead of printing modules",
    "allow-unregistered-dialect": "accept ops of unknown dialects, in generic form",
    "mlir-print-op-generic": "print every op in generic form",
    "mlir-print-debuginfo": "print locations",
    "emit-bytecode": "write MLIR bytecode instead of text",
}
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(slots=True)
class Command:
    """A parsed command line.

    Attributes:
        passes: The passes, in command-line order.
        flags: The driver flags that are set.
        source: The input file.
        output: The output file; None is standard output.
    """

    passes: list[Pass] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    source: str = STANDARD_INPUT
    output: str | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of this process."""
    arguments = sys.argv[1:] if argv is None else argv
    return writing_to_standard_output(lambda: run_opt(arguments, sys.stdout.buffer, sys.stderr))


def run_opt(argv: Sequence[str], stdout: BinaryIO, stderr: TextIO) -> int:
    """Run a command line; the exit status: 0, 1 for a failure, 2 for a command line that makes no sense.

    Args:
        argv: The arguments.
        stdout: Where the module goes.
        stderr: Where diagnostics go.
    """
    if any(argument.lstrip("-") in ("help", "h") for argument in argv if argument.startswith("-")):
        stdout.write(help_text().encode())
        return 0
    try:
        command = parse_command(argv)
        content = text_or_bytecode(read_bytes(command.source), command.source)
        if "verify-diagnostics" in command.flags:
            return _verify_diagnostics(command, content, stderr)
        return _transform(command, content, stdout, stderr)
    except ShardyError as error:
        stderr.write(f"error: {error}\n")
        return 2 if isinstance(error, (UsageError, NotationError)) else 1


def parse_command(argv: Sequence[str]) -> Command:
    """Read a command line; flags may have one dash or two.

    Raises:
        UsageError: A flag or pass that does not exist, or a second input file.
    """
    command = Command()
    arguments = iter(argv)
    has_source = False
    for argument in arguments:
        if argument == STANDARD_INPUT or not argument.startswith("-"):
            if has_source:
                raise UsageError("reading the command line", got=f"a second input '{argument}'", needed="one input")
            command.source, has_source = argument, True
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        if name == "o":
            command.output = value if equals else _next(arguments, "-o", "FILE")
        elif name == "pass-pipeline":
            command.passes += parse_pipeline(value if equals else _next(arguments, argument, "TEXT"))
        elif name in _FLAGS:
            _set_flag(command, name, value if equals else "true")
        elif is_pass_or_pipeline(name):
            command.passes += named_passes(name, parse_option_text(value))
        else:
            raise _unknown_flag(argument, name)
    return command


def _next(arguments: Iterator[str], flag: str, what: str) -> str:
    """The argument after a flag that needs one."""
    found = next(arguments, None)
    if found is None:
        raise UsageError("reading the command line", got=f"{flag} without a value", needed=f"{flag} {what}")
    return found


def _set_flag(command: Command, name: str, value: str) -> None:
    if value not in ("true", "false"):
        raise UsageError(f"reading the flag -{name}", got=f"'{value}'", needed="true or false")
    if value == "true":
        command.flags.add(name)
    else:
        command.flags.discard(name)


def _unknown_flag(argument: str, name: str) -> UsageError:
    close = difflib.get_close_matches(name, [*_FLAGS, *PASSES, *PIPELINES, "pass-pipeline"], n=1)
    return UsageError(
        "reading the command line",
        got=f"unknown flag '{argument}'",
        hint=f"-{close[0]}" if close else "--help for the list of passes and flags",
    )


def _transform(command: Command, content: str | bytes, stdout: BinaryIO, stderr: TextIO) -> int:
    results, failed = [], False
    for chunk in _chunks(command, content):
        diagnostics = Diagnostics()
        try:
            results.append(_print(command, _run(command, chunk, diagnostics)))
        except InvalidModuleError as error:
            failed = True
            diagnostics.messages.extend(error.diagnostics or [Diagnostic(Severity.ERROR, str(error))])
        _report(diagnostics.messages, command.source, chunk, stderr)
    if failed:
        return 1
    output = b"\n// -----\n\n".join(results)
    if command.output is None or command.output == STANDARD_INPUT:
        stdout.write(output)
    else:
        write_whole(command.output, output)
    return 0


def _chunks(command: Command, content: str | bytes) -> list[str | bytes]:
    """The modules of the input; each keeps its line numbers by standing behind blank lines."""
    if isinstance(content, bytes) or "split-input-file" not in command.flags:
        return [content]
    chunks: list[str | bytes] = []
    start = 0
    for match in [*_SEPARATOR.finditer(content), None]:
        end = len(content) if match is None else match.start()
        chunks.append("\n" * content.count("\n", 0, start) + content[start:end])
        start = len(content) if match is None else match.end()
    return chunks


def _run(command: Command, chunk: str | bytes, diagnostics: Diagnostics) -> Module:
    allow = "allow-unregistered-dialect" in command.flags
    module = Module.parse(chunk, name=command.source, allow_unregistered_dialects=allow)
    if command.passes:
        module = run_passes(module, command.passes, diagnostics)
        module.verify()
    return module


def _print(command: Command, module: Module) -> bytes:
    if "emit-bytecode" in command.flags:
        return module.bytecode()
    text = module.text(
        generic="mlir-print-op-generic" in command.flags, debug_info="mlir-print-debuginfo" in command.flags
    )
    return text.encode()


def _report(diagnostics: Iterable[Diagnostic], source: str, chunk: str | bytes, stderr: TextIO) -> None:
    lines = chunk.split("\n") if isinstance(chunk, str) else []
    for diagnostic in diagnostics:
        position = source_position(diagnostic.location)
        message = f"{diagnostic.severity.value}: {diagnostic.message}\n"
        if position is None:
            stderr.write(f"{source}: {message}")
        else:
            file, line, column = position
            stderr.write(f"{source if file == '-' else file}:{line}:{column}: {message}")
            if file == "-" and 0 < line <= len(lines):
                stderr.write(f"{lines[line - 1]}\n{' ' * (column - 1)}^\n")
        _report(diagnostic.notes, source, chunk, stderr)


def _verify_diagnostics(command: Command, content: str | bytes, stderr: TextIO) -> int:
    wrong = 0
    for chunk in _chunks(command, content):
        diagnostics = Diagnostics()
        try:
            _run(command, chunk, diagnostics)
        except InvalidModuleError as error:
            diagnostics.messages.extend(error.diagnostics or [Diagnostic(Severity.ERROR, str(error))])
        expected = find_expectations(chunk) if isinstance(chunk, str) else []
        for line, message in check_expectations(expected, diagnostics.messages):
            stderr.write(f"{command.source}:{line}: error: {message}\n")
            wrong += 1
    return 1 if wrong else 0


def help_text() -> str:
    """What `--help` prints."""
    lines = ["usage: pyshardy-opt [FILE | -] [-o FILE] [-PASS[='OPTION=VALUE ...'] ...] [FLAG ...]", "", "flags:"]
    lines += [f"  -{name:<30} {text}" for name, text in _FLAGS.items()]
    lines += [f"  -{'pass-pipeline=TEXT':<30} passes in MLIR's textual form", "", "pipelines:"]
    lines += [f"  -{name}" for name in PIPELINES]
    lines += ["", "passes, in the order in which a program flows through them:"]
    lines += [f"  -{name}" for name in PASSES]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
