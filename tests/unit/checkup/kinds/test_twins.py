"""Frozen copies of weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkup.test_doctor import load

import pyshardy
from pyshardy.checkup.kinds.twins import twin_cures, twins
from pyshardy.frontend.interface import input_tensors

from ..diffs import added

DPO = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
names = "abcdef"


def score(weights, rows):
    for name in names:
        rows = jnp.tanh(rows @ weights[name])
    return rows.sum()


def update(state, reference, rows):
    def loss(params):
        return score(params, rows) * score(reference, rows)

    return {"params": jax.tree.map(lambda p, g: p - g, state["params"], jax.grad(loss)(state["params"]))}


def abstract(tree, specs):
    def one(x, spec):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))

    return jax.tree.map(one, tree, specs)


def make():
    shapes = {name: jax.ShapeDtypeStruct((512, 512), jnp.float32) for name in names}
    specs = {name: P(None, "x") for name in names}
    state = {"params": abstract(shapes, specs)}
    reference = abstract(shapes, jax.tree.map(lambda _: P(), shapes))
    return state, reference, jax.ShapeDtypeStruct((64, 512), jnp.float32)


step = jax.jit(update, donate_argnums=0)
arguments = make()
"""
WHOLE = "    reference = abstract(shapes, jax.tree.map(lambda _: P(), shapes))\n"


def program(tmp_path: Path, line: str = WHOLE) -> pyshardy.Module:
    return load(DPO.replace(WHOLE, line), tmp_path / "dpo.py")


def test_a_frozen_copy_is_split_as_the_weights_are(tmp_path: Path) -> None:
    module = program(tmp_path)
    (cure,) = twin_cures(module)
    assert cure.text == "annotate the weights of `reference` as those of `state['params']`" and not cure.is_design
    assert cure.what.startswith("6 weights of `reference`, such as `reference['a']` with P(), are split less")
    assert added(cure.make_patch()) == ["    reference = abstract(shapes, specs)"]
    inputs = input_tensors(cure.apply(module).root)
    assert {one.sharding for one in inputs if "rows" not in one.name} == {inputs[0].sharding} and inputs[0].sharding


@pytest.mark.parametrize(
    "line",
    [
        "    reference = abstract(shapes, specs)\n",
        '    reference = abstract(shapes, {name: P("x") for name in names})\n',
    ],
)
def test_what_is_no_copy_that_is_split_less_is_left(tmp_path: Path, line: str) -> None:
    assert list(twins(program(tmp_path, line))) == []


def test_the_arrays_of_the_other_tree_are_not_handed_over(tmp_path: Path) -> None:
    """Only an argument that states specs is."""
    line = "    whole = jax.tree.map(lambda _: P(), shapes)\n    reference = abstract(shapes, whole)\n"
    (cure,) = twin_cures(program(tmp_path, line))
    assert all("specs)" not in one for one in added(cure.make_patch()))
