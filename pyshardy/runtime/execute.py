"""Runs a global module on JAX's devices, partitioned by XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding

from pyshardy.errors import ShardyError
from pyshardy.frontend.from_jax import NamedShardings
from pyshardy.frontend.interface import Interface, input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import check_inputs, check_static
from pyshardy.runtime.executable import Executable
from pyshardy.runtime.exported import CompiledModule
from pyshardy.runtime.peers import processes_of
from pyshardy.runtime.runnable import partitionable, sequential


class GlobalExecutable(Executable):
    """A propagated module that XLA partitions and compiles for all devices of its mesh.

    Args:
        module: A propagated module.
        interface: Its inputs, outputs and meshes.
        devices: The devices to use; by default those of JAX.

    Raises:
        UsageError: There are too few devices.
        ShardyError: JAX does not support these meshes together, or has no type for an input or output.
    """

    def __init__(self, module: Module, interface: Interface, devices: Sequence[Any] | None = None) -> None:
        check_static(module)
        self.interface = interface
        converter = NamedShardings(interface.meshes, devices)
        self._in_shardings = [converter.of(tensor) for tensor in interface.inputs]
        shardings = self._in_shardings, [converter.of(tensor) for tensor in interface.outputs]
        _check_one_order(shardings[0] + shardings[1])
        partitioned = partitionable(module, interface.device_count)
        self._compiled = CompiledModule(partitioned, interface.inputs, interface.outputs, shardings)
        meshes = [sharding.mesh for side in shardings for sharding in side if sharding is not None]
        self.processes = processes_of(device for mesh in meshes for device in mesh.devices.flat)

    def run(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The outputs, global arrays under the shardings of the module."""
        with self._compiled.types():
            placed = [jax.device_put(array, sharding) for array, sharding in zip(arrays, self._in_shardings)]
            return self._compiled(placed)

    def as_text(self) -> str:
        """The HLO that XLA has compiled."""
        return self._compiled.as_text()


def _check_one_order(shardings: list[NamedSharding | None]) -> None:
    """Refuse meshes that JAX does not support together."""
    meshes = list(dict.fromkeys(sharding.mesh for sharding in shardings if sharding is not None))
    orders = {tuple(device.id for device in mesh.devices.flat) for mesh in meshes}
    if len(orders) > 1:
        raise ShardyError(
            "running a module",
            got=f"inputs or outputs on the devices {' and '.join(str(list(order)) for order in sorted(orders))}",
            needed="the same devices in the same order for all, as jax.jit requires",
        )


def run_on_one_device(module: Module, arrays: Sequence[Any]) -> list[jax.Array]:
    """Run a module on one device, ignoring its shardings; return the outputs.

    Raises:
        UsageError: Inputs that do not fit.
        ShardyError: The program is written for several devices.
    """
    check_static(module)
    ins, outs = input_tensors(module.root), output_tensors(module.root)
    checked = check_inputs(arrays, ins)
    return CompiledModule(sequential(module), ins, outs)(checked)
