"""The program as it was given, beside the plan: a layered one is not partitioned as a whole without need."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy.ir.module import Module
from pyshardy.report.plan import PlanRow
from pyshardy.searching.planning.compiled import AS_GIVEN
from pyshardy.searching.planning.options import SearchOptions

MESH = {"x": 4}
WIDTH, HIDDEN = 512, 2048


def forward(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    for layer in params:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return x


def loaded(layers: int) -> Module:
    """Its `up` is split; `down` and `x` are open, and propagation splits `down` too."""
    layer = {
        "up": jax.ShapeDtypeStruct((WIDTH, HIDDEN), "float32"),
        "down": jax.ShapeDtypeStruct((HIDDEN, WIDTH), "float32"),
    }
    x = jax.ShapeDtypeStruct((8192, WIDTH), "float32")
    module = pyshardy.load(forward, [layer] * layers, x, mesh=MESH)
    return module.annotate({"*['up']": Spec(None, "x")})


@pytest.fixture
def partitioned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that a search partitions as a whole."""
    names: list[str] = []
    row = SearchOptions.row

    def noted(self: SearchOptions, name: str, module: Module) -> PlanRow | None:
        names.append(name)
        return row(self, name, module)

    monkeypatch.setattr(SearchOptions, "row", noted)
    return names


def given_row(module: Module, **options: Any) -> PlanRow:
    plan = pyshardy.search(module, hardware="v5e", candidates=24, **options)
    return next(row for row in plan.summary.rows if row.name == AS_GIVEN)


@pytest.mark.parametrize("layers, is_partitioned", [(2, True), (12, False)])
def test_a_layered_program_is_priced_by_its_layers(partitioned: list[str], layers: int, is_partitioned: bool) -> None:
    module = loaded(layers)
    row, right = given_row(module, keep=False), pyshardy.cost(module, "v5e")
    assert (AS_GIVEN in partitioned) is is_partitioned
    assert row.is_exact and row.seconds == pytest.approx(right.step_seconds, rel=1e-9)
    assert row.bytes == pytest.approx(right.peak_bytes, rel=1e-9)


def test_what_may_be_better_than_the_plan_is_partitioned(partitioned: list[str]) -> None:
    module = loaded(12)
    plan = pyshardy.search(module, hardware="v5e", keep=False, candidates=24)
    partitioned.clear()
    pyshardy.search(plan.apply(), hardware="v5e", keep=False, candidates=24)
    assert AS_GIVEN in partitioned
