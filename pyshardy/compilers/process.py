"""Runs the process that compiles, with a time limit, and reads what it leaves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.plugins import Plugin
from pyshardy.compilers.target import CompilerTarget
from pyshardy.compilers.worker import BEFORE, DECIDED, PARTITIONED, found
from pyshardy.core.children import child_environment, end_child, ending_of
from pyshardy.errors import ShardyError

_DOING = "asking the compiler"
_WORKER = ("-m", "pyshardy.compilers.worker")
_LAST_LINES = 3
"""The number of lines of a log in a message."""
_FAILED_CHECK = re.compile(r"^F\d{4} [\d:.]+ +\d+ \S+\] (.+)", re.MULTILINE)
"""A fatal line of a compiler's log; the stack follows it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to compile.

    Attributes:
        program: The module, as bytecode.
        target: The compiler and its devices.
        open_inputs: For each input, whether the compiler may choose its sharding.
        open_outputs: The same for the outputs.
        to_the_end: Whether to compile to the end; else until the program is partitioned.
        options: Options for the compiler by name, as `jax.jit` takes them.
    """

    program: bytes
    target: CompilerTarget
    open_inputs: tuple[bool, ...]
    open_outputs: tuple[bool, ...]
    to_the_end: bool = False
    options: tuple[tuple[str, Any], ...] = ()


def run_job(job: Job, plugin: Plugin, timeout_s: float) -> CompilerAnswer:
    """Compile a program in a process of its own.

    Args:
        job: The program.
        plugin: The compiler.
        timeout_s: The limit in seconds.

    Raises:
        ShardyError: The compiler refuses the program before it decided on shardings, crashes, or takes too long.
    """
    return run_jobs([job], plugin, timeout_s)[0]


def run_jobs(jobs: Sequence[Job], plugin: Plugin, timeout_s: float) -> list[CompilerAnswer]:
    """Compile programs at the same time, each in a process of its own. No process is left, whatever happens.

    Args:
        jobs: The programs.
        plugin: The compiler.
        timeout_s: The limit in seconds, for all together.

    Raises:
        ShardyError: The compiler refuses one of them, crashes, or takes too long.
    """
    with ExitStack() as stack:
        ends = time.monotonic() + timeout_s
        started = [stack.enter_context(_started(job, plugin)) for job in jobs]
        answers = []
        for job, (folder, child) in zip(jobs, started):
            status = _wait(child, max(0.0, ends - time.monotonic()), timeout_s, f"{plugin.label} for {job.target}")
            answers.append(_read(folder, job, plugin, status))
        return answers


def _facts(job: Job, plugin: Plugin) -> dict[str, Any]:
    target = job.target
    described = (
        (files("pyshardy.compilers") / "gpus" / f"{target.chip}.txt").read_text() if target.platform == "cuda" else ""
    )
    return {
        "platform": target.platform,
        "library": plugin.library,
        "chip": target.chip,
        "topology": target.topology,
        "slices": target.slices,
        "devices": target.devices,
        "description": described,
        "open_inputs": job.open_inputs,
        "open_outputs": job.open_outputs,
        "to_the_end": job.to_the_end,
        "options": job.options,
    }


@contextmanager
def _started(job: Job, plugin: Plugin) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """The worker of a job, and its folder; at the end both are gone, with all that the worker started."""
    with tempfile.TemporaryDirectory(prefix="pyshardy-") as name:
        folder = Path(name)
        (folder / "program.mlirbc").write_bytes(job.program)
        (folder / "job.json").write_text(json.dumps(_facts(job, plugin)))
        command = [sys.executable, *_WORKER, str(folder)]
        environment = child_environment()
        with (folder / "log").open("wb") as log:
            child = subprocess.Popen(  # in a group of its own, to end all that it starts
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        try:
            yield folder, child
        finally:
            end_child(child)


def _wait(child: subprocess.Popen[bytes], left_s: float, timeout_s: float, who: str) -> int:
    """The exit status of a worker.

    Raises:
        ShardyError: It takes too long.
    """
    try:
        return child.wait(left_s)
    except subprocess.TimeoutExpired as error:
        raise ShardyError(
            _DOING, got=f"no answer of {who} in {timeout_s:g} s", needed="more time", hint="--timeout SECONDS"
        ) from error


def _read(folder: Path, job: Job, plugin: Plugin, status: int) -> CompilerAnswer:
    """The answer in a folder.

    Raises:
        ShardyError: There is none, because the compiler refused the program or crashed.
    """
    log = (folder / "log").read_text(errors="replace")
    answer = folder / "answer.json"
    facts = json.loads(answer.read_text()) if answer.is_file() else {}
    error = facts.get("error")
    if not facts:
        error = f"a process that {ending_of(status)}: {_last(log)}"
    dump = folder / "dump"
    given, decided = next(found(dump, BEFORE), None), next(found(dump, DECIDED), None)
    if given is None or decided is None or (job.to_the_end and error is not None):
        raise ShardyError(
            _DOING,
            got=_one_line(error or "no steps of Shardy in its dump"),
            needed=f"a program that {plugin.label} compiles for {job.target}",
            hint="--compiler none does without it",
        )
    partitioned, compiled = next(found(dump, *PARTITIONED), None), folder / "compiled.txt"
    return CompilerAnswer(
        target=job.target,
        label=plugin.label,
        given=given.read_bytes(),
        decided=decided.read_text(),
        partitioned=None if partitioned is None else partitioned.read_bytes(),
        log=log,
        error=None if error is None else _one_line(error),
        memory=facts.get("memory"),
        seconds=facts.get("seconds"),
        compiled=compiled.read_text() if compiled.is_file() else None,
    )


def _last(log: str) -> str:
    """The last words of a process: the check that failed in the compiler, or else the last lines."""
    failed = _FAILED_CHECK.findall(log)
    if failed:
        return f"a fault of the compiler: {failed[-1]}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return "; ".join(lines[-_LAST_LINES:]) or "it wrote nothing"


def _one_line(text: str, most: int = 600) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."
