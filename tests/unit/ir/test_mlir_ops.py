from __future__ import annotations

import pytest

from pyshardy.ir import mlir_ops
from pyshardy.ir.mlir_ops import MlirOps
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk

from .reading import all_ops

TEXT = """func.func @f(%a: i32, %c: i1) -> i32 {
  cf.cond_br %c, ^bb1(%a : i32), ^bb2
^bb1(%b: i32):
  %0 = arith.addi %b, %b : i32
  return %0 : i32
^bb2:
  return %a : i32
}
module { func.func private @g() func.func @h() { return } }"""


@pytest.mark.parametrize("many", [0, 1, 100])
@pytest.mark.parametrize("next_op", [0, 2])
def test_ops_are_found_where_they_were_read(many: int, next_op: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlir_ops, "MANY_STEPS", many)
    monkeypatch.setattr(mlir_ops, "NEXT", next_op)
    module = Module.parse(TEXT)
    root = module.copy_root()
    with module.context:
        for op, mlir in zip(walk(root), all_ops(module.mlir.operation), strict=True):
            source = op.source
            assert source is not None
            assert source.mlir.op_at(source.blocks[op.number], source.places[op.number]) == mlir
            assert (op.name, str(op.location)) == (mlir.name, str(mlir.location))
        block = root.region.block.first.regions[0].blocks[1]  # type: ignore[union-attr]
        assert [str(arg.location) for arg in block.args] == ['loc("-":3:6)']


@pytest.mark.parametrize("next_op", [0, 1, 4, 1000])
def test_ops_are_found_in_any_order(next_op: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlir_ops, "NEXT", next_op)
    lines = " ".join(f"%{n} = arith.constant {n} : i32" for n in range(20))
    module = Module.parse(f"func.func @f() {{ {lines} return }}")
    with module.context:
        ops = MlirOps(module.mlir)
        body = ops.add_block(ops.add_block(-1, 0, 0, 0, 1), 0, 0, 0, 21)
        for place in (3, 3, 4, 17, 18, 2, 19, 0, 1):
            assert ops.op_at(body, place).attributes["value"].value == place


def test_ops_without_attributes_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    find = mlir_ops.MlirOps.op_at

    def op_at(self: mlir_ops.MlirOps, block: int, place: int) -> object:
        found = find(self, block, place)
        asked.append(found.name)
        return found

    monkeypatch.setattr(mlir_ops.MlirOps, "op_at", op_at)
    add, negate = "stablehlo.add %a, %a : tensor<8xf32>", "stablehlo.negate %0 {kept} : tensor<8xf32>"
    text = f"func.func @f(%a: tensor<8xf32>) {{ %0 = {add} %1 = {negate} return }}"
    added, negated, _ = Module.parse(text).copy_root().region.block.first.region.block  # type: ignore[union-attr]
    assert (added.attrs, list(negated.attrs)) == ({}, ["kept"])
    assert "stablehlo.negate" in asked and not {"stablehlo.add", "func.return"} & set(asked)
