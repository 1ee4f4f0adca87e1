"""The passes of `propagate` and `partition`.

Source: docs/semantics/export.md#steps
"""

from __future__ import annotations

import pytest

from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.passes.flow import (
    for_module,
    partition_ending,
    partition_passes,
    propagation_ending,
    propagation_passes,
    sharding_stages,
)
from pyshardy.passes.options import format_options
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipelines import (
    parse_pipeline,
)
from pyshardy.passes.table import pass_of
from pyshardy.propagation.options import PropagateOptions, StrategyOption, View

from .pipeline_texts import written

TELL_APART = pass_of("pyshardy-tell-copies-apart")


def test_the_propagation_pipeline_with_batching_and_with_deduplication() -> None:
    plain = written(propagation_passes(PropagateOptions(view=View.STABLEHLO)))
    batching = written(propagation_passes(PropagateOptions(view=View.STABLEHLO, explicit_gather_scatter_batching=True)))
    splitter = plain.index("sdy-constant-or-scalar-splitter")
    assert batching == [*plain[: splitter + 1], "sdy-explicit-gather-scatter-batching", *plain[splitter + 1 :]]
    dedup = propagation_passes(PropagateOptions(view=View.STABLEHLO, dedup_functions_fully=True))
    assert dedup == [TELL_APART, *parse_pipeline("sdy-propagation-pipeline{dedup-functions-fully=true}")]


def test_the_propagation_pipeline_with_options_of_its_own() -> None:
    plain = [TELL_APART, *parse_pipeline("sdy-propagation-pipeline")]
    assert propagation_passes(PropagateOptions(view=View.STABLEHLO)) == plain
    options = PropagateOptions(
        view=View.STABLEHLO,
        strategy=StrategyOption.BASIC,
        op_priorities=False,
        user_priorities=False,
        conservative=True,
        trace=True,
    )
    changed = propagation_passes(options)
    assert [pass_ for pass_ in changed if pass_ in plain] == [
        pass_ for pass_ in plain if pass_.name != "sdy-user-priority-propagate"
    ]
    (propagate,) = (pass_ for pass_ in changed if pass_ not in plain)
    assert [pass_.name for pass_ in changed].index(propagate.name) == [pass_.name for pass_ in plain].index(
        "sdy-user-priority-propagate"
    )
    assert propagate.name == "sdy-op-priority-propagate"
    assert set(format_options(propagate).split()) == {
        "keep-sharding-rules=true",
        "conservative-propagation=true",
        "trace=true",
        "propagation-strategy=basic",
        "run-op-priority-propagation=false",
    }


ABS = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.abs %a : tensor<8xf32> return %0 : tensor<8xf32> }"
CALL = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"""


@pytest.mark.parametrize(
    ("body", "is_hlo", "view"),
    [
        (ABS, False, View.XLA),
        (CALL, False, View.XLA),
        (ABS, True, View.STABLEHLO),
        (CALL, True, View.HLO),
    ],
)
def test_what_was_hlo_is_not_rewritten_again(body: str, is_hlo: bool, view: View) -> None:
    attributes = "attributes {mhlo.cross_program_prefetches = []}" if is_hlo else ""
    root = Module.parse(f"module @m {attributes} {{ {body} }}").root
    assert for_module(PropagateOptions(), root).view is view
    for given in (View.HLO, View.STABLEHLO):
        assert for_module(PropagateOptions(view=given), root).view is given
    names = [pass_.name for pass_ in propagation_passes(for_module(PropagateOptions(), root))]
    assert ("pyshardy-simplify" in names, "pyshardy-inline-and-order" in names) == (
        view is View.XLA,
        view is not View.STABLEHLO,
    )


def test_views_that_there_are_not() -> None:
    with pytest.raises(UsageError) as caught:
        PropagateOptions().with_view("nothing")
    assert str(caught.value) == "choosing the view of a program: got 'nothing', needed one of xla, tpu, hlo, stablehlo"


def test_passes_are_made_once() -> None:
    first, again = (propagation_passes(PropagateOptions()) for _ in range(2))
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert again is not first


@pytest.mark.parametrize("view", View)
def test_both_ways_part_where_shardings_are_final(view: View) -> None:
    """`propagate` and `partition` have the passes up to there in common, and nothing behind is a propagation."""
    options = PropagateOptions(view=view)
    stages = sharding_stages(options)
    assert [stage.name for stage in stages] == ["import", "propagate", "export"]
    common = [pass_ for stage in stages for pass_ in stage.passes]
    assert common[-1].name == "sdy-close-shardings"
    assert [pass_.name for pass_ in stages[1].passes] == ["sdy-user-priority-propagate"]
    ending, other = propagation_ending(options), partition_ending(options, PartitionOptions())
    assert not any(pass_.name.endswith("-propagate") for pass_ in (*ending, *other))
    assert propagation_passes(options) == [*common, *ending]
    assert partition_passes(options, PartitionOptions()) == [*common, *other]
