"""Rewrites modules for XLA, without the ops of the `sdy` dialect that it does not support."""

from __future__ import annotations

from collections.abc import Iterable

from pyshardy.core.text import format_symbol, quote
from pyshardy.errors import ShardyError
from pyshardy.ir.functions import CALL, SHARDING, change_border_attrs, functions, main_function
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import is_utf8
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.passes.exporting.export_named_computations import ExportNamedComputations
from pyshardy.passes.pipeline import run_on_root
from pyshardy.rules.properties import IDENTITIES, RESHARDING_COLLECTIVES
from pyshardy.runtime.callbacks import drop_tokens
from pyshardy.runtime.device_lists import list_devices
from pyshardy.runtime.inspections import is_inspection
from pyshardy.runtime.quirks import Programs, work_around
from pyshardy.transforms.reshards.single_device import is_on_single_device

_RESHARDS = {"sdy.reshard": "sharding"} | dict.fromkeys(RESHARDING_COLLECTIVES, "out_sharding")
"""The ops that only change a sharding, and the attribute with the new sharding."""
_CALLED = "called_computations"
_MARKS = IDENTITIES - {"sdy.reshard"}
"""The ops that only annotate shardings."""


def partitionable(module: Module, device_count: int) -> Module:
    """The module for XLA's own partitioner: reshards become sharding constraints, `sdy.constant` becomes a constant.

    Args:
        module: A propagated module.
        device_count: The number of devices to run on.
    """
    root = module.copy_root()
    drop_tokens(root)
    meshes = module_meshes(root)
    for op in list(walk(root)):
        if op.name in _RESHARDS:
            sharding = op.attrs[_RESHARDS[op.name]]
            if is_on_single_device(sharding, meshes):  # its user has the sharding
                _leave_out(op)
                continue
            op.replace_attrs({"sharding": sharding.with_unreduced(())})
            op.rename("sdy.sharding_constraint")
        elif op.name == "sdy.constant":
            op.rename("stablehlo.constant")
        elif is_inspection(op):  # it contains an address in the process that lowered it
            _leave_out(op)
    with module.context:
        list_devices(root, module)
    make_runnable(root, module, device_count, (Programs.PROPAGATED,))
    return module.with_root(root)


def sequential(module: Module) -> Module:
    """The module for one device, without shardings, constraints and meshes.

    Raises:
        ShardyError: The module has manual computations, which are written for several devices.
    """
    root = module.copy_root()
    drop_tokens(root)
    run_on_root(module, root, [ExportNamedComputations()])
    for op in walk(root):
        if op.name == "sdy.manual_computation":
            raise ShardyError(
                "making a single-device version of the program",
                where=format_location(op.location),
                got="a manual computation (shard_map), which is written per device",
                needed="a program without",
            )
        if op.name == "sdy.constant":
            op.rename("stablehlo.constant")
        for name in [name for name in op.attrs if name.startswith("sdy.")]:  # of shardings, or of how they came about
            op.remove_attr(name)
    for function in functions(root):
        change_border_attrs(function, lambda attrs: attrs.without(SHARDING))
    for op in list(walk(root)):
        if op.name in _RESHARDS or op.name in _MARKS or is_inspection(op):
            _leave_out(op)
        elif op.name in ("sdy.sharding_group", "sdy.mesh"):
            op.erase()
    make_runnable(root, module, 1)
    return module.with_root(root)


def _leave_out(op: Op) -> None:
    """Replace the results of an op by its operands."""
    op.result.replace_uses(op.operands[0])
    op.erase()


def make_runnable(root: Op, module: Module, count: int, programs: Iterable[Programs] = ()) -> None:
    """Adapt a module to XLA: the name of the main function, the number of devices, and what XLA would do wrong.

    Args:
        root: The module to change.
        module: The module that it comes from.
        count: Number of devices.
        programs: What the module is, besides one of all programs.

    Raises:
        ShardyError: JAX does not support the name of a function, a mesh or a mesh axis, or XLA would end the process.
    """
    main = main_function(root)
    _check_names(root, main)
    _check_called(root)
    main.set_attr("sym_name", "main")
    main.remove_attr("sym_visibility")
    _leave_out_stray_ops(root)
    with module.context:
        root.set_attr("mhlo.num_partitions", module.attrs.parse(f"{count} : i32"))
        root.set_attr("mhlo.num_replicas", module.attrs.parse("1 : i32"))
        work_around(root, module, (Programs.ALL, *programs))


def _check_names(root: Op, main: Op) -> None:
    """Refuse names of functions, meshes and axes that JAX does not support."""
    meshes = module_meshes(root)
    named = {
        "function": [op.attrs["sym_name"] for op in functions(root) if op is not main],  # that one gets another name
        "mesh": list(meshes),
        "mesh axis": [name for mesh in meshes.values() for name, _ in mesh.axes],
    }
    for what, names in named.items():
        wrong = next((name for name in names if not is_utf8(name)), None)
        if wrong is not None:
            raise ShardyError(
                "running a program",
                got=f"the {what} {quote(wrong) if what == 'mesh axis' else format_symbol(wrong)}",
                needed="names in UTF-8, the only ones that JAX supports",
            )


def _leave_out_stray_ops(root: Op) -> None:
    """Leave out what stands between the functions and is no symbol, which nobody can use and JAX does not expect."""
    for op in reversed(list(root.region.block)):
        if "sym_name" not in op.attrs:
            op.erase()


def _check_called(root: Op) -> None:
    """Refuse a call of a function without a body, which would make XLA end the process."""
    bodiless = {function.attrs["sym_name"] for function in functions(root) if not function.region.blocks}
    if not bodiless:
        return
    for op in ops_named(root, (CALL, "stablehlo.custom_call")):
        called = [(op.attrs["callee"],)] if op.name == CALL else symbols_in(op.attrs.get(_CALLED))
        missing = next((path[0] for path in called if path[0] in bodiless), None)
        if missing is not None:
            raise ShardyError(
                "running a program",
                where=format_location(op.location),
                got=f"a {'' if op.name == CALL else 'custom '}call of {format_symbol(missing)}, which is only declared",
                needed="a function with a body",
            )
