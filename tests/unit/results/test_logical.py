"""The logical axes of a model meet the inputs of a plan by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import pytest
from jax.sharding import PartitionSpec as P

from pyshardy.errors import UsageError
from pyshardy.report.plan import PlanRow, PlanSpec, PlanSummary
from pyshardy.results.plan import Plan

INTO, OUT = P("embed", "mlp"), P("mlp", "embed")
ROW = PlanRow("the plan", 0.5, 1e9, True, True)
UP, DOWN, DATA = (("data",), ("model",)), (("model",), ("data",)), (("data",), ())
SPECS = (
    PlanSpec("state.params['layers_*']['up']['kernel'].value", (512, 2048), "f32", UP, 4),
    PlanSpec("state.params['layers_*']['down']['kernel'].value", (2048, 512), "f32", DOWN, 4),
    PlanSpec("state.params['layers_*']['down']['bias']", (512,), "f32", ((),), 4),
    PlanSpec("state.mu['layers_*']['up']['kernel'].value", (512, 2048), "f32", UP, 4),
    PlanSpec("result[0].params['layers_*']['up']['kernel'].value", (512, 2048), "f32", UP, 4, True),
    PlanSpec("result[0].params['layers_*']['down']['kernel'].value", (2048, 512), "f32", DOWN, 4, True),
    PlanSpec("result[0].mu['layers_*']['up']['kernel'].value", (512, 2048), "f32", UP, 4, True),
    PlanSpec("result[1]", (), "f32", (), 1, True),
    PlanSpec("batch", (256, 512), "bf16", DATA, 1),
)
PLAN = Plan(
    PlanSummary("v5p", (("data", 4), ("model", 2)), "formula", 1e10, SPECS, ROW, (), (), (), 1, 1, 1.0, 0, "time", ())
)


class State:
    """Like a training state of flax."""

    def __init__(self, params: Any, mu: Any) -> None:
        self.params, self.mu = params, mu


jax.tree_util.register_dataclass(State, ["params", "mu"], [])


def layers(up: Any = INTO, down: Any = OUT) -> Any:
    return {f"layers_{layer}": {"up": {"kernel": up}, "down": {"kernel": down, "bias": P()}} for layer in range(4)}


def test_the_axes_of_a_state_and_of_a_batch() -> None:
    found = PLAN.logical_rules(state=State(layers(), layers()), batch=("batch", None))
    assert found.fits and found.pairs == (("batch", "data"), ("embed", "data"), ("mlp", "model"))
    assert found.bytes == 3 * 4 * 512 * 2048 * 4 + 4 * 512 * 4 + 256 * 512 * 2
    assert found.mesh == PLAN.summary.mesh


def test_the_rule_of_a_batch_comes_first_where_it_can() -> None:
    found = PLAN.logical_rules(state=State(layers(), layers()), batch=("batch", "embed"))
    assert found.first == ("batch", "embed")
    assert found.misfits == () and found.pairs[0] == ("batch", "data")  # before "embed", which is whole then
    returned = [replace(one, name=one.name.replace("result[0]", "result")) for one in SPECS]
    plan = Plan(replace(PLAN.summary, specs=tuple(returned)))
    assert plan.logical_rules(state=State(layers(), layers()), batch=("batch", None)).first == ("batch",)


def test_a_part_of_the_arguments() -> None:
    assert PLAN.logical_rules(state=State(layers(), None)).pairs == (("embed", "data"), ("mlp", "model"))
    assert PLAN.logical_rules(batch=P("batch")).pairs == (("batch", "data"),)


def test_names_of_nnx_have_dots() -> None:
    specs = (PlanSpec("model.layers[*].up.kernel.value", (512, 2048), "f32", UP, 2),)
    plan = Plan(replace(PLAN.summary, specs=specs))
    tree = {"layers": [{"up": {"kernel": ("embed", "mlp")}}] * 2}
    assert plan.logical_rules(model=tree).pairs == (("embed", "data"), ("mlp", "model"))


def test_layers_with_other_logical_axes_stand_alone() -> None:
    params = layers()
    params["layers_3"] = layers(down=P("mlp", "other"))["layers_3"]
    found = PLAN.logical_rules(state=State(params, None))
    assert found.fits and ("other", "data") in found.pairs
    down = [one for one in found.arrays if one.names == ("mlp", "other")]
    assert [(one.inputs, one.count) for one in down] == [(("state.params['layers_3']['down']['kernel']",), 1)]


def test_what_rules_cannot_give() -> None:
    found = PLAN.logical_rules(state=State(layers(down=INTO), layers(down=INTO)))
    assert [one.arrays.inputs for one in found.misfits] == [(SPECS[1].name,)]
    assert found.misfits[0].causes == (SPECS[0].name, SPECS[3].name)


@pytest.mark.parametrize(
    ("trees", "said"),
    [
        ({"stat": layers()}, "the argument stat, of which no array is an input of the plan, needed .* such as state.p"),
        ({"batch": P("a", "b", "c")}, r"got 3 logical axes: \('a', 'b', 'c'\), needed at most 2(.|\n)*at batch"),
        ({"batch": 3}, r"got an int(.|\n)*at batch"),
    ],
)
def test_other_trees_are_refused(trees: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PLAN.logical_rules(**trees)
