"""Wraps a per-device program in a global program that XLA runs.

One mesh axis has all devices. The shards of an input are stacked along its first dimension. So no data is copied, and
sub-axes and device orders do not matter. Scalars are replicated. The body of the global program is a manual computation
that calls the per-device program.

Source: docs/semantics/partitioner.md#one-program-for-all-devices
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import functions, main_function, signature
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Block, Op, Region, Value, ValueType
from pyshardy.runtime.callbacks import call_per_device, drop_tokens
from pyshardy.runtime.device_lists import list_devices
from pyshardy.runtime.quirks import Programs
from pyshardy.runtime.runnable import make_runnable
from pyshardy.transforms.builder import Builder, zero_text

DEVICES = "pyshardy_devices"
"""The name of the axis of all devices, and of its mesh."""
_BORDER_ATTRIBUTES = ("arg_attrs", "res_attrs")


def stacked_shape(local: tuple[int, ...], devices: int) -> tuple[int, ...]:
    """The shape of the stacked shards of this many devices.

    >>> stacked_shape((2, 3), 4), stacked_shape((), 4)
    ((8, 3), ())
    """
    return (local[0] * devices, *local[1:]) if local else ()


def stacked(module: Module, devices: int, on_cpus: bool = False) -> Module:
    """The global program that runs a per-device program on several devices.

    Args:
        module: The per-device program, for devices that are partitions.
        devices: Number of devices.
        on_cpus: Whether it is for CPUs, whose collectives need workarounds.
    """
    root = module.copy_root()
    drop_tokens(root)
    main = main_function(root)
    if devices == 1:
        make_runnable(root, module, 1)
        return module.with_root(root)
    name = rename_program(root, main)
    with module.context:
        list_devices(root, module)
        call_per_device(root, module.attrs)
        _add_main(_Types(module, devices), root, main, name)
    make_runnable(root, module, devices, (Programs.PER_DEVICE, *((Programs.ON_CPUS,) if on_cpus else ())))
    return module.with_root(root)


def rename_program(root: Op, main: Op) -> str:
    """Make the main function private under a free name; return the name."""
    names = {function.attrs["sym_name"] for function in functions(root)}
    name = next(name for name in _candidates() if name not in names)
    main.set_attr("sym_name", name)
    main.set_attr("sym_visibility", "private")
    for kind in _BORDER_ATTRIBUTES:
        main.remove_attr(kind)
    for attribute in ("sdy.parameters_shardings", "sdy.output_shardings"):
        root.remove_attr(attribute)
    return name


def _candidates() -> Iterator[str]:
    yield "device_program"
    yield from (f"device_program_{number}" for number in count())


class _Types:
    """The types and shardings of stacked values."""

    def __init__(self, module: Module, devices: int) -> None:
        self.attrs = module.attrs
        self.devices = devices

    def stacked(self, local: ValueType) -> ValueType:
        return self.attrs.ranked_type(stacked_shape(local.shape or (), self.devices), local)

    def sharding(self, local: ValueType) -> TensorSharding:
        dims = [DimSharding([DEVICES]) if dim == 0 else DimSharding() for dim in range(local.rank)]
        return TensorSharding(DEVICES, dims)


def _add_main(types: _Types, root: Op, program: Op, name: str) -> None:
    inputs, outputs = signature(program)
    ins, outs = ([types.sharding(type) for type in side] for side in (inputs, outputs))
    location = program.location
    stacked_ins, stacked_outs = ([types.stacked(type) for type in side] for side in (inputs, outputs))
    attrs = {
        "sym_name": "main",
        "function_type": (stacked_ins, stacked_outs),
        "arg_attrs": tuple(Attributes({"sdy.sharding": sharding}) for sharding in ins),
        "res_attrs": tuple(Attributes({"sdy.sharding": sharding}) for sharding in outs),
    }
    main = Op("func.func", (), (), attrs, 1, location)
    block = main.region.add_block()
    args = [block.add_arg(type, location) for type in stacked_ins]
    taken = [index for index, type in enumerate(inputs) if not _is_empty(type)]
    extra = () if any(inputs[index].rank for index in taken) else _device_numbers(types, block, location)
    shardings = (*(ins[index] for index in taken), *(types.sharding(value.type) for value in extra))
    manual = Op(
        "sdy.manual_computation",
        [*(args[index] for index in taken), *extra],
        stacked_outs,
        {"in_shardings": shardings, "out_shardings": tuple(outs), "manual_axes": (DEVICES,)},
        1,
        location,
    )
    _fill(types, manual.region, inputs, outputs, name, location)
    for _ in extra:
        manual.region.block.add_arg(types.attrs.tensor_type((1,), "i32"), location)
    block.append(manual)
    block.append(Op("func.return", manual.results, location=location))
    mesh = {"sym_name": DEVICES, "mesh": Mesh([(DEVICES, types.devices)])}
    body = root.region.block
    body.prepend(main)
    body.prepend(Op("sdy.mesh", (), (), mesh, location=location))


def _is_empty(local: ValueType) -> bool:
    """Whether an input is empty. XLA may drop empty operands of a manual computation, and then fail."""
    return 0 in (local.shape or ())


def _device_numbers(types: _Types, block: Block, location: object) -> tuple[Value, ...]:
    """A sharded input that the program ignores. XLA needs a sharded operand in a manual computation."""
    type = types.attrs.tensor_type((types.devices,), "i32")
    attrs = {"iota_dimension": types.attrs.i64(0)}
    return (block.append(Op("stablehlo.iota", (), [type], attrs, location=location)).result,)


def _fill(
    types: _Types, region: Region, inputs: list[ValueType], outputs: list[ValueType], name: str, location: object
) -> None:
    block = region.add_block()
    builder = Builder(types.attrs, block, location)
    args = [
        builder.splat(zero_text(type.element), type) if _is_empty(type) else block.add_arg(type, location)
        for type in inputs
    ]
    call = block.append(Op("func.call", args, outputs, {"callee": name}, location=location))
    block.append(Op("sdy.return", call.results, location=location))
