"""A plan is never worse than the program as it was given, nor than a row beside it, whatever is given and kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyshardy
from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.objective import Objective

pytestmark = pytest.mark.slow

SIZES = {"a": 2, "b": 4}


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Two products with random sizes, some of which no axis divides, and random shardings of inputs and of the result."""
    size = st.sampled_from([512, 1024, 1536, 2047])
    m, k, n, p = (draw(size) for _ in range(4))
    shapes = {"x": (m, k), "w": (k, n), "v": (n, p)}
    types = {name: f"tensor<{one}x{other}xf32>" for name, (one, other) in shapes.items()}
    args = ", ".join(f'%{name}: {types[name]}{draw(shardings())} loc("{name}")' for name in shapes)
    hidden, out = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{p}xf32>"
    return f"""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main({args}) -> ({out}{draw(shardings())}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({types["x"]}, {types["w"]}) -> {hidden}
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0] : ({hidden}, {types["v"]}) -> {out}
  return %1 : {out}
}}"""


def shardings() -> st.SearchStrategy[str]:
    """None, or each axis on a dimension or on none, closed or open, also where it does not divide."""
    places = st.tuples(st.integers(-1, 1), st.integers(-1, 1), st.sampled_from(["", ", ?"]))
    return st.one_of(st.just(""), places.map(_sharding))


def _sharding(place: tuple[int, int, str]) -> str:
    dims = []
    for dim in range(2):
        axes = [f'"{axis}"' for axis, at in zip(SIZES, place[:2]) if at == dim]
        dims.append("{" + ", ".join(axes) + (place[2] if axes else "") + "}")
    return f" {{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(dims)}]>}}"


@settings(max_examples=15, deadline=None)
@given(programs(), st.booleans(), st.sampled_from([1.0, 1e-1, 1e-3]))
def test_no_plan_is_worse_than_what_was_given_or_stands_beside_it(text: str, keep: bool, share: float) -> None:
    module = pyshardy.load(text)
    cost = pyshardy.cost(module, "v5e")
    memory = max(1.0, share * 2 * cost.peak_bytes)
    plan = pyshardy.search(module, hardware="v5e", candidates=8, keep=keep, memory=memory)
    as_given = PlanRow("", cost.step_seconds, cost.peak_bytes, cost.peak_bytes <= memory, True)
    chosen = plan.summary.chosen
    is_better = Objective(plan.summary.limit).is_better
    assert not is_better(as_given, chosen)
    assert not [row for row in (*plan.summary.rows, *plan.summary.front) if is_better(row, chosen)]
    again = pyshardy.cost(plan.apply(), "v5e")
    assert (again.step_seconds, again.peak_bytes) == (plan.step_seconds, plan.peak_bytes)
    assert plan.fits or not any(row.fits for row in plan.summary.rows)
