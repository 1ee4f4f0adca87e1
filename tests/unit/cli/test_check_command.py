"""`pyshardy check`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pyshardy.report.lock_files import load_lock

from .command_line import Cli

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
GOLDEN = Path(__file__).parents[2] / "golden" / "differences"


@pytest.fixture
def lock(cli: Cli, tmp_path: Path) -> Path:
    """The lock of the example."""
    path = tmp_path / "mlp.lock"
    assert cli("lock", MLP, "-o", path).status == 0
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The example with another annotation."""
    path = tmp_path / "other.mlir"
    path.write_text(MLP.read_text().replace('[{}, {"model"}]', '[{"model"}, {}]'))
    assert path.read_text() != MLP.read_text()
    return path


def test_the_same_program(cli: Cli, lock: Path) -> None:
    found = cli("check", MLP, lock)
    assert (found.status, found.err) == (0, "")
    assert " ".join(found.out.split()) == f"{MLP} is sharded as {lock} says"  # a long path goes on the next line
    data = json.loads(cli("check", MLP, lock, "--json").out)
    assert (data["equal"], data["changes"], data["broken_budgets"]) == (True, [], [])


@pytest.mark.parametrize("width", [80, 200])
def test_another_program(cli: Cli, lock: Path, other: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(lock.parent)
    found = cli("check", "other.mlir", "mlp.lock")
    assert (found.status, found.err) == (1, "")
    assert found.out == (GOLDEN / f"lock_{width}.txt").read_text()


def test_as_json(cli: Cli, lock: Path, other: Path) -> None:
    found = json.loads(cli("check", other, lock, "--json").out)
    assert (found["version"], found["equal"], found["program"], found["lock"]) == (1, False, str(other), str(lock))
    first = found["changes"][0]
    assert (first["kind"], first["name"], first["verb"]) == ("input", "params['w1']", "changed")
    assert first["before"] == ["f32[64, 256] P(None, 'model') (annotated)"]
    assert first["why"][0] == 'dimension 0: "model", given by its own annotation'
    (sent,) = [change for change in found["changes"] if change["kind"] == "collective"]
    assert (sent["bytes_before"], sent["bytes_after"], sent["places"]) == (2048, 8192, ["other.mlir:8"])
    assert [total["name"] for total in found["totals"]][:4] == [
        "inputs", "outputs", "sent in collectives", "peak memory (estimated)",
    ]  # fmt: skip


@pytest.mark.slow
def test_options_may_stand_anywhere(cli: Cli, lock: Path) -> None:
    assert cli("check", MLP, "--json", lock) == cli("check", "--json", MLP, lock)
    assert cli("check", MLP, "--shard", "x=data,None", lock).status == 0
    sizes = ("--layers", "1", "--width=64", "--vocabulary", "64")
    assert cli("check", "example", *sizes, lock, "--max-memory", "1kB") == cli(
        "check", "example", lock, *sizes, "--max-memory", "1kB"
    )
    assert cli("check", "example", *sizes, lock).status == 1
    found = cli("check", MLP, lock, lock)
    assert (found.status, found.out) == (2, "") and "unknown argument" in found.err


def test_budgets_of_the_command_line_and_of_the_lock(cli: Cli, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    found = cli("check", MLP, lock, "--max-bytes", "1kB", "--no", "all_reduce over model", "--max-memory", "1GiB")
    assert found.status == 1
    assert found.out.splitlines() == [
        f"{MLP} is sharded as {lock} says, but 2 budgets are broken",
        "! bytes sent per device: 2.0 KiB, and 1kB are allowed",
        "! no all_reduce over model is allowed: there is 1 at mlp.mlir:10, 2.0 KiB",
    ]
    cli("lock", MLP, "-o", lock, "--max-memory", "1KiB")
    assert cli("check", MLP, lock).status == 1
    assert cli("check", MLP, lock, "--max-memory", "1GiB").status == 0


def test_other_versions_are_named_where_something_differs(cli: Cli, lock: Path, other: Path) -> None:
    old = load_lock(lock)
    lock.write_text(lock.read_text().replace(f'jaxlib = "{old.jaxlib}"', 'jaxlib = "0.0.1"'))
    assert cli("check", MLP, lock).status == 0
    found = cli("check", other, lock)
    assert f"the lock is from jaxlib 0.0.1, this is jaxlib {old.jaxlib}" in " ".join(found.out.split())


@pytest.mark.slow
def test_the_compiler_of_the_lock_is_asked(cli: Cli, lock: Path) -> None:
    cli("lock", MLP, "-o", lock, "--compiler", "cpu")
    written = load_lock(lock)
    assert written.compiler == "cpu" and written.compiled_by.startswith("XLA for CPUs (jaxlib ")
    assert cli("check", MLP, lock, "--no-replication").status == 0
    assert load_lock(lock) == written and cli("lock", MLP, "-o", lock).status == 0
    assert load_lock(lock) == written
    found = cli("check", MLP, lock, "--compiler", "none", "--no", "all_reduce")
    assert found.status == 1
    refused = cli("check", MLP, lock, "--compiler", "none", "--no-replication")
    assert refused.status == 2 and "checking a program: got no_replication without a compiler" in refused.err


@pytest.mark.parametrize("content", ["", "version = 1", "\x00", "[]", "{}", "version = 1\ninputs = 3"])
def test_what_is_no_lock(cli: Cli, lock: Path, content: str) -> None:
    lock.write_text(content)
    found = cli("check", MLP, lock)
    assert (found.status, found.out) == (2, "") and found.err.startswith("error: reading a lock")
    assert found.err.count("error:") == 1


def test_no_lock(cli: Cli) -> None:
    found = cli("check", MLP)
    assert found == (
        2,
        "",
        "error: reading the command line: got no lock, needed the lock behind the program: pyshardy check FILE LOCK\n",
    )
    found = cli("check", MLP, "nowhere.lock")
    assert found.status == 2 and "got nowhere.lock: no such file or directory" in found.err


@pytest.mark.slow
@pytest.mark.parametrize("is_other", [False, True])
def test_the_job_on_the_page(lock: Path, other: Path, is_other: bool) -> None:
    page = (Path(__file__).parents[3] / "docs" / "locks.md").read_text()
    script = textwrap.dedent(page.partition("        run: |\n")[2].partition("```\n\n")[0])
    script = script.replace("${{ github.event.number }}", "7")
    assert "pyshardy check step.mlir shardings.lock" in script and "${{" not in script
    folder = lock.parent
    shutil.copy(other if is_other else MLP, folder / "step.mlir")
    shutil.copy(lock, folder / "shardings.lock")
    tools = {"pyshardy": f'exec {sys.executable} -m pyshardy "$@"', "gh": 'echo "$@" >> said_to_gh'}
    for name, text in tools.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parents[3])}
    found = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (is_other, "")
    said = (folder / "said_to_gh").read_text()
    assert said == f"pr comment 7 --edit-last{' --create-if-none' * is_other} --body-file comment.md\n"
    comment = (folder / "comment.md").read_text()
    assert comment.startswith("```diff\nstep.mlir ") and comment.endswith("```\n")
    assert ("\n+   f32[64, 256] P('model') (annotated)\n" in comment) == is_other
