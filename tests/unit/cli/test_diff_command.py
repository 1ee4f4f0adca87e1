"""`pyshardy diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command_line import Cli, Outcome

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
GOLDEN = Path(__file__).parents[2] / "golden" / "differences"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The example with another annotation."""
    path = tmp_path / "other.mlir"
    path.write_text(MLP.read_text().replace('[{}, {"model"}]', '[{"model"}, {}]'))
    assert path.read_text() != MLP.read_text()
    return path


@pytest.mark.parametrize("width", [80, 200])
def test_an_edit_as_tables(cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(MLP.parents[1])
    found = cli("diff", "examples/mlp.mlir", "--edit", "params['w1']=model,None", "--edit", "x")
    assert (found.status, found.err) == (0, "")
    assert found.out == (GOLDEN / f"mlp_{width}.txt").read_text()


def test_two_files(cli: Cli, other: Path) -> None:
    assert cli("diff", MLP, other).status == 1
    found = json.loads(cli("diff", MLP, other, "--json").out)
    edited = json.loads(cli("diff", MLP, "--edit", "params['w1']=model,None", "--json").out)
    assert found["totals"] == edited["totals"]
    names = [
        [(one["kind"], one["before"], one["after"], one["shape"]) for one in data["changes"]]
        for data in (found, edited)
    ]
    assert names[0] == names[1] != []


def test_the_same_file_twice(cli: Cli) -> None:
    found = cli("diff", MLP, MLP)
    assert found.status == 0
    assert "every tensor is sharded alike\n\nthe same collectives\n" in found.out


def test_as_json(cli: Cli, other: Path) -> None:
    found = json.loads(cli("diff", MLP, other, "--json").out)
    assert found["version"] == 2
    assert found["changes"][0]["name"] == "params['w1']"
    assert {one["what"] for one in found["collectives"]} == {"added", "removed"}
    assert [one["name"] for one in found["totals"]] == ["inputs", "outputs", "sent in collectives", "held at most"]


def test_options_may_stand_anywhere(cli: Cli, other: Path) -> None:
    expected = cli("diff", MLP, other, "--json")
    assert cli("diff", MLP, "--json", other) == cli("diff", "--json", MLP, other) == expected
    found = cli("diff", MLP, other, other)
    assert (found.status, found.out) == (2, "") and "unknown argument" in found.err


def test_without_collectives(cli: Cli, other: Path) -> None:
    found = cli("diff", MLP, other, "--no-collectives")
    assert found.status == 1
    assert "what the devices send is not known: it was not asked for" in found.out


@pytest.mark.parametrize("arguments", [(), (MLP, "--edit", "x")])
def test_one_of_both_is_needed(cli: Cli, arguments: tuple[object, ...]) -> None:
    got = "a second FILE and --edit" if arguments else "one FILE and no --edit"
    message = f"error: reading the command line: got {got}, needed either a second FILE or --edit NAME=SPEC\n"
    assert cli("diff", MLP, *arguments) == Outcome(2, "", message)


def test_names_and_files_that_are_not_there(cli: Cli) -> None:
    found = cli("diff", MLP, "--edit", "w9=data")
    assert (found.status, found.out) == (2, "") and "which matches no input or output" in found.err
    found = cli("diff", MLP, "nowhere.mlir")
    assert (found.status, found.out) == (2, "") and "nowhere.mlir" in found.err
    found = cli("diff", MLP, "--edit", "=data")
    assert found.status == 2 and "--edit =data" in found.err
