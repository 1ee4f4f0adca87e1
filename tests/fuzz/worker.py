"""The process that tries cases: one per line of JSON on standard input, a line per command and one at the end back.

It ends itself over nothing; what ends it, or keeps it, is for the other side to see.
"""

from __future__ import annotations

import faulthandler
import importlib
import io
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from pyshardy.cli import main as main_command
from pyshardy.cli import opt
from pyshardy.errors import ShardyError
from pyshardy.frontend.from_text import BYTECODE_MAGIC, load_bytes

from .cases import FILES, OUTPUT, Case, mutant_of, program_of
from .judge import Report

OLD = b"// what was there\n"
MEMORY = 12 * 2**30
_UNREADABLE = "error: reading a module"


def run_command(command: list[str], source: bytes | None = None) -> Report:
    """What a command line does, in the folder that this is run in; `source` is its input if that is not there."""
    output = Path(OUTPUT)
    output.write_bytes(OLD)
    if source is not None:
        Path(command[1]).write_bytes(source)
    before, printed = set(os.listdir()), os.fstat(2).st_size
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    status, exception = -1, ""
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = opt.main(command[1:]) if command[0] == "opt" else main_command.main(command)
        except BaseException:  # noqa: BLE001 (whatever it is, it should not have come)
            exception = traceback.format_exc()
    leftovers = sorted(set(os.listdir()) - before)
    for name in leftovers:
        Path(name).unlink()
    noise = os.pread(2, 2000, printed).decode(errors="replace") if os.fstat(2).st_size > printed else ""
    texts = [stream.buffer.getvalue().decode(errors="replace") for stream in (out, err)]  # type: ignore[attr-defined]
    return Report(command, status, *texts, exception, _file(output, OUTPUT in command), leftovers, noise=noise)


def _file(output: Path, is_written: bool) -> str:
    """What has become of the output."""
    try:
        content = output.read_bytes()
    except OSError:
        return "gone"
    if content == OLD:
        return "old" if is_written else ""
    if not content.endswith(b"\n") and not content.startswith(BYTECODE_MAGIC):
        return "ends in the middle of a line"
    try:
        load_bytes(content, str(output), allow_unregistered_dialects=True)
    except ShardyError as error:
        return f"no module: {str(error).splitlines()[0]}"
    return "whole"


def try_mutant(case: Case, tell: Callable[[dict[str, Any]], None]) -> None:
    """Run a mutant through its commands, and some another way."""
    mutant = mutant_of(case)
    Path(FILES[case.kind]).write_bytes(mutant.content)
    is_readable = True
    for number, command in enumerate(mutant.commands):
        tell({"begins": command})
        report = run_command(command)
        tell({"report": asdict(report)})
        is_readable &= not report.err.startswith(_UNREADABLE)
        if number == 0 and report.status == 0 and mutant.is_compared:
            _compare(command, mutant.content, tell)
        if number == 1 and not is_readable:
            return


def _compare(command: list[str], content: bytes, tell: Callable[[dict[str, Any]], None]) -> None:
    """Run a command again, on the same program as bytecode, and as it is in a process of its own; outputs are equal."""
    expected = Path(OUTPUT).read_bytes()
    bytecode = load_bytes(content, allow_unregistered_dialects=True).bytecode()
    for again, source in (([command[0], "again.mlirbc", *command[2:]], bytecode), ([*command, "--isolate"], None)):
        tell({"begins": again})
        report = run_command(again, source)
        is_equal = report.status == 0 and Path(OUTPUT).read_bytes() == expected
        tell({"report": asdict(report) | {"difference": "" if is_equal else "another output the second time"}})


def try_program(case: Case, tell: Callable[[dict[str, Any]], None]) -> None:
    """Compare the numbers of a program on eight devices with those on one."""
    from end_to_end import numbers_campaign

    family, seed = program_of(case)
    command = ["numbers", family, str(seed)]
    tell({"begins": command})
    try:
        found = numbers_campaign.outcome(family, seed)
        report = Report(command, 0, difference=found.details if found.verdict.name == "DIFFERENT" else "")
        tell({"report": asdict(report), "verdict": found.verdict.value})
    except Exception:  # noqa: BLE001 (a program that fails is a finding)
        tell({"report": asdict(Report(command, -1, exception=traceback.format_exc()))})


def main(plant: str = "") -> None:
    """Try cases until there are no more; `plant` names a fault to try them with, for tests of what notices faults."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what C++ prints is no answer
    main_command.make_parser = cache(main_command.make_parser)  # a quarter of the time of a short command
    if plant:
        getattr(importlib.import_module("tests.fuzz.planted"), plant)()

    def tell(data: dict[str, Any]) -> None:
        channel.write(json.dumps(data) + "\n")
        channel.flush()

    for line in sys.stdin:
        for name in os.listdir():
            with suppress(OSError):
                os.unlink(name)
        case = Case(**json.loads(line))
        (try_program if case.kind == "program" else try_mutant)(case, tell)
        tell({"done": case.name})


if __name__ == "__main__":
    main(*sys.argv[1:])
