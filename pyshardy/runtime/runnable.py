"""Modules as XLA takes them: without the ops of the `sdy` dialect that it does not know."""

from __future__ import annotations

from math import prod

from pyshardy.core.text import format_symbol
from pyshardy.errors import ShardyError
from pyshardy.ir.diagnostics import format_location
from pyshardy.ir.functions import RULE, SHARDING, change_border_attrs, functions, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import is_utf8
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.passes.exporting.export_named_computations import ExportNamedComputations
from pyshardy.passes.pipeline import run_on_root
from pyshardy.rules.properties import IDENTITIES, RESHARDING_COLLECTIVES
from pyshardy.runtime.callbacks import drop_tokens
from pyshardy.runtime.device_lists import list_devices
from pyshardy.runtime.inspections import is_inspection
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.reshards.op_rules import is_buffer
from pyshardy.transforms.reshards.single_device import is_on_single_device

_RESHARDS = {"sdy.reshard": "sharding"} | dict.fromkeys(RESHARDING_COLLECTIVES, "out_sharding")
"""The ops that only change a sharding, and the attribute that says to which."""
_CALLED = "called_computations"
_MARKS = IDENTITIES - {"sdy.reshard"}
"""The ops that only say something about shardings."""


def partitionable(module: Module, device_count: int) -> Module:
    """The module for XLA's own partitioner: reshards become sharding constraints, constants plain ones.

    Args:
        module: A propagated module.
        device_count: Number of devices to run on.
    """
    root = module.copy_root()
    drop_tokens(root)
    meshes = module_meshes(root)
    for op in list(walk(root)):
        if op.name in _RESHARDS:
            sharding = op.attrs[_RESHARDS[op.name]]
            if is_on_single_device(sharding, meshes):  # the op that takes it says so
                _leave_out(op)
                continue
            op.replace_attrs({"sharding": sharding.with_unreduced(())})
            op.rename("sdy.sharding_constraint")
        elif op.name == "sdy.constant":
            op.rename("stablehlo.constant")
        elif is_inspection(op):  # it holds an address in the process that lowered it
            _leave_out(op)
    with module.context:
        list_devices(root, module)
    for loop in [op for op in walk(root) if op.name == "stablehlo.while"]:
        _free_loop(loop)
    make_runnable(root, module, device_count)
    return module.with_root(root)


def _free_loop(loop: Op) -> None:
    """Constrain the results of a loop instead of giving the loop a list of shardings.

    Before XLA looks at shardings it drops values that a loop carries unchanged or for nothing, but not their
    shardings; then the list is too long, and XLA fails.
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
    """The module for one device: all shardings, constraints and meshes removed.

    Raises:
        ShardyError: The module holds manual computations, which are written for several devices.
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
        op.remove_attr(SHARDING)
        op.remove_attr(RULE)
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
    """Let the users of an op take what it takes."""
    op.result.replace_uses(op.operands[0])
    op.erase()


def make_runnable(root: Op, module: Module, count: int) -> None:
    """Name the main function and the number of devices as XLA wants it, and sorted dimensions from the front.

    XLA looks for a dimension that is counted from the end wherever that leads it, and may not sort at all. For CPUs it
    has no buffers with anything in them; such a buffer is one of zeros, as JAX makes it there.

    Args:
        root: The module to change.
        module: What it comes from.
        count: Number of devices.

    Raises:
        ShardyError: The name of a function that JAX cannot hold.
    """
    main = main_function(root)
    for function in functions(root):
        if function is not main and not is_utf8(function.attrs["sym_name"]):
            raise ShardyError(
                "running a program",
                got=f"the function {format_symbol(function.attrs['sym_name'])}",
                needed="names in UTF-8, as JAX knows no others",
            )
    _check_called(root)
    main.set_attr("sym_name", "main")
    main.remove_attr("sym_visibility")
    with module.context:
        root.set_attr("mhlo.num_partitions", module.attrs.parse(f"{count} : i32"))
        root.set_attr("mhlo.num_replicas", module.attrs.parse("1 : i32"))
        _count_sorted_dimensions_from_the_front(root, module)
        _fill_buffers(root, module)


def _check_called(root: Op) -> None:
    """Refuse a custom call of a function without a body, over which XLA ends the process."""
    bodiless = {function.attrs["sym_name"] for function in functions(root) if not function.region.blocks}
    for op in ops_with(root, _CALLED, ("stablehlo.custom_call",)) if bodiless else ():
        paths = symbols_in(op.attrs.get(_CALLED))
        missing = next((path[0] for path in paths if path[0] in bodiless), None)
        if missing is not None:
            raise ShardyError(
                "running a program",
                where=format_location(op.location),
                got=f"a custom call of {format_symbol(missing)}, which is only declared",
                needed="the body of what is called",
            )


def _fill_buffers(root: Op, module: Module) -> None:
    for op in [op for op in walk(root) if is_buffer(op)]:
        builder, type = Builder(module.attrs, op, op.location), op.result.type
        zero = builder.splat(zero_text(type.element), builder.like((), type))
        op.result.replace_uses(builder.broadcast(zero, type.shape or ()))
        op.erase()


def _count_sorted_dimensions_from_the_front(root: Op, module: Module) -> None:
    """XLA takes a dimension that is counted from the end as it is, unless it is the last, and may sort anything."""
    for op in walk(root):
        if op.name == "stablehlo.sort" and op.operands[0].type.rank:
            dimension = op.attrs.get("dimension")
            number = -1 if dimension is None else dimension.value
            if number < 0:
                op.set_attr("dimension", module.attrs.i64(number + op.operands[0].type.rank))


def keep_ffts_in_order(root: Op, module: Module) -> None:
    """Let what Fourier transforms take and give lie in memory in the order of its dimensions.

    XLA's compiler for CPUs may lay out what collectives take and give in another order, also through a transform, and
    then refuses that. A vector has one order only, and what is behind a barrier keeps it.
    """
    for op in list(walk(root)):
        if op.name != "stablehlo.fft" or not op.operands[0].type.is_static:
            continue
        builder = Builder(module.attrs, op, op.location)
        operand = _in_order(op.operands[0], builder)
        transformed = builder.value("fft", [operand], op.result.type, **op.attrs)
        op.result.replace_uses(_in_order(transformed, builder))
        op.erase()


def _in_order(value: Value, builder: Builder) -> Value:
    shape = value.type.shape or ()
    flat = builder.reshape(value, [prod(shape)])
    return builder.reshape(builder.value("optimization_barrier", [flat], flat.type), shape)
