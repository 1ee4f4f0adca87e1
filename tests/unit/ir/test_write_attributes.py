"""Where only attributes have changed, a copy of what was read gets them; `test_emit.py` compares the ways of writing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jaxlib.mlir import ir

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.sharing import SharedChanges
from pyshardy.ir.write import is_copy_enough, write_module, write_op_by_op
from pyshardy.ir.write_attributes import write_attributes
from support.writing import asm, check_same

from .reading import find, function

T = "tensor<8xf32>"
PROGRAM = f"""module {{
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: {T}, %b: {T}) -> {T} {{
    %0 = stablehlo.sine %a : {T}
    %1 = stablehlo.sine %0 : {T}
    %2 = stablehlo.add %1, %b : {T}
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0] : ({T}, tensor<f32>) -> tensor<f32>
    return %2 : {T}
  }}
  func.func private @f(%a: {T}) -> {T} {{ return %a : {T} }}
}}"""
X = parse_sharding('<@m, [{"x"}]>')


def parsed() -> tuple[Module, Op]:
    module = Module.parse(PROGRAM)
    return module, module.copy_root()


def sine(root: Op, number: int = 0) -> Op:
    return find(root, "stablehlo.sine", number)


def main(root: Op) -> Op:
    return function(root, "main")


def erase_reduce(root: Op) -> None:
    find(root, "stablehlo.reduce").erase()


def move_body(root: Op) -> None:
    into, out_of = main(root).region, function(root, "f").region
    out_of.blocks[0].args[0].set_type(into.block.args[0].type)
    root.source.is_intact = True  # type: ignore[union-attr]  # moving alone is to be noticed
    into.take_body(out_of)


STRUCTURAL: dict[str, Callable[[Op], object]] = {
    "set_operand": lambda root: find(root, "stablehlo.add").set_operand(1, sine(root).result),
    "add_operand": lambda root: find(root, "stablehlo.add").add_operand(sine(root).result),
    "drop_operands": lambda root: find(root, "stablehlo.reduce").drop_operands(),
    "replace_uses": lambda root: sine(root).result.replace_uses(main(root).region.block.args[1]),
    "append": lambda root: main(root).region.block.append(Op("t.new")),
    "prepend": lambda root: main(root).region.block.prepend(Op("t.new")),
    "insert_before": lambda root: Op("t.new").insert_before(sine(root)),
    "insert_after": lambda root: Op("t.new").insert_after(sine(root)),
    "insert deep inside": lambda root: Op("t.new").insert_before(find(root, "stablehlo.return")),
    "detach": lambda root: find(root, "stablehlo.reduce").detach(),
    "erase": erase_reduce,
    "rename": lambda root: sine(root).rename("stablehlo.cosine"),
    "set_type": lambda root: sine(root).result.set_type(find(root, "stablehlo.constant").result.type),
    "type of an argument": lambda root: main(root).region.block.args[0].set_type(find(root, "stablehlo.constant").result.type),
    "add_block": lambda root: main(root).region.add_block(),
    "add_arg": lambda root: main(root).region.block.add_arg(sine(root).result.type),
    "take_body": move_body,
    "location": lambda root: setattr(sine(root), "location", root.location),
    "location of an argument": lambda root: setattr(main(root).region.block.args[0], "location", root.location),
}  # fmt: skip


@pytest.mark.parametrize("change", STRUCTURAL.values(), ids=[*STRUCTURAL])
def test_what_changes_more_than_attributes_is_noted(change: Callable[[Op], object]) -> None:
    module, root = parsed()
    assert is_copy_enough(root)
    with module.context:
        change(root)
    assert not is_copy_enough(root)


def test_other_modules_are_none_to_copy() -> None:
    module, root = parsed()
    assert not is_copy_enough(root.clone())
    assert not is_copy_enough(main(root).detach())
    assert is_copy_enough(module.copy_root())  # nodes of its own


def test_a_module_inside_another_one_is_not_what_was_read() -> None:
    root = Module.parse("module @outer { module @inner { func.func @f() { return } } }").copy_root()
    assert not is_copy_enough(find(root, "builtin.module", 1))


def test_what_was_read_stays_as_it_was() -> None:
    module, root = parsed()
    before = asm(module.mlir)
    sine(root).attrs["sdy.sharding"] = (X,)
    with module.context:
        written = write_attributes(root, module.attrs)
        assert asm(module.mlir) == before != asm(written)
        check_same(written, write_op_by_op(root, module.attrs), module.attrs)


def test_a_change_that_is_not_noted_is_found_by_the_comparison() -> None:
    module, root = parsed()
    find(root, "stablehlo.add").set_operand(1, sine(root).result)
    assert root.source is not None
    root.source.is_intact = True
    with module.context, pytest.raises(AssertionError):
        check_same(write_attributes(root, module.attrs), write_op_by_op(root, module.attrs), module.attrs)


def test_ops_of_one_kind_may_change_differently() -> None:
    """The same new attributes for ops that were read with different ones, and different ones for ops of one kind."""
    module, root = parsed()
    first, second, third = sine(root), sine(root, 1), find(root, "stablehlo.add")
    SharedChanges().set(first, "sdy.sharding", (X,))
    with module.context:
        third.attrs["my.note"] = ir.UnitAttr.get()
        third.shared_attrs, third.owns_attrs = first.shared_attrs, False
        second.attrs["my.note"] = ir.UnitAttr.get()
        check_same(write_module(root, module.attrs), write_op_by_op(root, module.attrs), module.attrs)
