"""Running a global module on JAX's devices: XLA's own partitioner makes it a program per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding

from pyshardy.core.mesh import device_count
from pyshardy.errors import ShardyError
from pyshardy.frontend.from_jax import JaxSignature, NamedShardings
from pyshardy.frontend.interface import input_ports, output_ports
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.runtime.arrays import check_inputs, check_static
from pyshardy.runtime.exported import Executable
from pyshardy.runtime.peers import processes_of, together
from pyshardy.runtime.runnable import partitionable, sequential


class GlobalExecutable:
    """A propagated module that XLA's own partitioner compiles for all devices of its mesh.

    Args:
        module: A propagated module.
        devices: The devices to use; by default those that a JAX function was lowered for, or those JAX has.

    Raises:
        UsageError: Too few devices.
        ShardyError: Meshes that JAX does not take together, or what JAX has no type for.
    """

    def __init__(self, module: Module, devices: Sequence[Any] | None = None) -> None:
        check_static(module)
        if devices is None and isinstance(module.origin, JaxSignature):
            devices = module.origin.devices
        converter = NamedShardings(module_meshes(module.root), devices)
        count = device_count(converter.meshes)
        self._ins, outs = input_ports(module.root), output_ports(module.root)
        self._in_shardings = [converter.of(port) for port in self._ins]
        shardings = self._in_shardings, [converter.of(port) for port in outs]
        _check_one_order(shardings[0] + shardings[1])
        self._executable = Executable(partitionable(module, count), self._ins, outs, shardings)
        meshes = [sharding.mesh for side in shardings for sharding in side if sharding is not None]
        self._processes = processes_of(device for mesh in meshes for device in mesh.devices.flat)

    def __call__(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The outputs, global arrays under the shardings of the module.

        Raises:
            UsageError: Inputs that do not fit.
            ShardyError: XLA fails to compile or run the program.
        """
        checked = check_inputs(arrays, self._ins)
        return together(self._processes, lambda: self._run(checked))

    def _run(self, checked: Sequence[Any]) -> list[jax.Array]:
        with self._executable.types():
            placed = [jax.device_put(array, sharding) for array, sharding in zip(checked, self._in_shardings)]
            return self._executable(placed)

    def as_text(self) -> str:
        """What XLA makes of the module, as HLO."""
        return self._executable.as_text()


def run_on_devices(module: Module, arrays: Sequence[Any], devices: Sequence[Any] | None = None) -> list[jax.Array]:
    """The outputs of a propagated module, compiled and run once; see `GlobalExecutable`."""
    return GlobalExecutable(module, devices)(arrays)


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
    check_static(module)
    ins, outs = input_ports(module.root), output_ports(module.root)
    checked = check_inputs(arrays, ins)
    return Executable(sequential(module), ins, outs)(checked)
