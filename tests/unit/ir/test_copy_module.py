"""A copy of a module is as good as what it was copied from."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.emit import emit_module
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.flow import sharding_stages
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions, View

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
FEW_AND_MANY = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %a : tensor<8xf32>
  %1 = stablehlo.multiply %0, %a : tensor<8xf32>
  %2 = stablehlo.subtract %1, %a : tensor<8xf32>
  %3 = stablehlo.maximum %2, %a : tensor<8xf32>
  %4 = stablehlo.minimum %3, %a : tensor<8xf32>
  %5 = stablehlo.divide %4, %0 : tensor<8xf32>
  return %5 : tensor<8xf32>
}"""


def uses_of(root: Op) -> list[list[tuple[int, int]]]:
    """Of every value the places that use it, in the order of its use-list."""
    numbers = {op: number for number, op in enumerate(walk(root))}
    values = [value for op in numbers for value in op.results]
    values += [arg for op in numbers for region in op.regions for block in region.blocks for arg in block.args]
    return [[(numbers[op], index) for op, index in value.uses] for value in values]


def test_the_copy_is_another_module() -> None:
    module = Module.parse(MLP.read_text())
    root = module.copy_root()
    with module.context:
        before = module.with_root(copy_module(root)).text(debug_info=True)
        copy = copy_module(root)
        for op in walk(copy):
            if op.name == "stablehlo.tanh":
                op.set_attr("custom", module.attrs.parse("unit"))
        assert "custom" in module.with_root(copy).text()
        assert module.with_root(root).text(debug_info=True) == before


@pytest.mark.parametrize("text", [MLP.read_text(), FEW_AND_MANY])
def test_a_copy_is_written_as_the_original(text: str) -> None:
    """The same bytes, by the same writer, before and after passes have changed the original."""
    module = Module.parse(text)
    root = module.copy_root()
    with module.context:
        assert emit_module(copy_module(root), module.attrs) == emit_module(root, module.attrs)
    for stage in sharding_stages(PropagateOptions(view=View.STABLEHLO)):
        run_on_root(module, root, stage.passes)
    with module.context:
        assert emit_module(copy_module(root), module.attrs) == emit_module(root, module.attrs)


def test_the_order_of_uses_is_kept() -> None:
    root = Module.parse(FEW_AND_MANY).copy_root()
    for op in list(walk(root)):
        for value in op.results:
            turned = tuple(reversed(value.uses))
            if len(turned) == 2:
                value.flat_uses = turned[0] + turned[1]
    argument = root.region.block.first.region.block.args[0]
    assert isinstance(argument.flat_uses, dict)  # so many that they are not a tuple
    argument.flat_uses = dict.fromkeys(reversed(list(argument.flat_uses)))
    copied = uses_of(copy_module(root))
    assert copied == uses_of(root)
    with_clone = uses_of(root.clone())
    assert copied != with_clone  # which has them in the order of the ops


def test_a_module_that_was_looked_at_gives_the_same_copy() -> None:
    module, looked_at = Module.parse(MLP.read_text()), Module.parse(MLP.read_text())
    _ = looked_at.root
    assert uses_of(looked_at.copy_root()) == uses_of(module.copy_root())
