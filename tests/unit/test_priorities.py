"""User priorities from Python: the rounds of the guide, and the program between them."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.propagation.user_priorities import up_to

MESH = {"data": 4, "model": 2}
BATCH, MEGATRON, ZERO = 0, 1, 2


def train(params, x):
    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"]) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def annotated() -> pyshardy.Module:
    """Batch parallelism first, then Megatron, then ZeRO: parameters and their updates are split over data, too."""
    params = {"w1": jax.ShapeDtypeStruct((64, 256), np.float32), "w2": jax.ShapeDtypeStruct((256, 64), np.float32)}
    module = pyshardy.load(train, params, jax.ShapeDtypeStruct((32, 64), np.float32), mesh=MESH)
    return module.annotate(
        {
            "x": Spec("data", "?", priorities=(BATCH,)),
            "params['w1']": Spec("data", "model", priorities=(ZERO, MEGATRON)),
            "result['w1']": Spec("data", "model", priorities=(ZERO, MEGATRON)),
        }
    )


def test_the_rounds_of_the_guide() -> None:
    result = pyshardy.propagate(annotated())
    specs = [result.after_priority(round_).in_specs for round_ in (BATCH, MEGATRON, ZERO)]
    assert specs[0] == ({"w1": P(None, None), "w2": P()}, P("data", None))
    assert specs[1] == ({"w1": P(None, "model"), "w2": P("model", None)}, P("data", None))
    assert specs[2] == ({"w1": P("data", "model"), "w2": P("model", None)}, P("data", None)) == result.in_specs
    assert result.after_priority(MEGATRON).out_specs["w1"] == P(None, "model")
    assert result.out_specs["w1"] == P("data", "model")


CONFLICT = """sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {"b", ?}p2]>},
                %y: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}p0, {"a"}p0]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}p3]>}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"b", ?}p2, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_it_is_the_program_between_two_rounds(priority: int, tmp_path: Path) -> None:
    """The state that propagation has after a round is that of a program without what comes later."""
    module = pyshardy.load(CONFLICT)
    pipeline = "builtin.module(sdy-apply-sharding-constraints,sdy-user-priority-propagate{module-dump-directory=%s})"
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder in (whole, part):
        folder.mkdir()
    pyshardy.run_pipeline(module, pipeline % whole)
    between = next(whole.glob(f"*after_user_priority_{priority}.mlir")).read_text()
    root = module.copy_root()
    meshes = module_meshes(root)
    transform_shardings(root, lambda sharding: up_to(sharding, meshes, priority))
    found = pyshardy.run_pipeline(module.with_root(root), pipeline % part)
    drop = "builtin.module(func.func(sdy-drop-sharding-rules))"
    assert pyshardy.run_pipeline(pyshardy.load(between), drop).text() == pyshardy.run_pipeline(found, drop).text()
    assert between != pyshardy.load(CONFLICT).text()


def test_the_last_priority_is_the_whole() -> None:
    result = pyshardy.propagate(pyshardy.load(CONFLICT))
    assert result.after_priority(3).module.text() == result.module.text()
    assert result.after_priority(0).module.text() != result.module.text()
