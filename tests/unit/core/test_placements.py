"""PyTorch's placements."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import given

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.placements import Partial, Replicate, Shard, from_torch, to_torch
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError

from ...property.strategies import on_a_mesh, tensor_shardings

MESH = Mesh([("x", 4), ("y", 2)])
EXAMPLES = [
    ("[{}, {}]", (Replicate(), Replicate())),
    ('[{"x"}, {}]', (Shard(0), Replicate())),
    ('[{"x", "y"}, {}]', (Shard(0), Shard(0))),
    ('[{"y"}, {"x"}]', (Shard(1), Shard(0))),
    ('[{}, {"x"}], unreduced={"y"}', (Shard(1), Partial())),
    ('[{}, {}], unreduced=max{"x", "y"}', (Partial("max"), Partial("max"))),
]


@pytest.mark.parametrize(("text", "placements"), EXAMPLES)
def test_examples(text: str, placements: tuple[object, ...]) -> None:
    sharding = parse_sharding(f"<@mesh, {text}>")
    assert to_torch(sharding, MESH) == placements
    assert from_torch(placements, MESH, 2) is sharding


@given(on_a_mesh(tensor_shardings))
def test_there_and_back(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, given_ = drawn
    sharding = given_.without_priorities().closed()
    orders = [[mesh.positions[axis.name] for axis in dim.axes] for dim in sharding.dims]
    if all(axis.is_full for axis in sharding.all_axes()) and all(order == sorted(order) for order in orders):
        assert from_torch(to_torch(sharding, mesh), mesh, sharding.rank) is sharding
    else:
        with pytest.raises(InvalidShardingError, match="writing a sharding as placements: got"):
            to_torch(sharding, mesh)


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ('<@m, [{"x":(1)2}]>', r'got the sub-axis "x":\(1\)2'),
        ('<@m, [{"x", ?}]>', "got an open dimension"),
        ('<@m, [{"x"}p1]>', "got a priority"),
        ('<@m, [{"y", "x"}]>', 'got a dimension split by "y", "x"'),
    ],
)
def test_what_placements_cannot_say(sharding: str, message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        to_torch(parse_sharding(sharding), MESH)


class _StridedShard:
    dim = 0


@pytest.mark.parametrize(
    ("placements", "message"),
    [
        ([Shard(0)], "got 1 placements, needed 2, one per axis"),
        ([Shard(2), Replicate()], r"got Shard\(dim=2\), needed a dimension of a tensor of rank 2"),
        ([Partial("avg"), Replicate()], "got partial values by avg, needed sum, max, min"),
        ([Partial("max"), Partial("min")], "got partial values of the kinds max, min, needed one kind"),
        ([_StridedShard(), Replicate()], "needed Shard, Replicate or Partial"),
    ],
)
def test_placements_that_are_no_sharding(placements: list[object], message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        from_torch(placements, MESH, 2)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch, which nothing here depends on")
def test_torch_says_the_same_of_every_device() -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    from torch.distributed import tensor

    from pyshardy.core.boxes import local_shape

    convert = {"Shard": lambda p: tensor.Shard(p.dim), "Replicate": lambda _: tensor.Replicate(),
               "Partial": lambda p: tensor.Partial(p.reduce_op)}  # fmt: skip
    for text, placements in EXAMPLES:
        sharding = parse_sharding(f"<@mesh, {text}>")
        theirs = [convert[type(placement).__name__](placement) for placement in placements]
        assert from_torch(theirs, MESH, 2) is sharding
        shape = [16, 24]
        for placement, (_, size) in zip(theirs, MESH.axes):
            if placement.is_shard():
                shape[placement.dim] //= size
        assert tuple(shape) == local_shape(sharding, MESH, (16, 24))
