"""How `partition` makes a program per device."""

from __future__ import annotations

from typing import ClassVar

from pyshardy.core.options import Options


class PartitionOptions(Options):
    """How a program is partitioned.

    Attributes:
        halo_exchange: Whether devices exchange halos where slices, pads and windows need them; if not, whole tensors
            are gathered.
        mesh_axes_groups: Whether to write replica groups as mesh axes. Otherwise they are lists of device ids, which
            every consumer of StableHLO accepts, but which grow with the number of devices. By default groups are mesh
            axes. There are two exceptions: a mesh with a device order, which XLA ignores in such groups, and a jaxlib
            that lacks such groups.
        rng_bit_generator_unsafe: Whether random bits may depend on the sharding; if not, every device computes all of
            them.
        replicate_unsupported: Whether an op that cannot run on shards runs on whole tensors, with a warning; if not, it
            is an error.
        dump_directory: The directory to which the module is written between the steps; if empty, it is not written.

    Raises:
        UsageError: A value has the wrong type.

    >>> PartitionOptions(halo_exchange=False).rng_bit_generator_unsafe
    False
    """

    of: ClassVar[str] = "partitioning"

    halo_exchange: bool = True
    mesh_axes_groups: bool | None = None
    rng_bit_generator_unsafe: bool = False
    replicate_unsupported: bool = True
    dump_directory: str = ""
