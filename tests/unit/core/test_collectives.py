from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.collectives import AllToAllParam, Collective, CollectiveKind
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding

MESH = Mesh([("a", 2), ("b", 4)])
A, B = AxisRef("a"), AxisRef("b")


def collective(kind: CollectiveKind, before: str | None, after: str, *axes: tuple[AxisRef, ...]) -> Collective:
    old = None if before is None else parse_sharding(f"<@m, {before}>")
    return Collective(kind, old, parse_sharding(f"<@m, {after}>"), axes)


GATHER = collective(CollectiveKind.ALL_GATHER, '[{"a", "b"}, {}]', '[{"a"}, {}]', (B,), ())
SLICE = collective(CollectiveKind.ALL_SLICE, None, '[{}, {"b"}]', (), (B,))
PERMUTE = collective(CollectiveKind.COLLECTIVE_PERMUTE, '[{"a"}, {}]', '[{"b":(1)2}, {}]')
STAY = collective(CollectiveKind.COLLECTIVE_PERMUTE, '[{"a"}, {}]', '[{"a"}, {}], unreduced={"b"}')
REDUCE = collective(CollectiveKind.ALL_REDUCE, '[{"a"}, {}], unreduced={"b"}', '[{"a"}, {}]', (B,))
SCATTER = collective(CollectiveKind.REDUCE_SCATTER, '[{"a"}, {}], unreduced={"b"}', '[{"a"}, {"b"}]', (), (B,))
MOVE = Collective(
    CollectiveKind.ALL_TO_ALL,
    parse_sharding('<@m, [{"a", "b"}, {}]>'),
    parse_sharding('<@m, [{"a"}, {"b"}]>'),
    params=(AllToAllParam((B,), 0, 1),),
)


@pytest.mark.parametrize(
    ("step", "shape", "elements"),
    [
        (GATHER, (16, 8), 3 * 2 * 8),  # three shards of 2x8 pass through
        (GATHER, (17, 8), 3 * 3 * 8),  # padding is sent too
        (SLICE, (16, 8), 0),
        (PERMUTE, (16, 8), 8 * 8),
        (STAY, (16, 8), 0),
        (REDUCE, (16, 8), 2 * 3 * 8 * 2),
        (REDUCE, (2, 3), 2 * 3 * 1),  # a quarter of 3 elements, rounded up
        (SCATTER, (16, 8), 3 * 8 * 2),
        (MOVE, (16, 8), 3 * 2 * 2),  # of 2x8, all but the own 2x2
    ],
)
def test_bytes(step: Collective, shape: tuple[int, ...], elements: int) -> None:
    assert step.sent_bytes_per_device(1, shape, MESH) == elements
    assert step.sent_bytes_per_device(8, shape, MESH) == 8 * elements


def test_an_order_of_devices_costs_a_shard() -> None:
    after = parse_sharding('<@n, [{"a"}, {}]>')
    step = Collective(CollectiveKind.COLLECTIVE_PERMUTE, PERMUTE.before, after)
    assert step.sent_bytes_per_device(1, (16, 8), MESH) == 64


@pytest.mark.parametrize(("step", "size"), [(GATHER, 4), (SLICE, 4), (MOVE, 4), (PERMUTE, 1), (REDUCE, 4)])
def test_group_sizes(step: Collective, size: int) -> None:
    assert step.group_size(MESH) == size


def test_text() -> None:
    assert str(GATHER) == 'all_gather [{"b"}, {}] -> <@m, [{"a"}, {}]>'
    assert str(MOVE) == 'all_to_all [{"b"}: 0->1] -> <@m, [{"a"}, {"b"}]>'
    assert str(PERMUTE) == 'collective_permute -> <@m, [{"b":(1)2}, {}]>'
