"""What is wrong with the outcome of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_STATUSES = (0, 1, 2, 3)
_ERROR = re.compile(r"^(?:[^ \n]+: |[^ \n].*:\d+:\d+: )?error: ", re.MULTILINE)
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Report:
    """What a command did.

    Attributes:
        command: The command line, without the program.
        status: Its exit status.
        out: What it wrote to standard output.
        err: What it wrote to standard error.
        exception: The traceback of what it raised instead of ending; empty if it ended.
        file: What has become of the file that it writes, which was there before: "old", "gone", "whole" or what is
            wrong with it; empty if it writes none.
        leftovers: Files that are there and were not.
        difference: How its result differs from what it should be; empty if it does not, or if that is not known.
        noise: What jaxlib printed beside.
    """

    command: list[str]
    status: int
    out: str = ""
    err: str = ""
    exception: str = ""
    file: str = ""
    leftovers: list[str] = field(default_factory=list)
    difference: str = ""
    noise: str = ""


def problems(report: Report) -> Iterator[str]:
    """What is wrong, each in a line."""
    text = next((text for text in (report.exception, report.err, report.out) if TRACEBACK in text), report.exception)
    if text:
        yield f"traceback: {text.strip().splitlines()[-1]}"
        return
    if report.status not in _STATUSES:
        yield f"exit status: {report.status}"
    errors = len(_ERROR.findall(report.err))
    is_run = report.command[0] == "run"
    is_plan = report.command[0] == "search" and report.status == 1 and report.out  # one that does not fit into memory
    if report.status in (1, 2) and not errors and not is_plan:
        yield f"wrong answer: {_last(report.out)}" if is_run else "message: none"
    if errors and report.status == 0:
        yield "exit status: 0 after an error"
    if errors > 1 and report.command[0] != "opt":
        yield f"message: {errors} errors"
    wanted = "whole" if report.status == 0 else "old"
    if _ERROR.search(report.noise):
        yield f"message: printed by jaxlib: {report.noise.splitlines()[0]}"
    if report.file and report.file != wanted:
        yield f"half-written file: {report.file}, exit status {report.status}"
    if report.leftovers:
        yield f"half-written file: {' '.join(report.leftovers)} left behind"
    if report.difference:
        yield f"wrong answer: {report.difference}"


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "nothing is said")


_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line \d+ in (?P<name>\S+)', re.MULTILINE)
_READERS = (("pyshardy/ir/module.py", "parse"), ("pyshardy/ir/hlo.py", ""))
"""What calls MLIR's reader and XLA's: the end of the file, and the function if not any."""
_READING = (("pyshardy/frontend/from_text.py", ""), ("pyshardy/cli/opt.py", "_transform"))
"""What calls that for a file of the user."""


def is_readers(stack: str) -> bool:
    """Whether a process ended inside jaxlib's reader, over a file of the user, in the process of pyshardy itself."""
    frames = _frames(stack)
    ours = [frame for frame in frames if "pyshardy/" in frame[0]]
    if not ours or any(file.endswith("frontend/isolated.py") for file, _ in ours):
        return False
    return _is_one_of(ours[0], _READERS) and any(_is_one_of(frame, _READING) for frame in ours)


def is_one_devices(stack: str) -> bool:
    """Whether a process ended while XLA compiled or ran the program as it stands, for one device."""
    return "in run_on_one_device" in stack


def is_compilers(stack: str) -> bool:
    """Whether a process was kept by XLA's compiler."""
    return _is_one_of(next(iter(_frames(stack)), ("", "")), (("jax/_src/compiler.py", "backend_compile_and_load"),))


def _frames(stack: str) -> list[tuple[str, str]]:
    """The file and the function of each call of the thread that ended or was kept, the innermost first."""
    thread = stack.rpartition("Current thread")[2].partition("\n\n")[0]
    return [(match["file"], match["name"]) for match in _FRAME.finditer(thread)]


def _is_one_of(frame: tuple[str, str], places: tuple[tuple[str, str], ...]) -> bool:
    return any(frame[0].endswith(file) and (not name or frame[1] == name) for file, name in places)
