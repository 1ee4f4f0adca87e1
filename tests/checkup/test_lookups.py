"""Rows that are looked up in one list of the rows of all examples."""

from __future__ import annotations

from pathlib import Path

from checkup.test_doctor import load

import pyshardy
from pyshardy.report.diagnosis import Finding

PICK = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def forward(w, x, places):
    x = jnp.tanh(x @ w)
    batch, rows, width = x.shape
    flat = places + rows * jnp.arange(batch)[:, None]
    return x.reshape(batch * rows, width)[flat]


def array(shape, dtype, *axes):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))


step = jax.jit(forward)
arguments = (
    array((512, 512), jnp.bfloat16),
    array((64, 1024, 512), jnp.bfloat16, "data"),
    array((64, 32), jnp.int32, "data"),
)
"""
SOUND = PICK.replace("x.reshape(batch * rows, width)[flat]", "jnp.take_along_axis(x, places[..., None], axis=1)")


def found(text: str, path: Path) -> list[Finding]:
    diagnosis = pyshardy.doctor(load(text, path), hardware="h100")
    return [one for one in diagnosis.findings if "are looked up in one list" in one.what]


def test_a_lookup_in_the_rows_of_all_examples_is_a_finding(tmp_path: Path) -> None:
    (one,) = found(PICK, tmp_path / "pick.py")
    assert "rows of 64 examples are looked up in one list of all at " in one.what and 'loses "data": ' in one.what
    assert one.place is not None and one.place[1] == 12 and one.after is None
    assert "merges the batch with 1024 rows of each example" in one.why and "jnp.take_along_axis" in one.cure


def test_a_lookup_in_each_example_is_sound(tmp_path: Path) -> None:
    assert found(SOUND, tmp_path / "sound.py") == []


def test_rows_that_no_axis_splits_are_sound(tmp_path: Path) -> None:
    whole = PICK.replace('jnp.bfloat16, "data")', "jnp.bfloat16)").replace('jnp.int32, "data")', "jnp.int32)")
    assert (
        found(
            whole.replace("array((512, 512), jnp.bfloat16)", 'array((512, 512), jnp.bfloat16, "data")'),
            tmp_path / "whole.py",
        )
        == []
    )
