"""`pyshardy confirm` from its command line, with XLA for CPUs."""

from __future__ import annotations

import json

import pytest

from tests.unit.api.test_confirm import layers
from tests.unit.compilers.programs import SUMMED

from .command_line import Cli
from .opt_command_line import Put


@pytest.mark.slow
def test_the_tables_and_the_json(cli: Cli, put: Put) -> None:
    found = cli("confirm", put(SUMMED), "--compiler", "cpu")
    assert found.status == 0 and found.out.startswith("compiled by XLA for CPUs (jaxlib ")
    data = json.loads(cli("confirm", put(SUMMED), "--compiler", "cpu", "--json").out)
    assert [row["axes"] for row in data["collectives_by_axes"]] == ["x"]
    assert data["shortened"] is None


@pytest.mark.slow
def test_a_few_layers_for_all(cli: Cli, put: Put) -> None:
    found = cli("confirm", put(layers(13)), "--compiler", "cpu", "--shortened", "--json")
    data = json.loads(found.out)
    assert data["shortened"]["layers"] == 13 and data["shortened"]["compiled"] == [2, 5, 7]
    assert [row["compiled"]["count"] for row in data["collectives_by_axes"]] == [13]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ([], 2, "got no compiler, needed --compiler tpu:v5e:2x4, cuda:h100 or cpu"),
        (["--compiler", "cpu", "--shortened"], 2, "got no layers that repeat, needed at least 12 layers"),
        (["--compiler", "cpu", "--timeout", "0"], 2, "got '0', needed a number of seconds"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, put: Put, options: list[str], status: int, said: str) -> None:
    found = cli("confirm", put(SUMMED), *options)
    assert found.status == status and said in found.err and found.out == ""
