"""Laws of plans: they arrive, by way of valid shardings, and every step finds its data where it looks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.axes import Axes
from pyshardy.core.boxes import Box, device_boxes, local_shape
from pyshardy.core.collectives import Collective, CollectiveKind
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.reshard.collective_plan import CollectivePlan, gather_and_slice, plan_collectives

from .strategies import meshes, tensor_shardings

Boxes = dict[int, Box]
Cell = tuple[int, ...]


class Reshard(NamedTuple):
    """What is to be planned."""

    before: TensorSharding
    after: TensorSharding
    meshes: dict[str, Mesh]
    shape: tuple[int, ...]

    def mesh(self, sharding: TensorSharding) -> Mesh:
        assert isinstance(sharding.mesh, str)
        return self.meshes[sharding.mesh]

    def boxes(self, sharding: TensorSharding) -> Boxes:
        return device_boxes(sharding, self.mesh(sharding), self.shape)


@st.composite
def reshards(draw: st.DrawFn, *, is_divisible: bool = False) -> Reshard:
    """A reshard on one mesh or to another order of its devices.

    Args:
        is_divisible: Whether every sharding divides every dimension.
    """
    mesh = draw(meshes(min_axes=1, max_axes=4, max_size=24))
    order = draw(st.permutations(range(mesh.size)))
    found = {"first": mesh, "second": Mesh(mesh.axes, order)}
    rank = draw(st.integers(0, 3))
    names = draw(st.sampled_from([("first", "first"), ("first", "second")]))
    before, after = (draw(tensor_shardings(mesh, rank, name)).with_unreduced(()) for name in names)
    sizes = st.just(mesh.size) if is_divisible else st.integers(0, 24)
    return Reshard(before, after, found, tuple(draw(sizes) for _ in range(rank)))


def plan_of(reshard: Reshard) -> CollectivePlan:
    before, after = reshard.before, reshard.after
    plan = plan_collectives(before, after, reshard.mesh(before), reshard.mesh(after), reshard.shape)
    assert plan is not None
    return plan


def detour_of(reshard: Reshard) -> CollectivePlan:
    return gather_and_slice(reshard.before, reshard.after, reshard.mesh(reshard.after), reshard.shape)


def check_arrives(reshard: Reshard, plan: CollectivePlan) -> None:
    """Every step begins where the one before ends, every sharding is valid, and the last holds what it should."""
    now = reshard.before
    for step in plan:
        assert step.before is now
        now = step.after
        check_sharding(now, reshard.mesh(now), len(reshard.shape))
        assert now.is_fully_closed and not now.replicated
    assert reshard.boxes(now) == reshard.boxes(reshard.after)


def cells(box: Box) -> set[Cell]:
    """The elements that a device holds."""
    return set(product(*map(range, box.starts, box.stops)))


def all_axes(step: Collective) -> Axes:
    axes = [axis for dim in (*step.axes, *(param.axes for param in step.params)) for axis in dim]
    return tuple(axes)


def check_step(reshard: Reshard, step: Collective) -> None:
    """Devices have what they need: themselves, in their group, or from the one device that sends to them."""
    assert step.before is not None
    old, new = reshard.boxes(step.before), reshard.boxes(step.after)
    before_mesh, mesh = reshard.mesh(step.before), reshard.mesh(step.after)
    if step.kind is CollectiveKind.COLLECTIVE_PERMUTE:
        assert Counter(old.values()) == Counter(new.values())  # there is one who sends to every one
        return
    assert before_mesh is mesh
    axes = () if step.kind is CollectiveKind.ALL_SLICE else all_axes(step)
    for group in replica_groups(axes, mesh):
        held = union(old[device] for device in group)
        for device in group:
            needed = cells(new[device])
            assert needed <= held
            assert step.kind is not CollectiveKind.ALL_GATHER or needed == held


def union(boxes: Iterable[Box]) -> set[Cell]:
    return {cell for box in boxes for cell in cells(box)}


@given(reshards())
def test_plans_arrive(reshard: Reshard) -> None:
    check_arrives(reshard, plan_of(reshard))


@given(reshards())
def test_the_detour_arrives(reshard: Reshard) -> None:
    check_arrives(reshard, detour_of(reshard))


@given(reshards(is_divisible=True))
def test_every_step_finds_its_data(reshard: Reshard) -> None:
    for step in (*plan_of(reshard), *detour_of(reshard)):
        check_step(reshard, step)


@given(reshards(is_divisible=True))
def test_bytes_follow_from_what_changes_hands(reshard: Reshard) -> None:
    """A device receives at least what it needs and does not have."""
    for step in plan_of(reshard):
        assert step.before is not None
        mesh = reshard.mesh(step.after)
        sent = step.sent_bytes_per_device(1, reshard.shape, mesh)
        old, new = reshard.boxes(step.before), reshard.boxes(step.after)
        assert sent >= max(len(cells(new[device]) - cells(old[device])) for device in old)
        assert step.sent_bytes_per_device(4, reshard.shape, mesh) == 4 * sent


@given(reshards())
def test_nothing_is_done_for_equal_shardings(reshard: Reshard) -> None:
    assert plan_of(reshard._replace(after=reshard.before)) == ()


@given(reshards())
def test_slices_cost_nothing_and_gathers_grow(reshard: Reshard) -> None:
    for step in plan_of(reshard):
        mesh = reshard.mesh(step.after)
        sizes = [local_shape(sharding, mesh, reshard.shape) for sharding in (step.before, step.after)]
        if step.kind is CollectiveKind.ALL_SLICE:
            assert step.sent_bytes_per_device(4, reshard.shape, mesh) == 0
            assert all(new <= old for old, new in zip(*sizes))
        if step.kind is CollectiveKind.ALL_GATHER:
            assert all(new >= old for old, new in zip(*sizes))
