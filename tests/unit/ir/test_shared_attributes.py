from __future__ import annotations

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shared_attributes import SharedChanges, SharedOutcomes
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import partition_passes
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.propagation.options import PropagateOptions, View

TWICE = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.transpose %a, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.transpose %0, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def op_with(**attrs: object) -> Op:
    return Op("t.a", attrs=attrs)


def test_ops_that_are_read_share_equal_attributes() -> None:
    first, second = (op for op in walk(Module.parse(TWICE).copy_root()) if op.name == "stablehlo.transpose")
    assert first.attrs is second.attrs
    first.set_attr("x", 1)
    assert "x" in first.attrs and "x" not in second.attrs


def test_a_copy_shares_the_attributes() -> None:
    op = op_with(x=1)
    assert op.clone().attrs is op.attrs


def test_one_value_under_two_names() -> None:
    first, value = op_with(x=1), object()
    second, changes = first.clone(), SharedChanges()
    third = first.clone()
    for op, name in ((first, "y"), (second, "z"), (third, "y")):
        changes.set(op, name, value)
        assert op.attrs == {"x": 1, name: value}


def test_a_change_is_made_once_for_all_that_share() -> None:
    made: list[Attributes] = []

    def change(attrs: Attributes) -> Attributes:
        made.append(attrs)
        return attrs.without("x") if "y" in attrs else attrs

    outcomes = SharedOutcomes(change)
    first = op_with(x=1, y=2)
    second, own, other = first.clone(), first.clone(), op_with(x=1)
    own.set_attr("z", 3)
    given, unchanged = first.attrs, other.attrs
    for op in (first, second, own, other):
        outcomes.apply(op)
    assert first.attrs is second.attrs and first.attrs == {"y": 2}
    assert own.attrs == {"y": 2, "z": 3}
    assert other.attrs is unchanged
    assert len(made) == 3 and given == {"x": 1, "y": 2}


def test_equal_changes_make_one_dictionary() -> None:
    first, changes = op_with(x=1), SharedChanges()
    second, value = first.clone(), object()
    given = first.attrs
    for op in (first, second):
        changes.set(op, "y", value)
    assert first.attrs is second.attrs and first.attrs == {"x": 1, "y": value}
    changes.set(second, "y", object())
    assert first.attrs["y"] is value is not second.attrs["y"]
    assert given == {"x": 1}


def test_passes_leave_the_attributes_shared() -> None:
    module = Module.parse(
        'sdy.mesh @m = <["x"=2]>\n'
        + TWICE.replace("%a: tensor<8xf32>", '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}')
    )
    root = module.copy_root()
    run_on_root(module, root, parse_pipeline("sdy-propagation-pipeline"))
    first, second = (op for op in walk(root) if op.name == "stablehlo.transpose")
    assert "sdy.sharding" in first.attrs
    assert first.attrs is second.attrs


EVERYTHING = """sdy.mesh @m = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %b: tensor<16x8xf32>)
    -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %2 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %4 = stablehlo.add %2, %1 : tensor<8x8xf32>
  %5 = stablehlo.add %3, %1 : tensor<8x8xf32>
  %6 = stablehlo.slice %4 [0:7, 0:8] : (tensor<8x8xf32>) -> tensor<7x8xf32>
  %7 = stablehlo.pad %6, %0, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<7x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %8 = call @f(%7) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %9 = call @f(%5) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %10 = stablehlo.multiply %8, %9 : tensor<8x8xf32>
  %11 = stablehlo.reduce(%10 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %11 : tensor<8xf32>
}
func.func private @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.reverse %a, dims = [0] : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


def test_no_pass_changes_what_others_share() -> None:
    """Also not by the functions of `dict` that `Attributes` inherits."""
    module = Module.parse(EVERYTHING)
    root = module.copy_root()
    assert root.source is not None
    kinds = list(dict.fromkeys(root.source.kinds))
    before = [dict(kind.attrs) for kind in kinds]

    def check(pass_: Pass, _: Op, __: float) -> None:
        assert [kind.attrs for kind in kinds] == before, pass_.name

    run_on_root(
        module, root, partition_passes(PropagateOptions(view=View.STABLEHLO), PartitionOptions()), after_pass=check
    )
    names = {op.name for op in walk(root)}
    assert {"stablehlo.all_reduce", "stablehlo.collective_permute", "func.call"} <= names
