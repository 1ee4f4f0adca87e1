"""Which cures are another design, and which mend a fault."""

from __future__ import annotations

import re
from pathlib import Path

from checkup.test_doctor import CASES, load

import pyshardy
from pyshardy.checkup.kinds.ports import conflict_cures


def test_a_sum_by_design_comes_behind_faults(tmp_path: Path) -> None:
    """The product that a layer ends with is summed: other weights are a design, also where they save more."""
    part = pyshardy.partition(load(CASES["three weights with one mistake"].sound, tmp_path / "sums.py"))
    name, mesh = next((name, mesh) for name, mesh in part.meshes.items() if mesh.axes)
    cures = [one for one in conflict_cures(part, name, mesh) if "takes the sum" in one.why]
    assert cures and all(one.is_design for one in cures)


SCORES = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def layer(w, x):
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, w[name]) for name in "qkv")
    p = jax.nn.softmax(jnp.einsum("bqhk,bthk->bhqt", q, k))
    y = jnp.einsum("bhqt,bthk->bqhk", p, v)
    return x + jnp.einsum("bqhk,hkd->bqd", y, w["o"])


def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))


def forward(layers, x):
    for w in layers:
        x = layer(w, x)
    return x


step = jax.jit(forward)
weights = {name: array((1024, 16, 64), None, None, "model") for name in "qkv"}
arguments = [{**weights, "o": array((16, 64, 1024), None, "model")}] * 2, array((64, 512, 1024), "data")
"""


def test_a_sum_of_two_activations_is_a_fault_of_the_weights(tmp_path: Path) -> None:
    """The scores are summed along the dimension that is split; the product with `o` is summed by design."""
    part = pyshardy.partition(load(SCORES, tmp_path / "scores.py"))
    name, mesh = next((name, mesh) for name, mesh in part.meshes.items() if mesh.axes)
    cures = [one for one in conflict_cures(part, name, mesh) if "takes the sum" in one.why]
    of_scores, at_the_end = ([one for one in cures if f"scores.py:{line} takes" in one.why] for line in (10, 12))
    start = "annotate `layers[*]['k']`, `layers[*]['q']` and `layers[*]['v']` as P(None, 'model')"
    moved = [one for one in of_scores if one.text.startswith(start)]
    assert moved and not any(one.is_design for one in moved)
    assert at_the_end and all(one.is_design for one in at_the_end)


def test_weights_without_the_axis_of_the_batch_are_another_design(tmp_path: Path) -> None:
    """They are gathered where they are used, as FSDP does; a whole weight is no mended fault."""
    part = pyshardy.partition(load(CASES["a rule that lacks an axis"].sound, tmp_path / "whole.py"))
    name, mesh = next((name, mesh) for name, mesh in part.meshes.items() if mesh.axes)
    whole = [one for one in conflict_cures(part, name, mesh) if re.search(r"annotate `layers.* as P\(\)", one.text)]
    assert whole and all(one.is_design for one in whole)
