"""Running a per-device program on JAX's devices, with global arrays going in and coming out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh, device_count
from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.from_jax import NamedShardings
from pyshardy.frontend.interface import Port
from pyshardy.ir.functions import arg_attrs, main_function
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import check_inputs, check_static
from pyshardy.runtime.exported import Executable
from pyshardy.runtime.peers import processes_of, together
from pyshardy.runtime.stacked import DEVICES, stacked, stacked_shape

_DONATED = ("tf.aliasing_output", "jax.buffer_donor")


@dataclass(frozen=True)
class Border:
    """What goes into a program and comes out of it, as global tensors.

    Attributes:
        inputs: The inputs with their shardings.
        outputs: The outputs with their shardings.
        meshes: The meshes by name.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    meshes: Mapping[str, Mesh]

    @property
    def device_count(self) -> int:
        """Number of devices of the program."""
        return device_count(self.meshes)

    def local(self, port: Port) -> Port:
        """What every device has of an input or output."""
        if port.sharding is None:
            return port
        shape = local_shape(port.sharding, mesh_of(port.sharding, self.meshes), port.shape)
        return Port(port.name, port.index, shape, port.element, None)


class LocalExecutable:
    """A per-device program, compiled for some devices.

    Args:
        module: The per-device program.
        border: Its global inputs and outputs.
        devices: The devices, in the order that device ids count them; by default those that JAX has.

    Raises:
        UsageError: Too few devices.
        ShardyError: An input or output that holds parts of a sum, or a type that JAX does not have.
    """

    def __init__(self, module: Module, border: Border, devices: Sequence[Any] | None = None) -> None:
        check_static(module)
        self.border = border
        count = border.device_count
        self._shardings = _Shardings(border, devices)
        ins, outs = ([self._stacked(port) for port in ports] for ports in (border.inputs, border.outputs))
        flat = [self._shardings.flat(port) for port in ins], [self._shardings.flat(port) for port in outs]
        donated = [place for place, port in enumerate(border.inputs) if _is_donated(module, port)]
        self._executable = Executable(stacked(module, count, self._shardings.are_cpus), ins, outs, flat, donated)
        self._flat_inputs = ins, flat[0]

    def _stacked(self, port: Port) -> Port:
        local = self.border.local(port)
        return Port(port.name, port.index, stacked_shape(local.shape, self.border.device_count), port.element, None)

    def __call__(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The outputs, global arrays on all devices, for inputs that are global arrays, placed or not.

        Raises:
            UsageError: Inputs that do not fit.
            ShardyError: XLA fails to compile or run the program.
        """
        checked = check_inputs(arrays, self.border.inputs)
        return together(self._shardings.processes, lambda: self._run(checked))

    def _run(self, checked: Sequence[Any]) -> list[jax.Array]:
        with self._executable.types():
            flat = [
                _on_same_devices(place(array, self._shardings.named(port)), stack.shape, sharding)
                for array, port, stack, sharding in zip(checked, self.border.inputs, *self._flat_inputs)
            ]
            found = self._executable(flat)
            return [
                _on_same_devices(array, port.shape, self._shardings.named(port))
                for array, port in zip(found, self.border.outputs)
            ]

    def as_text(self) -> str:
        """What XLA makes of the program, as HLO."""
        return self._executable.as_text()


class _Shardings:
    """The shardings of global and of stacked arrays over devices."""

    def __init__(self, border: Border, devices: Sequence[Any] | None) -> None:
        count = border.device_count
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
        self._converter = NamedShardings(border.meshes, available)
        self._named: dict[TensorSharding | None, NamedSharding] = {}

    def flat(self, port: Port) -> NamedSharding:
        """How a stacked array lies on the devices."""
        return NamedSharding(self._mesh, PartitionSpec(DEVICES) if port.shape else PartitionSpec())

    def named(self, port: Port) -> NamedSharding:
        """How a global array lies on the devices."""
        if port.sharding is not None and port.sharding.unreduced:
            raise ShardyError(
                "running a partitioned program",
                got=f"{port.name}, of which every device has a part of a sum: {port.sharding}",
                needed="whole values at the border of the program",
            )
        found = self._named.get(port.sharding)
        if found is None:
            converted = self._converter.cut(port)
            if converted is None or (converted.is_fully_replicated and converted.mesh.size < self._mesh.size):
                converted = NamedSharding(self._mesh, PartitionSpec())  # all devices have it whole
            found = converted
            self._named[port.sharding] = found
        return found


def devices_in_memory(devices: Sequence[Any] | None, count: int) -> int:
    """How many of the first devices are virtual ones of this process, and so share its memory."""
    available = list(jax.devices() if devices is None else devices)[:count]
    return sum(device.platform == "cpu" and device.process_index == jax.process_index() for device in available)


def place(array: Any, sharding: NamedSharding) -> jax.Array:
    """A global array on the devices; with several processes, each holds the whole array and places its part."""
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
    """The array that every device's data of `array` makes under another sharding; nothing is copied."""
    if not array.size:  # what devices have of nothing has any shape
        return place(np.zeros(shape, array.dtype), sharding)
    data = {shard.device: shard.data for shard in array.addressable_shards}
    shards = [data[device] for device in sharding.addressable_devices_indices_map(shape)]
    return jax.make_array_from_single_device_arrays(shape, sharding, shards)


def _is_donated(module: Module, port: Port) -> bool:
    attrs = arg_attrs(main_function(module.root), port.index)
    return any(name in attrs for name in _DONATED)
