"""Rows that are looked up in one list of the rows of all examples."""

from __future__ import annotations

from pathlib import Path

import pytest
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
    array((2048, 1024, 512), jnp.bfloat16, "data"),
    array((2048, 256), jnp.int32, "data"),
)
"""
SOUND = PICK.replace("x.reshape(batch * rows, width)[flat]", "jnp.take_along_axis(x, places[..., None], axis=1)")


def found(text: str, path: Path) -> list[Finding]:
    diagnosis = pyshardy.doctor(load(text, path), hardware="h100")
    return [one for one in diagnosis.findings if "are looked up in one list" in one.what]


@pytest.mark.parametrize(
    "lookup", ["x.reshape(batch * rows, width)[flat]", "jnp.take(x.reshape(-1, width), flat, axis=0)"]
)
def test_a_lookup_in_the_rows_of_all_examples_is_a_finding(lookup: str, tmp_path: Path) -> None:
    """Also if a function of JAX does it; its time is that of the lookup in each."""
    (one,) = found(PICK.replace("x.reshape(batch * rows, width)[flat]", lookup), tmp_path / "pick.py")
    assert "rows of 2048 examples are looked up in one list of all at " in one.what and one.what.endswith(
        'loses "data"'
    )
    assert one.place is not None and one.place[1] == 12 and "jnp.take_along_axis" in one.cure
    assert "merges the batch with 1024 rows of each example" in one.why
    sound = pyshardy.cost(load(SOUND, tmp_path / "sound.py"), "h100")
    assert one.after is not None and one.before.seconds > 1.5 * sound.step_seconds
    assert abs(one.after.seconds / sound.step_seconds - 1) < 0.05


def test_a_lookup_in_each_example_is_sound(tmp_path: Path) -> None:
    assert found(SOUND, tmp_path / "sound.py") == []


def test_rows_that_no_axis_splits_are_sound(tmp_path: Path) -> None:
    whole = PICK.replace(', "data")', ")").replace(
        "array((512, 512), jnp.bfloat16)", 'array((512, 512), jnp.bfloat16, "data")'
    )
    assert found(whole, tmp_path / "whole.py") == []
