"""Everything that pyshardy uses of JAX beyond its public interface.

JAX does not lower callbacks, partitioners, or specs in a jitted function for abstract meshes. Stand-in devices solve
this, because JAX uses few attributes of a device before it compiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.interpreters import ad, batching, mlir
from jax.sharding import AbstractMesh, Mesh

from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import MOST_DEVICES

__all__ = ["ad", "batching", "mlir"]
"""JAX's tables of the rules of primitives: differentiation, batching and lowering."""


def coordination_client() -> Any:
    """The client of JAX's coordination service; None without one."""
    try:
        from jax._src.distributed import global_state
    except ImportError:
        return None
    return getattr(global_state, "client", None)


def compile_arg(lowered: Any, name: str) -> Any:
    """JAX's arguments for the compiler besides the module of a `Lowered`; None if this JAX has none."""
    try:
        return lowered._lowering.compile_args[name]
    except (AttributeError, KeyError, TypeError):
        return None


def kept_leaves(lowered: Any, count: int) -> tuple[int, ...]:
    """The arguments that the module takes. JAX drops unused ones, and has no public way to tell which."""
    kept = compile_arg(lowered, "kept_var_idx")
    return tuple(range(count)) if kept is None else tuple(sorted(kept))


def platform_of(lowered: Any) -> str | None:
    """The platform that a function was lowered for; the first of several; None if this JAX does not tell."""
    found = getattr(lowered._lowering, "_platforms", None)
    return found[0] if found else None


def compiler_options_of(lowered: Any) -> tuple[tuple[str, Any], ...]:
    """The options for the compiler that `jax.jit` was given, by name; none if this JAX does not tell."""
    return tuple(getattr(lowered._lowering, "_compiler_options_kvs", None) or ())


def devices_of(lowered: Any) -> tuple[Any, ...] | None:
    """The devices of the meshes in a function, in any order; None without devices or with stand-ins."""
    found = getattr(lowered._lowering, "_device_list", None)
    if found is None:
        return None
    devices = tuple(found)
    return None if devices and isinstance(devices[0], StandInDevice) else devices


def key_name(dtype: Any) -> str:
    """The PRNG implementation of a key type, as `jax.random.key(0, impl=...)` takes it."""
    return str(dtype._impl.name)


def inspections(lowered: Any) -> dict[int, Any]:
    """The callbacks of `jax.debug.inspect_array_sharding` in a `Lowered`, by the numbers of `inspection_number`.

    They take a result of `hlo_sharding`, and call the user's callback with a sharding of JAX.
    """
    kept = compile_arg(lowered, "keepalive") or ()
    return {id(one): one for one in kept if getattr(one, "__name__", "") == "_hlo_sharding_callback"}


def inspection_number(config: Any) -> int:
    """The address of the function that JAX wrote into a call of `InspectSharding`; 0 if there is none."""
    key = getattr(config, "value_bytes", b"")  # the address of a function of XLA comes first
    return int.from_bytes(key[8:], "little") if len(key) == 16 else 0


def hlo_sharding(sharding: Any, rank: int) -> Any:
    """A `NamedSharding` as an `HloSharding` of XLA."""
    return sharding._to_xla_hlo_sharding(rank)


def numbers_of_module(ctx: Any) -> dict[Any, int]:
    """A dictionary that belongs to the module that is being lowered."""
    found: dict[Any, int] = ctx.module_context.cached_primitive_lowerings.setdefault("pyshardy's groups", {})
    return found


def stand_in_mesh(mesh: AbstractMesh, platform: str) -> Mesh:
    """A mesh of stand-in devices, for tracing and lowering but not for compiling.

    Args:
        mesh: Its axes and their types.
        platform: The platform to lower for: "cpu", "tpu", "cuda" or "rocm".
    """
    devices = np.empty(mesh.size, dtype=object)
    devices[:] = [_stand_in(platform, index) for index in range(mesh.size)]
    found = Mesh(devices.reshape(mesh.axis_sizes), mesh.axis_names, axis_types=mesh.axis_types)
    found.__dict__["abstract_mesh"] = mesh  # without the kind of device, like meshes that functions close over
    return found


class StandInDevice:
    """A stand-in device, with the attributes that JAX uses before it compiles."""

    process_index = 0

    def __init__(self, index: int, client: StandInClient) -> None:
        self.id = index
        self.client = client
        self.platform = self.device_kind = client.platform

    def __repr__(self) -> str:
        return f"StandInDevice({self.platform}:{self.id})"

    def addressable_memories(self) -> list[StandInMemory]:
        """The memories that JAX knows on every platform."""
        return list(_MEMORIES)

    def default_memory(self) -> StandInMemory:
        """The memory that arrays are in by default."""
        return _MEMORIES[0]


@dataclass(frozen=True, slots=True)
class StandInMemory:
    """A memory of a stand-in device; JAX uses its kind."""

    kind: str


_MEMORIES = tuple(map(StandInMemory, ("device", "pinned_host", "unpinned_host")))


class StandInClient:
    """The CPU client with the name of another platform; it makes the descriptors of callbacks."""

    def __init__(self, platform: str) -> None:
        self.platform = self._raw_platform = platform
        self._device = jax.devices("cpu")[0]
        self._real = self._device.client

    def get_default_layout(self, dtype: Any, shape: Any, _: StandInDevice) -> Any:
        """The default layout of an array."""
        return self._real.get_default_layout(dtype, shape, self._device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@lru_cache(maxsize=16)
def _client(platform: str) -> StandInClient:
    return StandInClient(platform)


@lru_cache(maxsize=MOST_DEVICES)
def _stand_in(platform: str, index: int) -> StandInDevice:
    return StandInDevice(index, _client(platform))


register_cache(_client.cache_clear)
register_cache(_stand_in.cache_clear)
