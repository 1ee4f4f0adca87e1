"""Several processes run one program together; one that is missing ends in an error, not in silence."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from end_to_end.process_worker import DIES, ENVIRONMENT, LOST_AFTER, PROGRAM, SAYS, WAIT, check, inputs

import pyshardy

WORKER = Path(__file__).with_name("process_worker.py")
SECONDS = 180
"""How long processes may take on a busy machine."""


def free_port() -> int:
    """A port that the system has just given out."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def workers(how: str, ending: str) -> Iterator[list[subprocess.Popen[str]]]:
    """The two processes, which end with the test at the latest."""
    port = free_port()
    commands = [[sys.executable, str(WORKER), how, str(process), str(port), ending] for process in (0, 1)]
    options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, env=os.environ | ENVIRONMENT, **options) for command in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Exit status of a process that has to end in time, what it says, and all that it printed."""
    _, err = process.communicate(timeout=SECONDS)
    said = [ast.literal_eval(line.removeprefix(SAYS)) for line in err.splitlines() if line.startswith(SAYS)]
    return process.returncode, said, err


@pytest.mark.parametrize("how", ["connect", "initialize"])
def test_two_processes_get_the_answer_of_one(how: str) -> None:
    with workers(how, "placed") as processes:
        for status, said, err in map(ended, processes):
            assert (status, said) == (0, ["checked 12 shards"] * 2), err


def test_the_program_is_one_whose_groups_cross_the_processes() -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAM), pyshardy.PartitionOptions(mesh_axes_groups=False))
    groups = re.findall(r"replica_groups = dense<\[(.*?)\]> :", partition.module.text())
    pairs = re.findall(r"\[([\d, ]+)\]", " ".join(groups))
    assert pairs
    for group in pairs:
        assert len({int(device) // 4 for device in group.split(",")}) == 2
    assert {row.kind for row in partition.traffic.collectives} >= {"all_reduce", "all_gather", "collective_permute"}


def test_a_wrong_answer_of_a_process_is_noticed() -> None:
    arrays = inputs()
    right = [arrays[0] @ arrays[1], -arrays[0], arrays[2] * 2]
    outputs = pyshardy.run(pyshardy.partition(pyshardy.load(PROGRAM)), *arrays)
    assert check(outputs, right) == 24
    for index in range(3):
        wrong = [np.array(array) for array in right]
        wrong[index].flat[-1] += 1
        with pytest.raises(AssertionError):
            check(outputs, wrong)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["dies", "dies amid"])
def test_a_process_that_dies_ends_the_others_run(ending: str) -> None:
    """Before it comes to a run, which its silence tells, or while it runs, which broken connections may tell too."""
    with workers("connect", ending) as (survivor, victim):
        assert ended(victim)[0] == DIES
        start = time.monotonic()
        status, said, err = ended(survivor)
        assert (status, said[0], len(said)) == (0, "checked 12 shards", 2), err
        silence = f"running a program in several processes: got no heartbeat from process 1 for {LOST_AFTER} s"
        broken = "running a module: got .*|running a program in several processes: got .*"
        reasons = silence if ending == "dies" else f"{silence}|{broken}"
        needed = "needed all processes of the program to keep running\n  try: look at what "
        assert re.match(f"refused: (?:{reasons}), {needed}", said[1]), said[1]
        assert time.monotonic() - start < SECONDS / 2


def test_processes_with_different_programs_are_refused_before_they_run() -> None:
    with workers("connect", "differs") as processes:
        for status, said, err in map(ended, processes):
            assert (status, len(said)) == (0, 1), err
            assert said[0].startswith(
                "refused: running a program in several processes: got another program, other options or other shapes in "
                "process 1 than in process 0"
            )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ending", ["stops", "stops amid", "stops first", "sleeps"])
def test_a_process_that_hangs_is_an_error_in_the_others_in_time(ending: str) -> None:
    """Stopped before it comes, while it runs, where it is the first; or alive, but somewhere else."""
    victim = 0 if ending == "stops first" else 1
    with workers("connect", ending) as processes:
        start = time.monotonic()
        status, said, err = ended(processes[1 - victim])
        assert (status, said[:1], len(said)) == (0, ["checked 12 shards"], 2), err
        doing = "refused: running a program in several processes: got"
        if ending == "sleeps":
            assert said[1].startswith(
                f"{doing} process 1 did not arrive within {WAIT} s, needed the same runs in all"
            ), err
        else:
            assert said[1].startswith(f"{doing} no heartbeat from process {victim} for {LOST_AFTER} s, needed all"), err
        assert time.monotonic() - start < SECONDS / 2


@pytest.mark.parametrize(
    ("process", "message"), [(0, "process 1 did not connect"), (1, "process 0 does not answer at 127.0.0.1:{port}")]
)
def test_a_process_that_never_comes_is_named(process: int, message: str) -> None:
    port = free_port()
    code = f"import pyshardy; pyshardy.initialize_distributed('127.0.0.1:{port}', 2, {process}, timeout_s=2)"
    start = time.monotonic()
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert found.returncode == 1
    last = found.stderr[found.stderr.index("ShardyError: ") :].splitlines()
    needed = f"joining the processes of a program: got {message.format(port=port)} within 2 s, needed all processes"
    assert last[0] == f"ShardyError: {needed}"
    assert last[1].startswith("  try: start all of them with the same coordinator and number of processes")
    assert time.monotonic() - start < SECONDS / 2
