"""Constraints whose line is not where the spec is written, or that several modules share: each is changed there."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkup.test_doctor import load, step_seconds
from search.patching import apply_patch

import pyshardy
from pyshardy.checkup.kinds.code import other_cures

SOURCE = """\
import jax
import jax.numpy as jnp
from jax.lax import with_sharding_constraint as wsc
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
BATCH = "data"
TOKENS = NamedSharding(mesh, P(None, BATCH, None, "model"))
by_name = {"tokens": TOKENS}


def pin(x, *axes):
    return wsc(x, NamedSharding(mesh, P(*axes)))


def attend(p, x):
    qkv = jnp.einsum("btd,dchk->cbhtk", x, p["qkv"])
    qkv = CONSTRAIN
    w = jax.nn.softmax(jnp.einsum("bhqk,bhtk->bhqt", qkv[0], qkv[1]))
    y = jnp.einsum("bhqt,bhtk->bhqk", w, qkv[2])
    return pin(x + jnp.einsum("bhqk,hkd->bqd", y, p["o"]), BATCH)


def step(layers, x, y):
    for p in layers:
        x, y = attend(p, x), attend(p, y)
    return x, y


def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))


step = jax.jit(step)
weights = {"qkv": array((4096, 3, 32, 128), None, None, "model"), "o": array((32, 128, 4096), "model")}
arguments = [weights] * 2, array((32, 1024, 4096), BATCH), array((32, 512, 4096), BATCH)
"""
WAYS = {
    "a helper with axes": ('pin(qkv, None, BATCH, None, "model")', 'pin(qkv, None, BATCH, "model")'),
    "a spec under another name": (
        'wsc(qkv, NamedSharding(mesh, P(None, BATCH, None, "model")))',
        'wsc(qkv, NamedSharding(mesh, P(None, BATCH, "model")))',
    ),
    "a sharding from elsewhere": (
        'wsc(qkv, by_name["tokens"])', 'wsc(qkv, NamedSharding(mesh, P(None, "data", "model")))'
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_line_of_two_uses_is_changed(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both uses have other sizes, and both are changed; the patched source costs what was tried."""
    monkeypatch.chdir(tmp_path)
    number, (wrong, right) = [*WAYS].index(way), WAYS[way]
    source = SOURCE.replace("CONSTRAIN", wrong)
    module = load(source, tmp_path / f"shared_{number}.py")
    text = f"constrain to P(None, 'data', 'model') at shared_{number}.py:18"
    (cure,) = (one for one in other_cures(pyshardy.propagate(module)) if one.text == text)
    mended = "".join(apply_patch(source.splitlines(keepends=True), cure.make_patch()))
    assert f"    qkv = {right}\n" in mended
    tried, patched = (step_seconds(one) for one in (cure.apply(module), load(mended, tmp_path / f"mended_{number}.py")))
    assert tried == patched < 0.9 * step_seconds(module)
