"""Constraints that keep a batch along some of its axes."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkup.test_doctor import load

import pyshardy
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.code import batch_constraint_cures
from pyshardy.ir.op_lists import ops_named

from ..diffs import added

ROWS = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("replica", "fsdp"), axis_types=(AxisType.Auto,) * 2)


def named(*spec):
    return NamedSharding(mesh, P(*spec))


def by_batch(x):
    return jax.lax.with_sharding_constraint(x, named("replica"))


def forward(w, x):
    h = by_batch(jnp.tanh(x @ w))
    return by_batch(h.sum(-1))


def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=named(*axes))


step = jax.jit(forward)
arguments = array((512, 512), None, "fsdp"), array((64, 512), ("replica", "fsdp"))
"""


def cures(module: pyshardy.Module) -> list[Cure]:
    return list(batch_constraint_cures(pyshardy.propagate(module)))


def specs(module: pyshardy.Module) -> list[str]:
    return [str(op.attrs["sharding"]) for op in ops_named(module.root, ("sdy.sharding_constraint",))]


def test_all_constraints_of_a_helper_keep_all_axes_of_the_batch(tmp_path: Path) -> None:
    module = load(ROWS, tmp_path / "rows.py")
    (cure,) = cures(module)
    assert "rows.py:13 keeps the batch, which comes in as P(('replica', 'fsdp')), along fewer axes" in cure.what
    assert cure.text.startswith("constrain to P(('replica', 'fsdp')) at ") and cure.place and cure.place[1] == 13
    assert added(cure.make_patch()) == ['    return jax.lax.with_sharding_constraint(x, named(("replica", "fsdp")))']
    right = load(ROWS.replace('named("replica")', 'named(("replica", "fsdp"))'), tmp_path / "right.py")
    assert specs(cure.apply(module)) == specs(right) != specs(module)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('array((64, 512), ("replica", "fsdp"))', 'array((64, 512), "replica")'),
        ('named("replica")', "named()"),
        ('x, named("replica")', 'x, named("replica", *["fsdp"] * (x.ndim > 1))'),
        ("h.sum(-1)", "h.sum(0)[:6]"),
    ],
)
def test_other_constraints_stay(tmp_path: Path, old: str, new: str) -> None:
    """Those of another batch, of no axis of it, with its axes elsewhere, and of rows that the axes do not divide."""
    assert old in ROWS
    found = cures(load(ROWS.replace(old, new), tmp_path / "rows.py"))
    assert all("ndim" in new and "P('replica') at" in one.what for one in found)
