"""From a traced run to the names that people know."""

from __future__ import annotations

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy import PropagateOptions
from pyshardy.ir.nodes import walk
from pyshardy.results.explained import label_of

NEW = frozenset(("sdy.reshard", "sdy.all_reduce"))
"""What export puts in; it has no chain of its own, but what it moves has."""


@pytest.mark.slow_but_for("newton")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("flax")])
def test_every_value_of_the_result_is_one_of_the_traced_run(name: str) -> None:
    result = pyshardy.propagate(pyshardy.load(PROGRAMS[name].lower()), PropagateOptions(trace=True))
    known = set(result.last_run.places.values)
    values = [value for op in walk(result.module.root) for value in op.results if op.name not in NEW]
    values += [
        arg for op in walk(result.module.root) for region in op.regions for block in region.blocks for arg in block.args
    ]
    assert values
    assert [value for value in values if value not in known] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp_training", "zero_optimizer", "transformer_scan_remat"])
def test_explanations_show_the_shardings_of_the_result(name: str) -> None:
    result = pyshardy.propagate(pyshardy.load(PROGRAMS[name].lower()), PropagateOptions(trace=True))
    for tensor in (*result.inputs, *result.outputs):
        (story,) = result.explain(tensor.name).values
        assert story.shape == tensor.shape
        axes = [] if tensor.sharding is None else [", ".join(map(str, dim.axes)) for dim in tensor.sharding.dims]
        assert [dim.sharding for dim in story.dims if dim.sharding != "whole"] == [one for one in axes if one]


SEVERAL = """
sdy.mesh @mesh = <["x"=2]>
func.func @before(%arg0: tensor<4xbf16>) -> tensor<4xbf16> {
  return %arg0 : tensor<4xbf16>
}
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<2xi8>)
    -> (tensor<8xf32>, tensor<2xi8>) {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0, %arg1 : tensor<8xf32>, tensor<2xi8>
}
func.func @after(%arg0: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
  return %arg0, %arg0, %arg0 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
"""


def test_names_and_types_of_several_functions() -> None:
    result = pyshardy.propagate(pyshardy.load(SEVERAL), PropagateOptions(trace=True, view="stablehlo"))
    subject = result.why.subject
    found = {name: (subject.dtypes[value], subject.element_bytes[value]) for value, name in subject.names.items()}
    assert found == {
        "arg0": ("f32", 4),
        "arg1": ("i8", 1),
        "result[0]": ("f32", 4),
        "result[1]": ("i8", 1),
        "result[0] of @before": ("bf16", 2),
        **{f"result[{index}] of @after": ("f64", 8) for index in range(3)},
    }
    assert [story.value for story in result.explain("result[0]").values] == ["`result[0]`"]


def test_inputs_have_names_without_outputs() -> None:
    module = pyshardy.load("func.func @main(%arg0: tensor<8xf32>) { return }")
    subject = pyshardy.propagate(module, PropagateOptions(trace=True)).why.subject
    assert list(subject.names.values()) == ["arg0"]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("loc(unknown)", (None, None, None, 0, 0)),
        ('loc("max")', ("max", None, None, 0, 0)),
        ('loc("m.mlir":3:8)', (None, None, "m.mlir", 3, 8)),
        ('loc("-":3:8)', (None, None, "prog", 3, 8)),
        ('loc("jit(f)/add"("model.py":3:8))', ("jit(f)/add", None, "model.py", 3, 8)),
        ('loc("jit(f)/add"("mlp"("model.py":3:8)))', ("jit(f)/add", "mlp", "model.py", 3, 8)),
        (
            'loc("jit(f)/add"(callsite("A.<locals>.mlp"("model.py":3:8 to :12) at "g"("main.py":1:1))))',
            ("jit(f)/add", "A.<locals>.mlp", "model.py", 3, 8),
        ),
    ],
)
def test_labels(location: str, expected: tuple[object, ...]) -> None:
    assert label_of("stablehlo.add", location, "prog")[1:] == (*expected, None)


def test_the_place_is_the_line_of_the_user() -> None:
    library = '"Dense.__call__"("/v/lib/python3.13/site-packages/flax/linear.py":287:8 to :90)'
    user = 'callsite("mlp"("train.py":31:4) at "step"("train.py":50:1))'
    label = label_of("stablehlo.add", f'loc("jit(f)/up/add"(callsite({library} at {user})))')
    assert (label.function, label.file, label.line, label.column) == ("mlp", "train.py", 31, 4)
    assert label.library_place == ("/v/lib/python3.13/site-packages/flax/linear.py", 287, 8)
    assert label.places == (("train.py", 31, 4), label.library_place)
    alone = label_of("stablehlo.add", f'loc("jit(f)/up/add"({library}))')
    assert (alone.line, alone.function, alone.library_place) == (287, "Dense.__call__", None)
