"""Lines that JAX forgets in functions that it differentiates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import scope_of, source_frames
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.table import pass_of


def inlined(callee: str, call: str) -> list[tuple[str | None, list[tuple[str, int, int]]]]:
    """The scopes and places of what is inlined, of a function with two ops at these locations."""
    one, other = callee.split(" | ")
    module = Module.parse(f"""
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
      %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32> loc({call})
      return %0 : tensor<8xf32>
    }}
    func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
      %0 = stablehlo.tanh %a : tensor<8xf32> loc({one})
      %1 = stablehlo.sine %0 : tensor<8xf32> loc({other})
      return %1 : tensor<8xf32>
    }}""")
    root = module.copy_root()
    run_on_root(module, root, [pass_of("pyshardy-inline-and-order")])
    ops = [op for op in main_function(root).region.block if op.name.startswith("stablehlo.")]
    return [(scope_of(op.location), source_frames(op.location)) for op in ops]


CALL = '"jit(f)/take"("net.py":3:4)'


@pytest.mark.parametrize(
    ("callee", "call", "found"),
    [
        ('"tanh" | "sine"', CALL, [("jit(f)/take/tanh", [("net.py", 3, 4)]), ("jit(f)/take/sine", [("net.py", 3, 4)])]),
        ('"tanh"("a.py":1:2) | "sine"', CALL, [("tanh", [("a.py", 1, 2)]), ("jit(f)/take/sine", [("net.py", 3, 4)])]),
        ('"tanh" | "sine"("a.py":1:2)', CALL, [("tanh", []), ("sine", [("a.py", 1, 2)])]),
        ('unknown | unknown', '"net.py":3:4', [(None, [("net.py", 3, 4)])] * 2),
    ],
)  # fmt: skip
def test_ops_without_a_line_get_that_of_the_call(callee: str, call: str, found: list[object]) -> None:
    assert inlined(callee, call) == found


def test_the_gradient_of_an_embedding_names_its_line() -> None:
    def step(table, ids):
        gradient = jax.grad(lambda table: (jnp.take(table, ids, axis=0) ** 2).sum())(table)
        return table - gradient

    table, ids = jax.ShapeDtypeStruct((64, 16), "float32"), jax.ShapeDtypeStruct((32,), "int32")
    module = pyshardy.load(step, table, ids, mesh={"data": 4}, in_shardings=(None, P("data")))
    places = [row.user_source for row in pyshardy.partition(module).traffic.collectives]
    line = step.__code__.co_firstlineno + 1
    assert places and {(place[0], place[1]) for place in places if place} == {(__file__, line)}
