"""Ops that share their attributes are of one kind in a program: it is the same as where every op has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from programs import PROGRAMS
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.propagation.program import Program
from support.programs import module_text

from .random_programs import Features, random_program


def columns(program: Program) -> tuple[Sequence[Any], ...]:
    """All that a program says of its ops and values."""
    return program.ops, program.values, tuple(program.shardings), program.main_results, program.groups


def check(module: Module) -> None:
    """The program is the same whether ops share their attributes or not."""
    root = module.copy_root()
    with module.context:
        found, _ = build_program(root, OpSpecReader())
        for op in walk(root):
            own_attributes(op)
        alone, _ = build_program(root, OpSpecReader())
        assert columns(alone) == columns(found)


def own_attributes(op: Op) -> None:
    """Let an op share its attributes with no other, so that none is taken for another one of its kind."""
    op.replace_attrs(dict(op.attrs))


def imported(module: Module) -> Module:
    return run_pipeline(module, "sdy-import-pipeline,sdy-add-data-flow-edges,sdy-add-func-data-flow-edges")


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    module = Module.parse(module_text(program))
    check(module)
    check(imported(module))


def test_random_programs() -> None:
    for seed in range(40):
        module = Module.parse(random_program(seed, Features(priorities=0.3, meshes=2)))
        check(module)
        check(imported(module))


def test_uses_in_another_order() -> None:
    """What bytecode says of the order of uses counts."""
    module = Module.parse(TWO_USES)
    sine = module.mlir.body.operations[0].regions[0].blocks[0].operations[0].operation
    with module.context:
        sine.operands[0] = sine.operands[0]  # now the head of the list
        root = module.copy_root()
        found, _ = build_program(root, OpSpecReader())
        assert [found.ops[user].name for user in found.users[0]] == ["stablehlo.sine", "stablehlo.cosine"]
        check(module)
        in_order, _ = build_program(Module.parse(TWO_USES).copy_root(), OpSpecReader())
        assert columns(in_order) != columns(found)


TWO_USES = """func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.sine %a : tensor<8xf32>
  %1 = stablehlo.cosine %a : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}"""
