"""A module written by patching a copy is the one that would be written op by op."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jaxlib.mlir import ir

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.functions import set_arg_sharding, set_result_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.patch import patch_copy
from pyshardy.ir.write import write_module
from pyshardy.rules.notation import parse_rule

from .reading import find, function

T = "tensor<8xf32>"
PROGRAM = f"""module attributes {{some.note = 1 : i32}} {{
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}, %b: {T} loc("at b")) -> ({T}, {T}) {{
    %0 = stablehlo.add %a, %b {{other.name = "kept", sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}]>]>}} : {T}
    %1 = stablehlo.sine %0 : {T}
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : ({T}, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> {T}
    %4 = func.call @f(%3) : ({T}) -> {T}
    return %0, %4 : {T}, {T}
  }}
  func.func private @f(%a: {T}) -> {T} {{ return %a : {T} }}
}}"""
X = parse_sharding('<@m, [{"x", ?}]>')


def parsed() -> tuple[Module, Op]:
    module = Module.parse(PROGRAM)
    return module, module.copy_root()


def written(module: Module, root: Op, *, patched: bool) -> str:
    """The text of what is written, by patching or op by op."""
    with module.context, ir.Location.unknown():
        target = ir.Module.create()
        assert patch_copy(root, module.attrs, target.body) is patched
        found = write_module(root, module.attrs)
        found.operation.verify()
        for op in walk(root):
            op._location, op.source = op.location, None
        assert str(found) == str(write_module(root, module.attrs))
        return str(found)


def nothing(root: Op) -> None:
    pass


def set_attributes(root: Op) -> None:
    find(root, "stablehlo.sine").attrs["sdy.sharding"] = (X,)
    find(root, "stablehlo.add").attrs["sdy.sharding"] = (X,)
    find(root, "stablehlo.sine").attrs["sdy.sharding_rule"] = parse_rule("<([i])->([i]) {i=8}>")


def remove_attributes(root: Op) -> None:
    del find(root, "stablehlo.add").attrs["sdy.sharding"]
    del root.attrs["some.note"]
    set_arg_sharding(function(root, "main"), 0, None)


def set_attributes_of_functions(root: Op) -> None:
    set_arg_sharding(function(root, "main"), 1, X)
    set_result_sharding(function(root, "f"), 0, X)
    function(root, "f").attrs["sym_visibility"] = "nested"


def set_inherent_attributes(root: Op) -> None:
    find(root, "func.call").attrs["callee"] = "main_2"
    function(root, "f").attrs["sym_name"] = "main_2"


def erase_dead_code(root: Op) -> None:
    find(root, "stablehlo.sine").erase()


def erase_with_regions(root: Op) -> None:
    call = find(root, "func.call")
    call.set_operand(0, find(root, "stablehlo.add").result)
    for name in ("stablehlo.broadcast_in_dim", "stablehlo.reduce", "stablehlo.constant"):
        find(root, name).erase()
    call.set_operand(0, find(root, "stablehlo.add").result)


def set_operand(root: Op) -> None:
    find(root, "stablehlo.sine").set_operand(0, function(root, "main").region.block.args[1])


def rename(root: Op) -> None:
    find(root, "stablehlo.sine").rename("stablehlo.cosine")


def insert(root: Op) -> None:
    sine = find(root, "stablehlo.sine")
    sine.clone().insert_before(sine)


def move(root: Op) -> None:
    find(root, "stablehlo.constant").detach().insert_before(find(root, "stablehlo.sine"))


def relocate(root: Op) -> None:
    find(root, "stablehlo.sine").location = root.location


def move_functions(root: Op) -> None:
    f = function(root, "f").detach()
    f.insert_before(function(root, "main"))


def change_type(root: Op) -> None:
    sine = find(root, "stablehlo.sine")
    sine.result.type = sine.operands[0].type
    function(root, "f").region.block.args[0].location = root.location


Change = Callable[[Op], None]


@pytest.mark.parametrize(
    "change",
    [
        nothing, set_attributes, remove_attributes, set_attributes_of_functions, set_inherent_attributes, erase_dead_code
    ],
)  # fmt: skip
def test_attributes_and_dead_code_are_patched(change: Change) -> None:
    module, root = parsed()
    before = module.text()
    change(root)
    text = written(module, root, patched=True)
    assert (text.strip() == before.strip()) is (change is nothing)
    assert module.text() == before


@pytest.mark.parametrize(
    "change", [set_operand, rename, insert, move, relocate, move_functions, change_type, erase_with_regions]
)
def test_everything_else_is_not(change: Change) -> None:
    module, root = parsed()
    change(root)
    written(module, root, patched=False)


def test_nodes_that_were_not_read_are_not_patched() -> None:
    module, root = parsed()
    with module.context:
        assert not patch_copy(root.clone(), module.attrs, ir.Module.create(ir.Location.unknown()).body)
