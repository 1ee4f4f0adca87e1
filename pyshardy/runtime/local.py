"""Runs a per-device program on JAX's devices, with global arrays as inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.from_jax import NamedShardings
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.functions import is_donated, main_function
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import check_static
from pyshardy.runtime.executable import Executable
from pyshardy.runtime.exported import CompiledModule
from pyshardy.runtime.peers import processes_of
from pyshardy.runtime.stacked import DEVICES, stacked, stacked_shape


class LocalExecutable(Executable):
    """A per-device program, compiled for some devices.

    Args:
        module: The per-device program.
        interface: The inputs, outputs and meshes of the whole program.
        devices: The devices, in the order of device ids; by default those of JAX.

    Raises:
        UsageError: There are too few devices.
        ShardyError: An input or output is unreduced, or JAX lacks a type.
    """

    def __init__(self, module: Module, interface: Interface, devices: Sequence[Any] | None = None) -> None:
        check_static(module)
        self.interface = interface
        count = interface.device_count
        self._shardings = _Shardings(interface, devices)
        self.processes = self._shardings.processes
        ins, outs = ([self._stacked(tensor) for tensor in tensors] for tensors in (interface.inputs, interface.outputs))
        flat = [self._shardings.flat(tensor) for tensor in ins], [self._shardings.flat(tensor) for tensor in outs]
        donated = [
            place
            for place, tensor in enumerate(interface.inputs)
            if is_donated(main_function(module.root), tensor.index)
        ]
        self._compiled = CompiledModule(stacked(module, count, self._shardings.are_cpus), ins, outs, flat, donated)
        self._flat_inputs = ins, flat[0]

    def _stacked(self, tensor: InterfaceTensor) -> InterfaceTensor:
        shape = stacked_shape(self.interface.local_shape(tensor), self.interface.device_count)
        return InterfaceTensor(tensor.name, tensor.index, shape, tensor.element, None)

    def run(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The outputs, global arrays on all devices."""
        with self._compiled.types():
            flat = [
                _on_same_devices(place(array, self._shardings.named(tensor)), stack.shape, sharding)
                for array, tensor, stack, sharding in zip(arrays, self.interface.inputs, *self._flat_inputs)
            ]
            found = self._compiled(flat)
            return [
                _on_same_devices(array, tensor.shape, self._shardings.named(tensor))
                for array, tensor in zip(found, self.interface.outputs)
            ]

    def as_text(self) -> str:
        """The HLO that XLA has compiled."""
        return self._compiled.as_text()


class _Shardings:
    """The shardings of global and of stacked arrays over devices."""

    def __init__(self, interface: Interface, devices: Sequence[Any] | None) -> None:
        count = interface.device_count
        available = list(jax.devices() if devices is None else devices)
        if len(available) < count:
            raise UsageError(
                "running a partitioned program",
                got=f"{len(available)} devices",
                needed=f"{count}",
                hint=f"on a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count={count} before importing jax",
            )
        self.processes = processes_of(available[:count])
        self.are_cpus = available[0].platform == "cpu"
        self._mesh = jax.sharding.Mesh(np.array(available[:count], dtype=object), (DEVICES,))
        self._converter = NamedShardings(interface.meshes, available)
        self._named: dict[TensorSharding | None, NamedSharding] = {}

    def flat(self, tensor: InterfaceTensor) -> NamedSharding:
        """The sharding of a stacked array."""
        return NamedSharding(self._mesh, PartitionSpec(DEVICES) if tensor.shape else PartitionSpec())

    def named(self, tensor: InterfaceTensor) -> NamedSharding:
        """The sharding of a global array."""
        if tensor.sharding is not None and tensor.sharding.unreduced:
            raise ShardyError(
                "running a partitioned program",
                got=f"{tensor.name}, which is unreduced: {tensor.sharding}",
                needed="inputs and outputs that are not unreduced",
            )
        found = self._named.get(tensor.sharding)
        if found is None:
            converted = self._converter.cut(tensor)
            if converted is None or (converted.is_fully_replicated and converted.mesh.size < self._mesh.size):
                converted = NamedSharding(self._mesh, PartitionSpec())  # replicated
            found = converted
            self._named[tensor.sharding] = found
        return found


def place(array: Any, sharding: NamedSharding) -> jax.Array:
    """Place a global array on the devices. With several processes, each has the whole array and places its own part."""
    if isinstance(array, jax.Array) and array.sharding.is_equivalent_to(sharding, array.ndim):
        return array
    placed: jax.Array
    if sharding.is_fully_addressable:
        placed = jax.device_put(array, sharding)
        return placed
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        placed = jax.jit(lambda x: x, out_shardings=sharding)(array)
        return placed
    whole = np.asarray(array)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def _on_same_devices(array: jax.Array, shape: tuple[int, ...], sharding: NamedSharding) -> jax.Array:
    """The array that the device buffers of `array` form under another sharding; nothing is copied."""
    if not array.size:  # empty shards may have any shape
        return place(np.zeros(shape, array.dtype), sharding)
    data = {shard.device: shard.data for shard in array.addressable_shards}
    shards = [data[device] for device in sharding.addressable_devices_indices_map(shape)]
    return jax.make_array_from_single_device_arrays(shape, sharding, shards)
