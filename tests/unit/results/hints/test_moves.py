"""Hints that put axes elsewhere: on another dimension of an input, or of a value that a line computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import Partition
from pyshardy.ir.source_values import source_values
from pyshardy.results.hints.moves import ConstraintEdit, moved_values

MICROBATCHES = """\
import jax
import jax.numpy as jnp


def step(w, x):
    xs = x.reshape(4, 64, 32)

    def body(total, part):
        return total + jax.grad(lambda w: (jnp.tanh(part @ w) ** 2).mean())(w), None

    return jax.lax.scan(body, jnp.zeros_like(w), xs)[0]
"""
EMBEDDING = """\
import jax.numpy as jnp


def predict(params, tokens):
    x = params["embed"][tokens]
    h = jnp.tanh(x @ params["w1"])
    return h @ params["w2"]
"""


def shape(*sizes: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def function(path: Path, text: str, name: str) -> Any:
    """A function in a file of its own, which hints and patches name."""
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, path, "exec"), names)
    return names[name]


def stacked(spec: Any) -> Partition:
    """Layers in a stack, which a loop takes one by one."""

    def forward(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)[0]

    specs = (spec, P("data"))
    module = pyshardy.load(
        forward, shape(8, 64, 64), shape(128, 64), mesh={"data": 8}, in_shardings=specs, out_shardings=P("data")
    )
    return pyshardy.partition(module)


def microbatches(path: Path) -> Partition:
    """Parts of a batch, whose reshape splits the axis of the batch."""
    step = function(path, MICROBATCHES, "step")
    specs = (P(), P("data"))
    module = pyshardy.load(step, shape(32, 32), shape(256, 32), mesh={"data": 8}, in_shardings=specs, out_shardings=P())
    return pyshardy.partition(module)


def test_an_axis_on_the_layers_moves_to_another_dimension() -> None:
    """The whole weights would send nothing, and take three times the memory."""
    found = stacked(P("data"))
    (story,) = found.hints()
    assert story.hint is not None
    assert story.hint.startswith(
        "annotate `weights` as P(None, 'data') instead of P('data'): all collectives then send "
    )
    moved = stacked(P(None, "data"))
    assert moved.traffic.sent_bytes_per_device < found.traffic.sent_bytes_per_device
    assert moved.bytes_per_device <= 1.05 * found.bytes_per_device
    assert story.patch == ""


def test_a_value_is_constrained_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    found = microbatches(path)
    (story,) = found.hints(1)
    assert story.hint is not None
    assert "constrain `xs` at " in story.hint
    assert "model.py:6 by jax.lax.with_sharding_constraint(..., P(None, 'data')): all collectives then" in story.hint
    added = "+    xs = jax.lax.with_sharding_constraint(xs, jax.sharding.PartitionSpec(None, 'data'))"
    assert added in story.patch.splitlines()


def test_the_hint_saves_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    found = microbatches(path)
    (story,) = found.hints(1)
    constrained = MICROBATCHES.replace(
        "(4, 64, 32)\n", "(4, 64, 32)\n    xs = jax.lax.with_sharding_constraint(xs, P(None, 'data'))\n"
    )
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    step = function(path, f"from jax.sharding import PartitionSpec as P\n{constrained}", "step")
    with jax.set_mesh(mesh):
        lowered = jax.jit(step, in_shardings=(P(), P("data")), out_shardings=P()).lower(shape(32, 32), shape(256, 32))
    then = pyshardy.partition(lowered)
    assert story.hint is not None
    assert f"send {pyshardy_bytes(then)} per device instead of {pyshardy_bytes(found)}" in story.hint


def pyshardy_bytes(partition: Partition) -> str:
    from pyshardy.core.text import format_bytes

    return format_bytes(partition.traffic.sent_bytes_per_device)


def test_a_sum_that_sends_most_has_hints_too(tmp_path: Path) -> None:
    """The lookup loses the axis of the batch, so the product after it sums over the axis."""
    predict = function(tmp_path / "model.py", EMBEDDING, "predict")
    params = {"embed": shape(4096, 128), "w1": shape(128, 512), "w2": shape(512, 128)}
    specs = {"embed": P("model", "data"), "w1": P("data", "model"), "w2": P("model", "data")}
    module = pyshardy.load(
        predict, params, shape(16, 128, dtype="int32"), mesh={"data": 4, "model": 2}, in_shardings=(specs, P("data"))
    )
    found = pyshardy.partition(module)
    assert found.collectives[0].kind == "all_reduce"
    hints = [story.hint for story in found.hints(0)]
    assert len(hints) == 1 and hints[0] is not None and "constrain `x` at " in hints[0]
    assert "with_sharding_constraint(..., P('data'))" in hints[0]


def test_one_hint_is_given_once() -> None:
    hints = [story.hint for story in stacked(P("data")).hints(9)]
    assert len(hints) == len(set(hints))


def test_a_file_that_cannot_be_read_has_columns_and_no_patch(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    found = microbatches(path)
    cause = next(one.causes[0] for one in found.explained_collectives if one.causes[0].mismatch)
    path.unlink()
    edits = list(moved_values(found.why, cause, source_values(found.before.root)))
    assert edits and all(isinstance(one, ConstraintEdit) and one.patch == "" for one in edits)
    assert "constrain the expression in columns 9 to 29 at " in edits[0].text


def test_axes_go_only_where_they_divide(tmp_path: Path) -> None:
    """Four parts are too few for eight devices."""
    found = microbatches(tmp_path / "model.py")
    cause = next(one.causes[0] for one in found.explained_collectives if one.causes[0].mismatch)
    edits = list(moved_values(found.why, cause, source_values(found.before.root)))
    dims = {one.sharding.dim_axes for one in edits if one.value.shape == (4, 64, 32)}
    assert dims and all(not axes[0] for axes in dims)


def test_a_conflict_says_how_far_an_axis_reaches(tmp_path: Path) -> None:
    """The reshape of the batch leaves two of eight ways to the rows of a part."""
    reach = '; before, 4 of 8 ways of "data" split dimension 0 and 2 of 8 ways of "data" split dimension 1'
    assert [story for story in microbatches(tmp_path / "model.py").collectives if story.reason.endswith(reach)]
