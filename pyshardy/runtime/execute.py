"""Executing a module on JAX's devices through public JAX API (partitioner spec, section 12.5).

The module travels as the payload of a `jax.export.Exported` whose signature fits it; XLA's own partitioner
runs it under the shardings it carries.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import numpy as np
from jax.sharding import NamedSharding
from jaxlib.mlir.dialects import stablehlo

from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.from_jax import JaxSignature, NamedShardings
from pyshardy.frontend.interface import Port, input_ports, output_ports
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.runtime.runnable import partitionable, sequential


def run_on_devices(module: Module, arrays: Sequence[Any], devices: Sequence[Any] | None = None) -> list[jax.Array]:
    """The outputs of a propagated module, run on all devices of its mesh under its shardings.

    Args:
        module: A propagated module.
        arrays: The inputs, global arrays.
        devices: The devices to use; by default those that a JAX function was lowered for, or those JAX has.

    Raises:
        UsageError: Inputs that do not fit, or too few devices.
    """
    if devices is None and isinstance(module.origin, JaxSignature):
        devices = module.origin.devices
    converter = NamedShardings(module_meshes(module.root), devices)
    count = max([mesh.size for mesh in converter.meshes.values() if mesh.axes], default=1)
    ins, outs = input_ports(module.root), output_ports(module.root)
    shardings = [converter.of(port) for port in ins], [converter.of(port) for port in outs]
    _check_one_order(shardings[0] + shardings[1])
    return _run(partitionable(module, count), arrays, ins, outs, *shardings)


def _check_one_order(shardings: list[NamedSharding | None]) -> None:
    """Refuse meshes that JAX does not take together."""
    meshes = list(dict.fromkeys(sharding.mesh for sharding in shardings if sharding is not None))
    orders = {tuple(device.id for device in mesh.devices.flat) for mesh in meshes}
    if len(orders) > 1:
        raise ShardyError(
            "running a module",
            got=f"inputs or outputs on the devices {' and '.join(str(list(order)) for order in sorted(orders))}",
            needed="the same devices in the same order for all, as jax.jit wants them",
        )


def run_on_one_device(module: Module, arrays: Sequence[Any]) -> list[jax.Array]:
    """The outputs of a module run on one device, whatever shardings it carries.

    Raises:
        UsageError: Inputs that do not fit.
        ShardyError: The program is written for several devices.
    """
    ins, outs = input_ports(module.root), output_ports(module.root)
    return _run(sequential(module), arrays, ins, outs, None, None)


def _run(
    module: Module, arrays: Sequence[Any], ins: list[Port], outs: list[Port], in_shardings: Any, out_shardings: Any
) -> list[jax.Array]:
    _check_runnable(module)
    dtypes = [jax_dtype(port.element) for port in (*ins, *outs)]
    with jax.enable_x64(jax.config.read("jax_enable_x64") or any(map(_is_wide, dtypes))):
        checked = check_inputs(arrays, ins)
        try:
            return _run_exported(module, checked, outs, in_shardings, out_shardings)
        except jax.errors.JaxRuntimeError as error:
            needed = "a program that XLA can compile here"
            raise ShardyError("running a module", got=_reason(error), needed=needed) from error


def _reason(error: Exception) -> str:
    """The first line of an error of XLA; of one that quotes a traceback, the exception at the traceback's end."""
    first, *rest = str(error).strip().split("\n")
    head, traceback, _ = first.partition("Traceback (most recent call last):")
    return head + next((line for line in rest if line[:1].strip()), "an exception") if traceback else first


def _is_wide(dtype: Any) -> bool:
    """Whether JAX has numbers of this type only when 64-bit types are enabled."""
    return bool(dtype.itemsize == 8 * (2 if dtype.kind == "c" else 1))


def _run_exported(
    module: Module, arrays: list[Any], outs: list[Port], in_shardings: Any, out_shardings: Any
) -> list[jax.Array]:
    result_types = [jax.ShapeDtypeStruct(port.shape, jax_dtype(port.element)) for port in outs]
    options: dict[str, Any] = {"keep_unused": True}
    if in_shardings is not None:
        options |= {"in_shardings": tuple(in_shardings), "out_shardings": tuple(out_shardings)}

    def shell(*args: Any) -> tuple[Any, ...]:
        return tuple(jax.numpy.zeros(type.shape, type.dtype) for type in result_types)

    abstract = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    exported = jax.export.export(jax.jit(shell, **options))(*abstract)
    exported = dataclasses.replace(exported, mlir_module_serialized=_payload(module))
    if in_shardings is not None:
        arrays = [jax.device_put(array, sharding) for array, sharding in zip(arrays, in_shardings)]
    found: tuple[jax.Array, ...] = jax.jit(exported.call, **options)(*arrays)
    return list(jax.block_until_ready(found))


def _payload(module: Module) -> bytes:
    with module.context:
        version = stablehlo.get_current_version()
        payload: bytes = stablehlo.serialize_portable_artifact(module.mlir, version, True)
    return payload


def _check_runnable(module: Module) -> None:
    main = main_function(module.root)
    for arg in main.region.blocks[0].args:
        if not arg.type.is_static:
            raise ShardyError(
                "running a module",
                where=f"argument {arg.index} of the main function",
                got=f"type {arg.type}",
                needed="tensors of static shape",
            )


def check_inputs(arrays: Sequence[Any], ports: Sequence[Port]) -> list[Any]:
    """The arrays in the types of the inputs.

    Raises:
        UsageError: A wrong number of arrays, or an array of another shape or kind.
    """
    if len(arrays) != len(ports):
        raise UsageError("running a module", got=f"{len(arrays)} arrays", needed=f"{len(ports)}, one per input")
    checked = []
    for array, port in zip(arrays, ports):
        dtype = jax_dtype(port.element)
        array = array if isinstance(array, jax.Array) else np.asarray(array)
        if tuple(array.shape) != port.shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise UsageError(
                f"taking the input {port.name}",
                got=f"{array.dtype}[{', '.join(map(str, array.shape))}]",
                needed=f"{dtype}[{', '.join(map(str, port.shape))}]",
            )
        checked.append(array if array.dtype == dtype else array.astype(dtype))
    return checked


_DTYPES = {"i1": "bool", "bf16": "bfloat16", "complex<f32>": "complex64", "complex<f64>": "complex128"}
_PREFIXES = {"ui": "uint", "i": "int", "f": "float"}


def jax_dtype(element: str) -> Any:
    """The JAX type of an MLIR element type.

    >>> jax_dtype("ui32"), jax_dtype("bf16")
    (dtype('uint32'), dtype(bfloat16))
    """
    if element in _DTYPES:
        return jax.numpy.dtype(_DTYPES[element])
    for prefix, name in _PREFIXES.items():
        rest = element.removeprefix(prefix)
        if rest != element and rest[0].isdigit():
            with contextlib.suppress(TypeError):
                return jax.numpy.dtype(name + (f"{rest[0]}_{rest[1:].lower()}" if "E" in rest else rest))
    raise ShardyError("running a module", got=f"element type {element}", needed="one that JAX has")
