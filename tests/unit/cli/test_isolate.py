"""`--isolate` on every command: the same answer, and an error for a file that ends its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.frontend import isolated
from pyshardy.ir.module import Module

from ..frontend.hlo_texts import write_dump
from .command_line import Cli
from .opt_command_line import BAD, GOOD, GROUPED, SHARDED, Put, run

pytestmark = pytest.mark.slow

COMMANDS = (["propagate"], ["show", "--json"], ["partition", "--json"], ["run", "--json"])
ENDS = "import os; os.abort()"
MESSAGE = (
    "error: reading a module in a process of its own: got bytes on which the reader process ends with SIGABRT, needed StableHLO "
    "as text or bytecode, or HLO\n  at {}\n"
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_answer_the_same(command: list[str], put: Put, cli: Cli) -> None:
    path = put(SHARDED)
    expected, found = cli(*command, path), cli(*command, path, "--isolate")
    assert (found.status, found.err) == (expected.status, expected.err) == (0, "")
    if command[0] == "propagate":
        assert found.out == expected.out
    bad = put(BAD, "bad.mlir")
    assert cli(*command, bad, "--isolate") == cli(*command, bad)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_file_that_ends_its_reader_is_an_error(
    command: list[str], put: Put, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "_CHILD", ENDS)
    path = put(GOOD)
    assert cli(*command, path, "--isolate") == (1, "", MESSAGE.format(path))


PARTS = f"{SHARDED}// -----\n{BAD}// -----\n{GROUPED}"


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        (SHARDED, ["-sdy-propagation-pipeline"]),
        (SHARDED, ["-emit-bytecode"]),
        (Module.parse(SHARDED).bytecode(), ["-mlir-print-debuginfo"]),
        (PARTS, ["-split-input-file", "-sdy-sharding-group-import"]),
        (PARTS, ["-split-input-file", "-verify-diagnostics", "-sdy-sharding-group-import"]),
        (b"\xff", []),
    ],
)
def test_the_driver_answers_the_same(content: str | bytes, flags: list[str], put: Put) -> None:
    path = put(content)
    assert run(path, *flags, "-isolate") == run(path, *flags)


def test_the_driver_survives(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_CHILD", ENDS)
    for content in (GOOD, Module.parse(GOOD).bytecode()):
        found = run(put(content), "-isolate")
        assert (found.status, found.out) == (1, "")
        assert (
            "error: reading a module in a process of its own: got bytes on which the reader process ends"
            in found.errors
        )


def test_both_files_of_a_dump_are_read_elsewhere(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write_dump(tmp_path)
    assert cli("show", dump, "--compare", "--isolate") == cli("show", dump, "--compare")
    read: list[str] = []
    original = isolated.read_isolated

    def noted(content: bytes, name: str, allow_unregistered_dialects: bool = False) -> tuple[Module, bytes]:
        read.append(Path(name).name)
        return original(content, name, allow_unregistered_dialects)

    monkeypatch.setattr(isolated, "read_isolated", noted)
    assert cli("show", dump, "--compare", "--isolate").status == 0
    assert sorted(read) == ["00.input_module.mlir", "02.after_propagation.mlir"]
