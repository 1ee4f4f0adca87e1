"""`sdy-convert-global-to-local`: turns a program on whole tensors into that of one device.

Source: docs/semantics/partitioner.md#from-global-to-local
Source: docs/semantics/partitioner.md#collectives
"""

from __future__ import annotations

from functools import cache

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import format_sharding_list
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
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
    """Give every value the type of its shard, and change ops so that they compute shards from shards.

    Collectives of the sdy dialect become collectives of StableHLO. Where an op depends on the device's position in the
    mesh, the program computes that position.

    Attributes:
        per_dim_all_gather: Whether an all-gather of several dimensions becomes one collective per dimension.
        combine_multi_dimension_reduce_scatter: Whether a reduce-scatter of several dimensions becomes one collective;
            if not, an all-reduce and a slice.
        enable_rgv3: Whether to write replica groups as mesh axes, not as lists of device ids.
        rgv3_where_same: Whether to do so only where all consumers agree on the meaning. They do not on a mesh with a
            device order, which XLA ignores, and if the installed StableHLO has no replica groups along mesh axes.
        replica_count: The number of replicas. If there are several, the replica id identifies a device.
        partition_count: The number of partitions; only one of the two counts can exceed 1.
        name_causes: Whether the location of a collective that completes a result names the op of that result.
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
    """Make all ops of a module work on shards.

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
