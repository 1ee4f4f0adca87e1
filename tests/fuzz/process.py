"""A worker as the campaign sees it: cases go in, what came of them comes out, also when it hangs or dies."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .alone import ends_convolution, ends_partitioner, ends_reader, environment, runs_for_ever
from .cases import FILES, Case, mutant_of, program_text
from .judge import Report, is_compilers, is_one_devices, is_readers, problems

_CASES = 1000
"""After so many cases a worker is replaced, so that what it keeps does not add up."""
_START_SECONDS = 120
_WAITING = 12
"""So many times as long as a command may take of the processor it may take by the clock, as the machine may be busy."""
_READER = "jaxlib's reader"
_EARLIER = "jaxlib's reader, some bytecode before"
_ONE_DEVICE = "XLA on one device"
_COMPILER = "XLA's compiler, slowly"
_PARTITIONER = "XLA, also with its own partitioner"
_CONVOLUTION = "XLA on one device, over a convolution of shards"
_PROGRAM = "a program without an end"
_COMPILING = 6
"""So many times as long may a program take that XLA compiles too slowly."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        case: What was tried.
        command: The command line.
        problem: What is wrong with it, in a line: the kind, a colon, details.
        details: A traceback or a stack.
        whose: Whose fault it is, if it is none of pyshardy's.
    """

    case: Case
    command: list[str]
    problem: str
    details: str = ""
    whose: str = ""

    @property
    def kind(self) -> str:
        """The kind of problem."""
        return self.problem.partition(":")[0]


def _processor_time(process: int) -> float:
    """The seconds that a process has taken of the processors, as `clock_getcpuclockid` has it; 0 if it has ended."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def _hangs(found: list[Finding]) -> bool:
    return any(finding.kind == "hang" for finding in found)


class Worker:
    """A process that tries cases, and is replaced when it does not come back.

    Args:
        seconds: How long a command may take of the processor.
        plant: The name of a fault in `planted.py`, for tests.
    """

    def __init__(self, seconds: float, plant: str = "") -> None:
        self._seconds, self._plant = seconds, plant
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self._rest, self._tried = b"", 0
        self.verdicts: list[str] = []
        """What came of the programs whose numbers were compared, and of the commands."""

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def try_case(self, case: Case) -> list[Finding]:
        """What is wrong with a case.

        What takes too long is tried once more, as the machine may be busy, and longer if XLA is compiling. A program that
        runs for ever on one device, as it stands, may do so on several.

        Bytecode that ends the process outside of the reader is tried once more too: memory may have been overwritten by
        bytecode before it, and that is the reader's fault. So it is if the reader alone overwrites memory over this
        bytecode, which may be noticed later.
        """
        is_first = self._tried == 0 or self._process is None
        found = self._try(case)
        if _hangs(found) and not is_compilers(found[-1].details):
            found = self._try(case)
        if _hangs(found) and is_compilers(found[-1].details):
            return [replace(found[-1], whose=_COMPILER), *self._try(case, _COMPILING * self._seconds)]
        if _hangs(found) and found[-1].command[:1] == ["run"] and runs_for_ever(mutant_of(case).content):
            return [*found[:-1], replace(found[-1], whose=_PROGRAM)]
        if case.kind == "bytecode" and any(_is_late(finding) for finding in found):
            again = found if is_first else self._try(case)
            if not any(finding.kind == "signal" for finding in again):
                return [replace(found[-1], whose=_EARLIER), *again]
            return again if case.is_isolated else [_of_reader_if_alone(finding) for finding in again]
        return [_of_xla_if_alone(finding) for finding in found]

    def _try(self, case: Case, seconds: float = 0) -> list[Finding]:
        seconds = seconds or self._seconds
        process = self._started()
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended since the last case: there is no answer, then
            process.stdin.write(json.dumps(asdict(case)).encode() + b"\n")
            process.stdin.flush()
        command, found = ["(making it)"], list[Finding]()
        first = _START_SECONDS if self._tried == 0 else seconds
        self._tried += 1
        while True:
            try:
                answer = self._answer(seconds if command[0] != "(making it)" else first)
            except TimeoutError as error:
                stack = self._stack_and_end()
                return [*found, _ended(case, command, f"hang: {error}", stack)]
            if answer is None:
                status, stack = self._status_and_end()
                return [*found, _ended(case, command, f"signal: {status}", stack)]
            if "done" in answer:
                return found
            command = answer.get("begins", command)
            if "report" in answer:
                report = Report(**answer["report"])
                self.verdicts.append(answer.get("verdict", f"{report.command[0]} {report.status}"))
                found += [
                    Finding(case, command, problem, report.exception or report.err) for problem in problems(report)
                ]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._tried >= _CASES:
            self._end()
        if self._process is None:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process is there)
            arguments = [sys.executable, "-m", "tests.fuzz.worker", *([self._plant] if self._plant else [])]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log}
            folder = self._folder.name  # and a session of its own: an interruption is for the campaign
            self._process = subprocess.Popen(arguments, cwd=folder, env=environment(), start_new_session=True, **pipes)
            self._rest, self._tried = b"", 0
        return self._process

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        """The next line of the worker; None if it has ended; `TimeoutError` if it takes too long."""
        assert self._process is not None and self._process.stdout is not None
        channel, process = self._process.stdout.fileno(), self._process.pid
        deadline, limit = time.monotonic() + _WAITING * seconds, _processor_time(process) + seconds
        while b"\n" not in self._rest:
            if select.select([channel], [], [], 0.2)[0]:
                more = os.read(channel, 1 << 20)
                if not more:
                    return None
                self._rest += more
            elif _processor_time(process) > limit:
                raise TimeoutError(f"over {seconds:g} s of the processor")
            elif time.monotonic() > deadline:
                raise TimeoutError(f"over {_WAITING * seconds:g} s")
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stack_and_end(self) -> str:
        """Where the worker is, as far as it says; it is ended."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        return self._end()

    def _status_and_end(self) -> tuple[str, str]:
        assert self._process is not None
        status = self._process.wait()
        return (signal.Signals(-status).name if status < 0 else f"none, but exit status {status}"), self._end()

    def _end(self) -> str:
        """End the worker; the end of what it wrote to standard error."""
        if self._process is None:
            return ""
        self._process.kill()
        self._process.communicate()
        self._process = None
        self._log.seek(0)
        log = self._log.read().decode(errors="replace")
        self._log.close()
        return log[-20_000:]


def _ended(case: Case, command: list[str], problem: str, stack: str) -> Finding:
    whose = ""
    if not case.is_isolated and "--isolate" not in command and is_readers(stack):
        whose = _READER
    elif is_one_devices(stack):
        whose = _ONE_DEVICE
    return Finding(case, command, problem, stack, whose)


def _of_reader_if_alone(finding: Finding) -> Finding:
    """The finding; the reader's if it is a signal, and the reader alone ends a process over the same bytecode."""
    if not _is_late(finding):
        return finding
    return replace(finding, whose=_READER) if ends_reader(mutant_of(finding.case).content) else finding


def _of_xla_if_alone(finding: Finding) -> Finding:
    """The finding; XLA's if it is a signal of `run`, and XLA's own partitioner ends a process over the program too.

    That of a random program is XLA's if a single convolution of its shards ends a process that has one device.
    """
    if not _is_late(finding):
        return finding
    if finding.case.kind == "program":
        ends = ends_convolution(program_text(finding.case).encode())
        return replace(finding, whose=_CONVOLUTION) if ends else finding
    if finding.command[:1] != ["run"]:
        return finding
    ends = ends_partitioner(mutant_of(finding.case).content, finding.command[2:])
    return replace(finding, whose=_PARTITIONER) if ends else finding


def _is_late(finding: Finding) -> bool:
    return finding.kind == "signal" and not finding.whose


def tried(cases: Iterator[Case], workers: Mapping[str, Worker]) -> Iterator[tuple[Case, list[Finding]]]:
    """What is wrong with each of some cases; a mutant that ends the reader is tried again in a process of its own.

    Every kind has a worker, so that what bytecode does to the memory of one is no fault of the others.
    """
    for case in cases:
        found = workers[case.kind].try_case(case)
        yield case, found
        if any(finding.whose == _READER for finding in found):
            again = Case(case.kind, case.seed, is_isolated=True)
            yield again, workers["isolated"].try_case(again)


def save(finding: Finding, folder: Path) -> Path:
    """Write a finding and its input to a folder of its own; that folder."""
    own = folder / f"{finding.case.name}-{finding.kind.replace(' ', '-')}"
    own.mkdir(parents=True, exist_ok=True)
    text = f"{finding.problem}\n{' '.join(finding.command)}\n\n{finding.details}\n"
    (own / "finding.txt").write_text(text, errors="backslashreplace")
    if finding.case.kind == "program":
        with suppress(Exception):  # the finding may be that it cannot be made
            (own / "in.mlir").write_text(program_text(finding.case))
    else:
        (own / FILES[finding.case.kind]).write_bytes(mutant_of(finding.case).content)
    return own
