"""`--dump-to`, of every command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyshardy.results.dumps import DUMP_VARIABLE

from .command_line import Cli

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
COMMANDS = {
    "propagate": ("02.after_propagation.mlir",),
    "show": ("02.after_propagation.mlir",),
    "explain": ("02.after_propagation.mlir",),
    "partition": ("02.after_propagation.mlir", "04.after_partitioner_passes.mlir"),
    "cost": ("02.after_propagation.mlir", "04.after_partitioner_passes.mlir"),
    "run": ("02.after_propagation.mlir", "05.after_partitioner_passes.mlir"),
}


@pytest.mark.slow_cases("run")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_dumps(cli: Cli, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DUMP_VARIABLE, "elsewhere")
    more = {"cost": ["--hardware", "v5p"], "explain": ["params['w2']"]}.get(command, [])
    found = cli(command, MLP, *more, "--dump-to", tmp_path, "--origins")
    assert (found.status, found.err) == (0, "")
    (program,) = (tmp_path / "shardy").iterdir()
    assert {path.name for path in program.iterdir()} >= {"00.input_module.mlir", *COMMANDS[command]}
    assert "sdy.sharding_origins" in (program / "02.after_propagation.mlir").read_text()
    assert (tmp_path / "index.html").is_file()
    assert os.environ[DUMP_VARIABLE] == "elsewhere" and not Path("elsewhere").exists()


def test_the_next_command_does_not_dump(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DUMP_VARIABLE, raising=False)
    assert cli("show", MLP, "--dump-to", tmp_path).status == 0
    assert cli("show", MLP).status == 0
    assert DUMP_VARIABLE not in os.environ and len(list((tmp_path / "shardy").iterdir())) == 1
    compared = cli("show", tmp_path, "--compare")
    assert (compared.status, "0 differ" in compared.out) == (0, True)


def test_a_place_that_cannot_be_written_to(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = cli("show", MLP, "--dump-to", tmp_path / "file")
    assert found.status == 2 and found.err.startswith("error: writing dumps to ")
