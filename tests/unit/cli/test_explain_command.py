"""`pyshardy explain`."""

from __future__ import annotations

import json
from pathlib import Path

from .command_line import Cli, Outcome

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"


def test_a_value_in_words(cli: Cli) -> None:
    found = cli("explain", MLP, "params['w2']")
    assert found.status == 0
    assert found.out.startswith("`params['w2']`, shape [")


def test_a_value_as_json(cli: Cli) -> None:
    found = cli("explain", MLP, "params['w2']", "--json")
    assert json.loads(found.out)["values"][0]["value"] == "`params['w2']`"


def test_details(cli: Cli) -> None:
    assert "strategy, user priority" in cli("explain", MLP, "tanh", "--details").out


def test_an_unknown_value_is_refused_with_the_nearest_names(cli: Cli) -> None:
    message = (
        "error: looking for a value to explain: got 'w2', "
        "needed an argument, a result, FILE:LINE, a name scope or an op of the program\n  try: params['w2']\n"
    )
    assert cli("explain", MLP, "w2") == Outcome(2, "", message)


def test_without_a_value_it_lists_conflicts(cli: Cli) -> None:
    assert cli("explain", MLP) == Outcome(0, "no conflicts: all shardings that meet agree\n", "")
    assert json.loads(cli("explain", MLP, "--json").out) == {"conflicts": []}


def test_collectives(cli: Cli) -> None:
    found = cli("explain", MLP, "--collectives")
    assert found.out.startswith("1. all-reduce of ")
    assert "`params['w2']` has \"model\" on dimension 0" in found.out
    assert json.loads(cli("explain", MLP, "--collectives", "--json").out)["collectives"][0]["kind"] == "all_reduce"


def test_a_value_and_collectives_are_refused(cli: Cli) -> None:
    message = "error: reading the command line: got a value and --collectives, needed one of them\n"
    assert cli("explain", MLP, "tanh", "--collectives") == Outcome(2, "", message)
