from __future__ import annotations

import pytest

from pyshardy.ir import mlir_ops
from pyshardy.ir.mlir_ops import MlirOps, all_ops
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk

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
def test_ops_are_found_where_they_were_read(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlir_ops, "MANY_STEPS", many)
    module = Module.parse(TEXT)
    root = module.copy_root()
    with module.context:
        found = MlirOps(module.mlir)
        expected = all_ops(module.mlir)
        for op, mlir in zip(walk(root), expected, strict=True):
            assert op.block is not None or op is root
            if op.block is not None:
                assert found.op_at(op.block, op.order) == mlir
                assert found.op_at(op.block, op.order).name == op.name
        block = root.region.block.first.regions[0].blocks[1]  # type: ignore[union-attr]
        assert len(found.block(block).arguments) == 1


def test_every_op_comes_before_what_it_holds() -> None:
    module = Module.parse(TEXT)
    with module.context:
        assert [op.name for op in all_ops(module.mlir)] == [op.name for op in walk(module.root)]
