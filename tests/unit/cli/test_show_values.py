"""`pyshardy show --values`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pyshardy

from .command_line import Cli

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"


def test_a_table_of_what_a_pattern_names(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = cli("show", MLP, "--values", "dot_general")
    expected = str(pyshardy.propagate(str(MLP)).values["dot_general"])
    assert (found.status, found.err) == (0, "")
    assert [line.rstrip() for line in found.out.splitlines()] == expected.splitlines()
    assert "P('data', 'model')" in found.out and "x, params['w1']" in found.out


def test_as_data(cli: Cli) -> None:
    found = cli("show", MLP, "--values", "*", "--json")
    data = json.loads(found.out)
    assert data == pyshardy.propagate(str(MLP)).values.to_json()
    assert [row["kind"] for row in data["values"]].count("op") == 3
    assert {row["given_by"] for row in data["values"]} == {"user", "propagation"}


def test_a_line_of_a_file_of_mlir(cli: Cli) -> None:
    text = MLP.read_text().splitlines()
    line = next(number for number, one in enumerate(text, 1) if "stablehlo.tanh" in one)
    found = cli("show", MLP, "--values", f"mlp.mlir:{line}", "--json")
    (row,) = [row for row in json.loads(found.out)["values"] if row["kind"] == "op"]
    assert row["op"] == "stablehlo.tanh"
    assert row["source"]["line"] == line and row["source"]["file"] == str(MLP)


def test_an_unknown_name(cli: Cli) -> None:
    found = cli("show", MLP, "--values", "dot_gneral")
    assert found.status == 2
    assert "got 'dot_gneral'" in found.err and "dot_general" in found.err
    assert "Traceback" not in found.err
