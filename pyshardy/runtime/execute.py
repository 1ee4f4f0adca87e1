"""Running a global module on JAX's devices: XLA's own partitioner makes it a program per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding

from pyshardy.core.mesh import device_count
from pyshardy.errors import ShardyError
from pyshardy.frontend.from_jax import JaxSignature, NamedShardings
from pyshardy.frontend.interface import Port, input_ports, output_ports
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.runtime.arrays import check_inputs, check_static
from pyshardy.runtime.exported import Executable
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
    count = device_count(converter.meshes)
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
    check_static(module)
    shardings = None if in_shardings is None else (in_shardings, out_shardings)
    checked = check_inputs(arrays, ins)
    executable = Executable(module, ins, outs, shardings)
    with executable.types():
        if shardings is not None:
            checked = [jax.device_put(array, sharding) for array, sharding in zip(checked, in_shardings)]
        return executable(checked)
