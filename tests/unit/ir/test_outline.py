"""Modules as programs without rules."""

from __future__ import annotations

import pytest

from programs import PROGRAMS
from pyshardy import load
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.passes.flow import propagation_passes
from pyshardy.passes.importing.apply_sharding_constraints import outline
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.origins import Origins


def imported(name: str) -> Op:
    """A program as the passes before propagation make it."""
    module = load(PROGRAMS[name].lower())
    root = module.copy_root()
    passes = propagation_passes(PropagateOptions())
    at = next(at for at, one in enumerate(passes) if one.name.endswith("-propagate"))
    run_on_root(module, root, passes[:at])
    return root


@pytest.mark.parametrize("name", ["mlp_training", "transformer_scan_remat", "manual_collectives", "ring_attention"])
def test_it_has_the_annotations_of_the_program(name: str) -> None:
    root = imported(name)
    outlined, values = outline(root)
    program, index = build_program(root, OpSpecReader())
    one, other = Origins.given(outlined), Origins.given(program)
    found = [dict(one.of(number)) for number in range(len(values))]
    assert values == index.values
    assert found == [dict(other.of(number)) for number in range(len(values))]
    assert any(found)


def test_a_module_that_propagation_refuses_has_one() -> None:
    module = Module.parse("""
    func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.sine %a : tensor<?xf32>
      return %0 : tensor<?xf32>
    }""")
    program, values = outline(module.root)
    assert [op.name for op in program.ops] == ["func.func", "stablehlo.sine", "func.return"]
    assert len(values) == len(program.values) == 3
