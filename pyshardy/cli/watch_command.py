"""`pyshardy watch`: runs a script unchanged, and shows the programs that JAX compiles in it."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from pyshardy.cli.cost_command import add_by_option
from pyshardy.cli.numbers import number_argument, seconds_argument
from pyshardy.cli.printing import PLAIN_SIGNS, can_show_signs, json_text, program
from pyshardy.errors import ShardyError, UsageError

if TYPE_CHECKING:
    from pyshardy.watching.found import Found
    from pyshardy.watching.running import Ending
    from pyshardy.watching.session import Session

_MOST_DEVICES = 4096
_UNWATCHED = "its Python ignores PYTHONPATH (python -I, python -E), or a launcher cleared it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    parser.usage = "%(prog)s [options] SCRIPT [ARGUMENT ...]\n       %(prog)s [options] -- COMMAND [ARGUMENT ...]"
    text = "the script with its arguments, or behind -- any command that runs Python in this environment"
    parser.add_argument("script", metavar="SCRIPT", nargs=argparse.REMAINDER, help=text)
    text = "show only programs of this name, like train_step or 'train_*' (may be repeated)"
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=text)
    parser.add_argument("--all", action="store_true", help="also show programs on one device, and small ones")
    text = "end the script before it runs the Nth program that is shown"
    parser.add_argument("--stop-after", metavar="N", type=_count, help=text)
    text = "end the script before it runs the first program that is shown, as --stop-after 1"
    parser.add_argument("--dry", action="store_true", help=text)
    text = "let the script see N CPU devices, for a laptop without the chips"
    parser.add_argument("--devices", metavar="N", type=_devices, help=text)
    text = (
        "the chip that prices are for (h100, v5e, ...), and whose compiler is asked if it is installed; or a TOML file "
        "(default: that of the script's devices, or v5p)"
    )
    parser.add_argument("--chip", "--hardware", dest="hardware", metavar="CHIP|FILE", help=text)
    text = "the compiler to ask, like tpu:v5e:2x4, cuda:h100 or cpu; none asks none (default: that of the chip)"
    parser.add_argument("--compiler", metavar="NAME", help=text)
    add_by_option(parser)
    text = "write to FILE, anew with every program, instead of standard error (- is standard output, as the script's)"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="write JSON; needs --output")
    text = "write a page for every program, its StableHLO and index.html to DIR"
    parser.add_argument("--report", metavar="DIR", help=text)
    text = "how long the analysis of a program may take, in seconds (default 600)"
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds_argument, default=600.0, help=text)
    text = "write shardings as P('data') where possible (spec, default), or as in the sdy dialect (sdy)"
    parser.add_argument("--notation", choices=("spec", "sdy"), default="spec", help=text)


def _count(text: str) -> int:
    return number_argument(text, 1, 2**31)


def _devices(text: str) -> int:
    return number_argument(text, 1, _MOST_DEVICES)


def watch(arguments: argparse.Namespace) -> int:
    """Run the script and show its programs; return the script's exit status.

    Raises:
        UsageError: Options contradict each other, or the script cannot be started.
    """
    from pyshardy.watching.inside import Request
    from pyshardy.watching.running import command_of, run
    from pyshardy.watching.session import Session
    from pyshardy.watching.worker import AnalysisTask

    command = command_of(arguments.script)
    _check(arguments)
    stop_after = arguments.stop_after or (1 if arguments.dry else 0)
    request = Request("", tuple(arguments.only), arguments.all, stop_after, arguments.devices or 0)
    speaker = _Speaker(arguments, command)
    task = AnalysisTask(
        "",
        "",
        {
            "hardware": arguments.hardware or "",
            "compiler": arguments.compiler,
            "by": arguments.by or "",
            "tables": {"notation": arguments.notation, "unfold": False},
        },
        width=speaker.width,
        color=speaker.color,
        sources=(tuple(arguments.user_code), tuple(arguments.library)),
    )
    session = Session(task, speaker.tell, arguments.report or "", arguments.timeout)
    speaker.session = session
    try:
        ending = run(command, request, os.environ, session.see)
        if session.waiting and sys.stderr.isatty():
            _say(sys.stderr, f"pyshardy: the script has ended; programs left to analyse: {session.waiting}\n")
    except BaseException:
        session.finish()
        raise
    try:
        session.finish()
        speaker.end(ending)
    except ShardyError as error:  # what the script returned counts
        print(f"error: {error}", file=sys.stderr)
        return ending.status or 1
    return ending.status


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what would fail after the script has run.

    Raises:
        UsageError: A chip, a compiler or a file is wrong.
    """
    from pyshardy.compilers.target import compiler_name, with_chip
    from pyshardy.costing.chips import find_hardware

    if arguments.json and arguments.output is None:
        needed = "--output FILE, or - to write behind the output of the script"
        raise UsageError("reading the command line", got="--json", needed=needed)
    if arguments.hardware is not None:
        find_hardware(arguments.hardware)
    if arguments.compiler is not None:
        compiler_name(with_chip(arguments.compiler, arguments.hardware or ""))
    if arguments.output not in (None, "-") and not os.path.isdir(os.path.dirname(arguments.output) or "."):
        needed = "a place that can be written to"
        raise UsageError(f"writing {arguments.output}", got="no directory for it", needed=needed)
    if arguments.report is not None:
        try:
            os.makedirs(arguments.report, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            needed = "a directory that can be written to"
            raise UsageError(f"writing the report to {arguments.report}", got=reason, needed=needed) from error


@dataclass(slots=True)
class _Speaker:
    """Writes what is found to standard error, or all of it anew to a file.

    Attributes:
        arguments: The command line.
        command: The command that is watched.
        session: What was found so far.
        texts: The texts so far, for a file.
    """

    arguments: argparse.Namespace
    command: Sequence[str]
    session: Session | None = None
    texts: list[str] = field(default_factory=list)

    @property
    def color(self) -> bool:
        """Whether the text is for a terminal with colours."""
        is_plain = self.arguments.output is not None or bool(os.environ.get("NO_COLOR"))
        return not is_plain and sys.stderr.isatty() and can_show_signs(sys.stderr)

    @property
    def width(self) -> int:
        """The width of tables."""
        columns = os.environ.get("COLUMNS", "")
        if re.fullmatch(r"0*[1-9]\d{0,3}", columns, re.ASCII):
            return int(columns)
        from rich.console import Console

        from pyshardy.report.printing import PLAIN_WIDTH

        is_terminal = self.arguments.output is None and sys.stderr.isatty()
        return Console(stderr=True).width if is_terminal else PLAIN_WIDTH

    def tell(self, found: Found) -> None:
        """Say what was found."""
        rule = "─" * 3
        head = f"{rule} pyshardy: {found.title}, {_devices_text(found)} {rule}"
        again = "".join(f"{line}\n" for line in found.again)
        text = again + found.text if not found.error else f"not analysed; the script goes on: {found.error}\n"
        if found.page:
            assert self.arguments.report is not None
            text += f"page: {os.path.join(self.arguments.report, found.page)}\n"
        self._write(f"{head}\n{text}\n")

    def end(self, ending: Ending) -> None:
        """Say what the script did otherwise."""
        from pyshardy.report.printing import Page, plain_text
        from pyshardy.watching.index import table_of_programs

        assert self.session is not None
        if not ending.speaks:
            return
        lines = _last_lines(self.session, ending, self.arguments)
        table = plain_text(Page(table_of_programs(self.session.found).lines), self.width)
        self._write(f"{table}\n" * bool(table) + "".join(f"pyshardy: {line}\n" for line in lines), ending)

    def _write(self, text: str, ending: Ending | None = None) -> None:
        from pyshardy.core.files import write_whole

        assert self.session is not None
        output = self.arguments.output
        stream = {None: sys.stderr, "-": sys.stdout}.get(output)
        if self.arguments.json:
            text = json_text(self.session.to_json(list(self.command), ending)) if ending or stream is None else ""
        elif stream is None:
            self.texts.append(text)
            text = "".join(self.texts)
        if stream is None:
            write_whole(output, text.encode())
        else:
            _say(stream, text)


def _say(stream: TextIO, text: str) -> None:
    """Write a text at once, so that lines of the script do not come between."""
    stream.write(text if can_show_signs(stream) else text.translate(PLAIN_SIGNS))
    stream.flush()


def _devices_text(found: Found) -> str:
    count = found.compiled.devices
    return f"{count} device{'s' * (count != 1)}"


def _next_line(found: Sequence[Found], arguments: argparse.Namespace) -> str:
    """Which command finds what costs most in the program whose devices wait longest; empty if none waits."""
    waiting = {one.number: one.data["cost"]["estimated"]["exposed_seconds"] for one in found if one.data.get("cost")}
    if not any(waiting.values()):
        return ""
    if not arguments.report:
        return "--report DIR keeps the programs, for pyshardy doctor and pyshardy explain"
    slowest = max(found, key=lambda one: waiting.get(one.number, 0.0))
    asked = slowest.data["compiler"]  # so that the figures are those that are shown here
    chosen = (("--hardware", arguments.hardware), ("--compiler", asked if asked != "none" else ""))
    options = [part for name, value in chosen if value for part in (name, value)]
    path = os.path.join(arguments.report, slowest.page.removesuffix(".html") + ".mlir")
    return f"what costs most, and what mends it: {shlex.join([program(), 'doctor', path, *options])}"


def _last_lines(session: Session, ending: Ending, arguments: argparse.Namespace) -> list[str]:
    """The lines at the end: what was shown, what was not, and how to see it."""
    from pyshardy.watching.hidden import hidden_lines

    shown = len(session.found)
    lines = [f"{shown} program{'s' * (shown != 1)} shown" if shown else "no program is shown"]
    if shown and arguments.report:
        lines[0] += f"; {os.path.join(arguments.report, 'index.html')} lists them"
    for name, count in sorted(session.again.items()):
        lines.append(f"{name} was compiled {count + 1} times, alike each time")
    lines += filter(None, [_next_line(session.found, arguments)])
    lines += hidden_lines(session.others(), bool(arguments.only))
    is_silent = not ending.was_watched and not shown and not session.hidden
    if is_silent and ending.status:
        lines.append(f"the script ended with status {ending.status} before it made JAX devices")
    elif is_silent:
        lines.append(f"the script made no JAX devices, or JAX did not load the watcher: {_UNWATCHED}")
    elif not shown and not arguments.devices and not arguments.only:
        lines.append("with --devices 8, the script sees eight CPU devices")
    if ending.stopped and ending.may_have_run:
        lines.append("the script was ended, but JAX did not load the watcher: the last program may have run")
    elif ending.stopped:
        other = "" if arguments.only else "; --only NAME goes on until a program of this name, such as train_step"
        lines.append(f"the script was ended before the last of these ran, as was asked for{other}")
    elif arguments.stop_after or arguments.dry:
        how = f"with status {ending.status}" if ending.status else "by itself"
        lines.append(
            f"the script ended {how}: fewer programs were shown than it was to be ended after"
            if ending.was_watched or not shown
            else f"the script was not ended, as JAX did not load the watcher: {_UNWATCHED}"
        )
    return lines
