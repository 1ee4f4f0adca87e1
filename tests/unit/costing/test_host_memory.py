"""Values in the memory of the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.costing.host_memory import TO_HOST
from pyshardy.costing.program import walk_ops

from .build import described

MIB = 1 << 20
LAYERS, ROWS, WIDTH = 16, 8192, 1024
KEPT = 2 * ROWS * WIDTH // MIB  # the MiB of an activation of a device


def _offloaded(names: list[str]) -> object:
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=names,
        offload_src="device",
        offload_dst="pinned_host",
    )


def step(policy: object) -> pyshardy.Cost:
    """A training step of layers in a scan, with a name for an activation of each."""

    def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "kept")), None

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jax.lax.scan(jax.checkpoint(layer, policy=policy), x, weights)[0])

    shape = jax.ShapeDtypeStruct
    module = pyshardy.load(
        jax.grad(loss),
        shape((LAYERS, WIDTH, WIDTH), "bfloat16"),
        shape((8 * ROWS, WIDTH), "bfloat16"),
        mesh={"data": 8},
        in_shardings=(P(), P("data")),
        platform="cuda",
    )
    return pyshardy.cost(module, "h100")


def test_activations_that_are_offloaded_leave_the_device() -> None:
    kept, offloaded = step(jax.checkpoint_policies.save_only_these_names("kept")), step(_offloaded(["kept"]))
    assert kept.peak_bytes - offloaded.peak_bytes == LAYERS * KEPT * MIB
    assert kept.estimate.host_bytes == 0
    assert offloaded.estimate.host_bytes == 2 * LAYERS * KEPT * MIB  # to the host, and back
    assert offloaded.estimate.host_seconds == pytest.approx(offloaded.estimate.host_bytes / 64e9)
    assert offloaded.step_seconds > kept.step_seconds
    assert {row.kind for row in offloaded.estimate.collectives} == {row.kind for row in kept.estimate.collectives}
    assert "to and from the host" in str(offloaded) and "to and from the host" not in str(kept)


def test_copies_have_a_track_of_their_own() -> None:
    events = step(_offloaded(["kept"])).trace()["traceEvents"]
    track = next(one["tid"] for one in events if one["ph"] == "M" and one.get("args") == {"name": "host"})
    names = {one["name"].rpartition("/")[2] for one in events if one["ph"] == "X" and one["tid"] == track}
    assert names == {"copy_to_host", "copy_from_host"}


MOVED = """func.func @main(%x: tensor<1024x1024xf32> {mhlo.memory_kind = "pinned_host"}, %y: tensor<1024x1024xf32>)
    -> (tensor<1024x1024xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%x) {
    mhlo.frontend_attributes = {_xla_buffer_placement = "device"}}
    : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.add %0, %y : tensor<1024x1024xf32>
  %2 = stablehlo.custom_call @annotate_device_placement(%1) {
    mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}
    : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %2 : tensor<1024x1024xf32>
}"""


def test_arguments_and_results_on_the_host_take_no_memory_of_the_device() -> None:
    found = pyshardy.cost(MOVED, "h100")
    assert found.peak_bytes == 2 * 4 * MIB  # the other argument, and the copy, in which the sum is computed
    assert found.estimate.host_bytes == 2 * 4 * MIB
    given = described(MOVED)
    assert [entry.is_on_host for entry in given.inputs] == [True, False]


def test_a_move_within_one_memory_costs_nothing() -> None:
    text = MOVED.replace('"pinned_host"}}', '"device"}}')
    found = pyshardy.cost(text.replace(' {mhlo.memory_kind = "pinned_host"}', ""), "h100")
    assert found.estimate.host_bytes == 0
    assert found.peak_bytes == 3 * 4 * MIB


def test_compilers_names_are_known_too() -> None:
    text = MOVED.replace("@annotate_device_placement(%x)", "@MoveToDevice(%x)")
    text = text.replace("@annotate_device_placement(%1)", "@MoveToHost(%1)")
    assert pyshardy.cost(text, "h100").estimate.host_bytes == pyshardy.cost(MOVED, "h100").estimate.host_bytes


def test_moves_are_marked_in_the_program() -> None:
    marked = [op.kind.fact("placement") for op in walk_ops(described(MOVED).body)]
    assert marked == ["device", None, "host"] and TO_HOST == "copy_to_host"
