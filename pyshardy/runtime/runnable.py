"""Modules as XLA takes them: without the ops of the `sdy` dialect that it does not know."""

from __future__ import annotations

from pyshardy.errors import ShardyError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import SHARDING, functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk

_RESHARDS = {
    "sdy.reshard": "sharding",
    **{
        f"sdy.{name}": "out_sharding"
        for name in ("all_gather", "all_slice", "all_to_all", "collective_permute", "reduce_scatter", "all_reduce")
    },
}


def partitionable(module: Module, device_count: int) -> Module:
    """The module for XLA's own partitioner: reshards become sharding constraints, constants plain ones.

    Args:
        module: A propagated module.
        device_count: Number of devices to run on.
    """
    root = module.copy_root()
    for op in walk(root):
        if op.name in _RESHARDS:
            sharding = op.attrs[_RESHARDS[op.name]]
            op.attrs = {"sharding": sharding.with_unreduced(())}
            op.name = "sdy.sharding_constraint"
        elif op.name == "sdy.constant":
            op.name = "stablehlo.constant"
    _set_partitions(root, module.attrs, device_count, module)
    return module.with_root(root)


def sequential(module: Module) -> Module:
    """The module for one device: all shardings, constraints and meshes removed.

    Raises:
        ShardyError: The module holds manual computations, which are written for several devices.
    """
    root = module.copy_root()
    for op in walk(root):
        if op.name == "sdy.manual_computation":
            raise ShardyError(
                "making a single-device version of the program",
                where=str(op.location),
                got="a manual computation (shard_map), which is written per device",
                needed="a program without",
            )
        if op.name == "sdy.constant":
            op.name = "stablehlo.constant"
        op.attrs.pop(SHARDING, None)
        op.attrs.pop("sdy.sharding_rule", None)
    for function in functions(root):
        for kind in ("arg_attrs", "res_attrs"):
            for entry in function.attrs.get(kind) or ():
                entry.pop(SHARDING, None)
    for op in list(walk(root)):
        if op.name in _RESHARDS or op.name in ("sdy.sharding_constraint", "sdy.propagation_barrier"):
            op.result.replace_uses(op.operands[0])
            op.erase()
        elif op.name in ("sdy.sharding_group", "sdy.mesh"):
            op.erase()
    _set_partitions(root, module.attrs, 1, module)
    return module.with_root(root)


def _set_partitions(root: Op, attrs: AttrTable, count: int, module: Module) -> None:
    with module.context:
        root.attrs["mhlo.num_partitions"] = attrs.parse(f"{count} : i32")
        root.attrs["mhlo.num_replicas"] = attrs.parse("1 : i32")
