"""Rewrites modules for XLA, without the ops of the `sdy` dialect that it does not support."""

from __future__ import annotations

from math import prod

from pyshardy.core.text import format_symbol, quote
from pyshardy.errors import ShardyError
from pyshardy.ir.functions import CALL, SHARDING, change_border_attrs, functions, main_function
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.op_lists import ops_named, ops_with
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import is_utf8
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.passes.exporting.export_named_computations import ExportNamedComputations
from pyshardy.passes.pipeline import run_on_root
from pyshardy.rules.properties import IDENTITIES, RESHARDING_COLLECTIVES
from pyshardy.runtime.barriers import keep_products, keep_slices
from pyshardy.runtime.callbacks import drop_tokens
from pyshardy.runtime.device_lists import list_devices
from pyshardy.runtime.inspections import is_inspection
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.reshards.op_rules import is_buffer
from pyshardy.transforms.reshards.single_device import is_on_single_device

_ARRANGING = frozenset(("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose"))
_RESHARDS = {"sdy.reshard": "sharding"} | dict.fromkeys(RESHARDING_COLLECTIVES, "out_sharding")
"""The ops that only change a sharding, and the attribute with the new sharding."""
_CALLED = "called_computations"
_RANDOM_TYPES = frozenset(("f16", "bf16", "f32", "f64", "i32", "i64", "ui32", "ui64"))
"""The elements of which XLA for CPUs makes random numbers by `stablehlo.rng`."""
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
        elif _only_reshapes(op) and _is_of_several(op.operands[0]):
            op.remove_attr(SHARDING)
    with module.context:
        list_devices(root, module)
    for loop in [op for op in walk(root) if op.name == "stablehlo.while"]:
        _free_loop(loop)
    make_runnable(root, module, device_count)
    return module.with_root(root)


def _is_of_several(value: Value) -> bool:
    """Whether a value is a result of an op with several results, perhaps in another shape.

    If a chain of reshapes ends where it began, XLA gives its sharding to the result that it began with, and then takes
    it for the sharding of the first result of that op: it refuses the program if the ranks differ. It finds the same
    sharding by propagation.
    """
    op = value.owner
    while isinstance(op, Op) and _only_reshapes(op):
        op = op.operands[0].owner
    return isinstance(op, Op) and len(op.results) > 1


def _only_reshapes(op: Op) -> bool:
    """Whether the result of an op has the elements of its operand, each once."""
    return op.name in _ARRANGING and prod(op.operands[0].type.shape or ()) == prod(op.result.type.shape or ())


def _free_loop(loop: Op) -> None:
    """Constrain the results of a loop instead of giving the loop a list of shardings.

    XLA removes unchanged and unused values of a loop before it reads the shardings, but keeps the list of shardings.
    The list is then too long, and XLA fails.
    """
    shardings = loop.attrs.get(SHARDING, ())
    loop.remove_attr(SHARDING)
    for value, sharding in zip(loop.results, shardings):
        if value.flat_uses and value.type.is_ranked_tensor:
            constrained = {"sharding": sharding.with_unreduced(())}
            constraint = Op("sdy.sharding_constraint", [value], [value.type], constrained, location=loop.location)
            constraint.insert_after(loop)
            value.replace_other_uses(constraint)


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


def make_runnable(root: Op, module: Module, count: int) -> None:
    """Adapt a module to XLA: the name of the main function, the number of devices, and dimensions of sorts.

    XLA does not handle sort dimensions that count from the end, so they are rewritten. It has no undefined buffers on
    CPUs, so these become zeros, as in JAX.

    Args:
        root: The module to change.
        module: The module that it comes from.
        count: Number of devices.

    Raises:
        ShardyError: JAX does not support the name of a function, a mesh or a mesh axis.
    """
    main = main_function(root)
    _check_names(root, main)
    _check_called(root)
    _check_random(root)
    main.set_attr("sym_name", "main")
    main.remove_attr("sym_visibility")
    _leave_out_stray_ops(root)
    with module.context:
        root.set_attr("mhlo.num_partitions", module.attrs.parse(f"{count} : i32"))
        root.set_attr("mhlo.num_replicas", module.attrs.parse("1 : i32"))
        _count_sorted_dimensions_from_the_front(root, module)
        keep_slices(root, module)
        keep_products(root, module)
        _fill_buffers(root, module)


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


def _check_random(root: Op) -> None:
    """Refuse random numbers of a type over which XLA ends the process."""
    for op in ops_with(root, "rng_distribution", ("stablehlo.rng",)):
        element = op.result.type.element
        if element not in _RANDOM_TYPES:
            raise ShardyError(
                "running a program",
                where=format_location(op.location),
                got=f"'{op.name}' of {element}",
                needed=f"one of {', '.join(sorted(_RANDOM_TYPES))}, as XLA makes no others",
            )


def _fill_buffers(root: Op, module: Module) -> None:
    for op in [op for op in walk(root) if is_buffer(op)]:
        builder, type = Builder(module.attrs, op, op.location), op.result.type
        zero = builder.splat(zero_text(type.element), builder.like((), type))
        op.result.replace_uses(builder.broadcast(zero, type.shape or ()))
        op.erase()


def _count_sorted_dimensions_from_the_front(root: Op, module: Module) -> None:
    """Count sort dimensions from the front. XLA misreads dimensions that count from the end, except the last one."""
    for op in walk(root):
        if op.name == "stablehlo.sort" and op.operands[0].type.rank:
            dimension = op.attrs.get("dimension")
            number = -1 if dimension is None else dimension.value
            if number < 0:
                op.set_attr("dimension", module.attrs.i64(number + op.operands[0].type.rank))
