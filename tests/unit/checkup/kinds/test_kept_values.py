"""Loops that keep values for the gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkup.test_doctor import load

import pyshardy
from pyshardy.checkup.kinds.kept_values import keeping_loop

from ..diffs import added

STACK = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(weights, x):
    def layer(x, w):
        return jnp.tanh(x @ w), None

    x, _ = jax.lax.scan(layer, x, weights)
    return (x.astype(jnp.float32) ** 2).mean()


def array(shape, dtype, *axes):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))


step = jax.jit(jax.grad(loss))
arguments = array((8, 1024, 1024), jnp.bfloat16), array((SIZE, 1024), jnp.bfloat16, "data")
"""


def stack(path: Path, size: int = 512, change: tuple[str, str] = ("", "")) -> pyshardy.Module:
    text = STACK.replace("SIZE", str(size))
    assert change[0] in text
    return load(text.replace(*change) if change[0] else text, path)


def test_what_the_loop_runs_is_computed_again(tmp_path: Path) -> None:
    loop = keeping_loop(stack(tmp_path / "stack.py"))
    assert loop is not None and loop.place[1] == 12 and loop.bytes >= 8 * 512 * 1024 * 2
    assert added(loop.patch()) == ["    x, _ = jax.lax.scan(jax.checkpoint(layer), x, weights)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def layer", "    @jax.checkpoint\n    def layer"),
        ("scan(layer", "scan(jax.remat(layer)"),
        ("import jax\n", "from jax import lax\nimport importlib\njax = importlib.import_module('jax')\n"),
    ],
)
def test_there_is_no_patch_where_it_is_not_sure(tmp_path: Path, old: str, new: str) -> None:
    loop = keeping_loop(stack(tmp_path / "stack.py", change=(old, new)))
    assert loop is None or loop.patch() == ""


def test_a_loop_without_a_gradient_keeps_nothing(tmp_path: Path) -> None:
    assert keeping_loop(stack(tmp_path / "stack.py", change=("jax.jit(jax.grad(loss))", "jax.jit(loss)"))) is None


def test_a_program_that_does_not_fit_has_the_patch(tmp_path: Path) -> None:
    found = pyshardy.doctor(stack(tmp_path / "stack.py", 1 << 26), hardware="h100").findings
    (one,) = (one for one in found if one.kind.value == "memory")
    assert "jax.checkpoint around what jax.lax.scan runs at " in one.cure and one.after is None
    assert added(one.patch) == ["    x, _ = jax.lax.scan(jax.checkpoint(layer), x, weights)"]
