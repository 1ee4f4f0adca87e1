"""`sdy-convert-global-to-local`: turns a program on whole tensors into that of one device.

Source: docs/semantics/partitioner.md#from-global-to-local
Source: docs/semantics/partitioner.md#collectives
"""

from __future__ import annotations

from functools import cache

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import format_sharding_list
from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, functions, is_declaration, result_sharding, return_op
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.local.localizer import Localizer, LocalOptions
from pyshardy.transforms.local.table import localize_all


class ConvertGlobalToLocal(Pass):
    """Give every value the type of its part on one device, and make ops work on that.

    Collectives of the sdy dialect become those of StableHLO. Ops that depend on the device's position compute it.

    Attributes:
        per_dim_all_gather: Whether a gather of several dimensions is one collective per dimension.
        combine_multi_dimension_reduce_scatter: Whether a scatter of several dimensions is one collective, not an
            all-reduce and a slice.
        enable_rgv3: Whether groups of devices are written as axes of a mesh, not as lists of device ids.
        rgv3_where_same: Whether groups are axes only if every consumer reads them alike: not on a mesh with a device
            order, which XLA forgets, nor if the installed StableHLO has no groups along axes.
        replica_count: The number of replicas; if several, the replica id identifies a device.
        partition_count: The number of partitions; only one of the two counts can exceed 1.
        name_causes: Whether collectives that complete a result are located at its op, by name.
    """

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    enable_rgv3: bool = True
    rgv3_where_same: bool = False
    replica_count: int = 1
    partition_count: int = 1
    name_causes: bool = False

    name = "sdy-convert-global-to-local"
    own_options = frozenset(("rgv3_where_same", "name_causes"))

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        if self.replica_count > 1 and self.partition_count > 1:
            raise PassError(op, "is for several replicas and several partitions; one of the two counts must be 1")
        options = LocalOptions(
            self.per_dim_all_gather,
            self.combine_multi_dimension_reduce_scatter,
            self.enable_rgv3,
            self.rgv3_where_same,
            self.replica_count > 1,
            self.name_causes,
        )
        note_shardings(op, context)
        localize(op, Localizer(op, context, options))


def localize(root: Op, local: Localizer) -> None:
    """Make all ops of a module local.

    Raises:
        PassError: An op cannot run on shards.
    """
    localize_all(ops_in(root), local)
    local.finish()


def note_shardings(root: Op, context: PassContext) -> None:
    """Record on the module the shardings of arguments and results of the main function."""
    main = next((op for op in functions(root) if op.attrs["sym_name"] == "main"), None)
    if main is None or is_declaration(main):
        return
    meshes = context.meshes
    mesh = next(iter(meshes.values()), Mesh([]))

    @cache
    def noted(sharding: TensorSharding | None, rank: int) -> TensorSharding:
        if sharding is None:
            return TensorSharding.fully_replicated(mesh, rank)
        return sharding.with_mesh(mesh_of(sharding, meshes))

    inputs = [noted(arg_sharding(main, arg.index), arg.type.rank) for arg in main.region.blocks[0].args]
    outputs = [
        noted(result_sharding(main, index) or get_sharding(value), value.type.rank)
        for index, value in enumerate(return_op(main).operands)
    ]
    for name, shardings in (("sdy.parameters_shardings", inputs), ("sdy.output_shardings", outputs)):
        text = format_sharding_list(tuple(shardings))
        root.set_attr(name, context.attrs.parse(f"#sdy.sharding_per_value{text}"))
