from __future__ import annotations

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.sharing import SharedChanges, SharedOutcomes, without
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import partition_passes
from pyshardy.passes.partitioning.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.propagation.options import PropagateOptions, View

TWICE = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.transpose %a, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.transpose %0, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def sharing(**attrs: object) -> Op:
    op = Op("t.a", attrs=attrs)
    op.owns_attrs = False
    return op


def test_ops_that_are_read_share_equal_attributes() -> None:
    first, second = (op for op in walk(Module.parse(TWICE).copy_root()) if op.name == "stablehlo.transpose")
    assert first.shared_attrs is second.shared_attrs
    first.attrs["x"] = 1
    assert "x" in first.shared_attrs and "x" not in second.shared_attrs
    assert (first.owns_attrs, second.owns_attrs) == (True, False)


def test_attributes_asked_for_to_be_changed_are_its_own() -> None:
    op = sharing(x=1)
    before = op.shared_attrs
    assert op.attrs == before and op.attrs is not before
    assert op.attrs is op.shared_attrs is op.attrs
    op.attrs = before
    assert op.attrs is before


def test_a_copy_shares_what_is_shared_and_copies_what_is_not() -> None:
    op = sharing(x=1)
    copy = op.clone()
    assert copy.shared_attrs is op.shared_attrs and not copy.owns_attrs
    assert op.attrs is not copy.shared_attrs
    own = op.clone()
    assert own.owns_attrs and own.shared_attrs is not op.shared_attrs


def test_one_value_under_two_names() -> None:
    first, value = sharing(x=1), object()
    second, changes = first.clone(), SharedChanges()
    third = first.clone()
    for op, name in ((first, "y"), (second, "z"), (third, "y")):
        changes.set(op, name, value)
        assert op.shared_attrs == {"x": 1, name: value}


def test_a_change_is_made_once_for_all_that_share() -> None:
    made = []

    def change(attrs: dict[str, object]) -> dict[str, object]:
        made.append(attrs)
        return without(attrs, "x") if "y" in attrs else attrs

    outcomes = SharedOutcomes(change)
    first = sharing(x=1, y=2)
    second, own, other = first.clone(), first.clone(), sharing(x=1)
    own.attrs["z"] = 3
    given, unchanged = first.shared_attrs, other.shared_attrs
    for op in (first, second, own, other):
        outcomes.apply(op)
    assert first.shared_attrs is second.shared_attrs and first.shared_attrs == {"y": 2} and not first.owns_attrs
    assert own.owns_attrs and own.attrs == {"y": 2, "z": 3}
    assert other.shared_attrs is unchanged
    assert len(made) == 3 and given == {"x": 1, "y": 2}


def test_equal_changes_make_one_dictionary() -> None:
    first, changes = sharing(x=1), SharedChanges()
    second, value = first.clone(), object()
    given = first.shared_attrs
    for op in (first, second):
        changes.set(op, "y", value)
    assert first.shared_attrs is second.shared_attrs and first.shared_attrs == {"x": 1, "y": value}
    changes.set(second, "y", object())
    assert first.shared_attrs["y"] is value is not second.shared_attrs["y"]
    assert given == {"x": 1}


def test_attributes_of_its_own_are_changed_in_place() -> None:
    op, changes = Op("t.a", attrs={"x": 1}), SharedChanges()
    attrs = op.attrs
    changes.set(op, "y", 2)
    assert op.attrs is attrs and attrs == {"x": 1, "y": 2}


def test_passes_leave_the_attributes_shared() -> None:
    module = Module.parse(
        'sdy.mesh @m = <["x"=2]>\n'
        + TWICE.replace("%a: tensor<8xf32>", '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}')
    )
    root = module.copy_root()
    run_on_root(module, root, parse_pipeline("sdy-propagation-pipeline"))
    first, second = (op for op in walk(root) if op.name == "stablehlo.transpose")
    assert "sdy.sharding" in first.shared_attrs and not first.owns_attrs
    assert first.shared_attrs is second.shared_attrs


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
    module = Module.parse(EVERYTHING)
    root = module.copy_root()
    assert root.source is not None
    kinds = [kind for kind in dict.fromkeys(root.source.kinds) if kind.name]
    before = [dict(kind.attrs) for kind in kinds]

    def check(pass_: Pass, _: Op, __: float) -> None:
        assert [kind.attrs for kind in kinds] == before, pass_.name

    run_on_root(
        module, root, partition_passes(PropagateOptions(view=View.STABLEHLO), PartitionOptions()), after_pass=check
    )
    names = {op.name for op in walk(root)}
    assert {"stablehlo.all_reduce", "stablehlo.collective_permute", "func.call"} <= names
