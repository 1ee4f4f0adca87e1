from __future__ import annotations

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.sharing import SharedChanges
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import parse_pipeline

TWICE = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.transpose %a, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.transpose %0, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def sharing(**attrs: object) -> Op:
    op = Op("t.a")
    op.share_attrs(attrs)
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


def test_equal_changes_make_one_dictionary() -> None:
    first, changes = sharing(x=1), SharedChanges()
    second, value = first.clone(), object()
    given = first.shared_attrs
    for op in (first, second):
        changes.set(op, "y", value)
    assert first.shared_attrs is second.shared_attrs and first.shared_attrs == {"x": 1, "y": value}
    changes.set(second, "y", object())
    assert first.shared_attrs["y"] is value is not second.shared_attrs["y"]
    changes.remove(first, "x")
    assert first.shared_attrs == {"y": value} and "x" in second.shared_attrs
    assert given == {"x": 1}


def test_attributes_of_its_own_are_changed_in_place() -> None:
    op, changes = Op("t.a", attrs={"x": 1}), SharedChanges()
    attrs = op.attrs
    changes.set(op, "y", 2)
    changes.remove(op, "x")
    assert op.attrs is attrs and attrs == {"y": 2}


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
