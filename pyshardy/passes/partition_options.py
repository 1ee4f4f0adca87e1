"""How `partition` makes a program per device."""

from __future__ import annotations

from typing import ClassVar

from pyshardy.core.options import Options


class PartitionOptions(Options):
    """How a program is partitioned.

    Attributes:
        halo_exchange: Whether devices exchange the borders of their shards where slices and pads need them; if not,
            whole tensors are gathered.
        mesh_axes_groups: Whether groups of devices are written as axes of a mesh. If not, as numbers of devices, which
            every consumer of StableHLO takes, but which grow with their number. By default as axes, but as numbers on
            a mesh with an order of its devices, which XLA forgets, and where jaxlib has no groups along axes.
        rng_bit_generator_unsafe: Whether random bits may depend on the sharding, which saves gathering them.
        replicate_unsupported: Whether an op that cannot run on shards runs on whole tensors, with a warning; if not,
            the program is refused.
        dump_directory: Where the module is written between the steps; nowhere if it is empty.

    Raises:
        UsageError: A value that is none of its type.

    >>> PartitionOptions(halo_exchange=False).rng_bit_generator_unsafe
    False
    """

    of: ClassVar[str] = "partitioning"

    halo_exchange: bool = True
    mesh_axes_groups: bool | None = None
    rng_bit_generator_unsafe: bool = False
    replicate_unsupported: bool = True
    dump_directory: str = ""
