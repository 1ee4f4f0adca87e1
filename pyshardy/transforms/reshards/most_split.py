"""The sharding with the most shards."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of, shard_counts


def most_split(shardings: Sequence[TensorSharding | None], meshes: Meshes) -> TensorSharding | None:
    """The sharding with the most shards; the first one of several."""
    found = [sharding for sharding in shardings if sharding is not None]
    return max(found, key=lambda sharding: prod(shard_counts(sharding, mesh_of(sharding, meshes))), default=None)
