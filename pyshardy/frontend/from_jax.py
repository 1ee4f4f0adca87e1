"""Modules from JAX functions, and shardings to JAX's `NamedSharding`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from pyshardy.core.axes import AxisRef, ordered_refs
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.errors import InvalidShardingError, UnsupportedVersionError, UsageError
from pyshardy.frontend.annotated import Axes
from pyshardy.frontend.interface import Port
from pyshardy.frontend.load import load_content
from pyshardy.ir.module import Module

Tree = Any


@dataclass(frozen=True, slots=True)
class JaxSignature:
    """How the flat inputs and outputs of a lowered module make up the arguments and results of the function.

    Attributes:
        in_tree: Structure of (positional arguments, keyword arguments).
        in_ranks: Rank of every leaf of the arguments as JAX sees it; a typed PRNG key has fewer dimensions
            than the array of its data.
        kept: The leaves that the module takes; JAX drops those that are not used.
        out_tree: Structure of the result.
        out_ranks: Rank of every leaf of the result.
        devices: The devices it was lowered for, in the order that device ids of the module count them; None if it
            was lowered for no devices in particular.
        callbacks: The Python functions that the module calls, by their numbers there.
        partitioners: What JAX knows of the partitioners of `custom_partitioning`, by their names in the module.
        lowered: What it comes from: JAX refers to Python functions inside, such as partitioners, weakly.
    """

    in_tree: Any
    in_ranks: tuple[int, ...]
    kept: tuple[int, ...]
    out_tree: Any
    out_ranks: tuple[int, ...]
    devices: tuple[Any, ...] | None = None
    callbacks: tuple[Any, ...] = ()
    partitioners: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    lowered: Any = field(default=None, repr=False, compare=False)


def load_lowered(lowered: jax.stages.Lowered, mesh: Axes = None) -> Module:
    """The module of a lowered JAX function, with the function's signature in `origin`.

    Args:
        lowered: What `jax.jit(f).lower(...)` gives.
        mesh: The axes that tilings are over, if it was lowered for GSPMD; found without.
    """
    stream = BytesIO()
    mlir: Any = lowered.compiler_ir("stablehlo")
    mlir.operation.write_bytecode(stream)
    module = load_content(stream.getvalue(), "the lowered function", mesh)
    module.origin = _signature(lowered)
    return module


def load_exported(exported: Any, mesh: Axes = None) -> Module:
    """The module of a `jax.export.Exported`, with the function's signature in `origin`; `mesh` as for `load_lowered`.

    Its shardings are over devices in no particular order: those of an export are not part of it.
    """
    module = load_content(exported.mlir_module_serialized, "the exported function", mesh)
    module.origin = JaxSignature(
        exported.in_tree,
        tuple(len(leaf.shape) for leaf in exported.in_avals),
        tuple(exported.module_kept_var_idx),
        exported.out_tree,
        tuple(len(leaf.shape) for leaf in exported.out_avals),
    )
    return module


def load_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    in_shardings: Any = None,
    out_shardings: Any = None,
    mesh: Axes = None,
) -> Module:
    """Lower a function for example arguments, arrays or `jax.ShapeDtypeStruct`s, and load the module.

    Args:
        function: A function, jitted or not.
        args: Its arguments.
        in_shardings: As for `jax.jit`.
        out_shardings: As for `jax.jit`.
        mesh: As for `load_lowered`.

    Raises:
        UsageError: Shardings for a function that is jitted already, or a function that is compiled already.
    """
    if isinstance(function, jax.stages.Compiled):
        raise UsageError("loading a function", got="a compiled one", needed="the function, or what lowering it gives")
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    given = {name: value for name, value in given.items() if value is not None}
    jitted: Any = function
    if not hasattr(function, "lower"):
        jitted = jax.jit(function, **given)
    elif given:
        raise UsageError(
            "loading a jitted function",
            got=" and ".join(given),
            needed="the shardings in jax.jit itself",
            hint="pass the function before jax.jit, or give jax.jit the shardings",
        )
    return load_lowered(jitted.lower(*args), mesh)


def _signature(lowered: jax.stages.Lowered) -> JaxSignature:
    in_leaves = jax.tree.leaves(lowered.args_info)
    out_leaves = jax.tree.leaves(lowered.out_info)
    return JaxSignature(
        lowered.in_tree,
        tuple(len(leaf.shape) for leaf in in_leaves),
        _kept_leaves(lowered, len(in_leaves)),
        lowered.out_tree,
        tuple(len(leaf.shape) for leaf in out_leaves),
        _devices(lowered),
        tuple(_compile_arg(lowered, "host_callbacks") or ()),
        {str(id(kept)): kept for kept in _compile_arg(lowered, "keepalive") or () if hasattr(kept, "partition")},
        lowered,
    )


def _kept_leaves(lowered: jax.stages.Lowered, count: int) -> tuple[int, ...]:
    """The arguments that the module takes: JAX leaves out unused ones, and has no public way to tell which."""
    kept = _compile_arg(lowered, "kept_var_idx")
    return tuple(range(count)) if kept is None else tuple(sorted(kept))


def _compile_arg(lowered: jax.stages.Lowered, name: str) -> Any:
    """What JAX gives the compiler besides the module, which is not public; None if this JAX has no such thing."""
    try:
        return lowered._lowering.compile_args[name]
    except (AttributeError, KeyError, TypeError):
        return None


def _devices(lowered: jax.stages.Lowered) -> tuple[Any, ...] | None:
    """The devices of the meshes in the function, which may be any of JAX's in any order; not public in JAX either."""
    devices = getattr(lowered._lowering, "_device_list", None)
    return None if devices is None else tuple(devices)


def input_tree(
    signature: JaxSignature, ports: Sequence[Port], meshes: Mapping[str, Mesh], devices: Sequence[Any] | None = None
) -> Tree:
    """The shardings of the inputs as a tree over the positional arguments, fit for `jax.jit(in_shardings=...)`.

    Args:
        signature: The signature of the function.
        ports: The inputs of the module.
        meshes: The meshes by name.
        devices: The devices that the meshes are laid over; by default those that the function was lowered for.

    Raises:
        UnsupportedVersionError: This JAX does not tell which arguments it dropped.
        InvalidShardingError: A sharding that `PartitionSpec` cannot express.
    """
    if len(signature.kept) != len(ports):
        raise UnsupportedVersionError(
            "matching the inputs of the module with the arguments of the function",
            got=f"{len(ports)} inputs for {len(signature.kept)} arguments",
            needed="a JAX that tells which unused arguments it dropped",
            hint="lower with jax.jit(..., keep_unused=True)",
        )
    leaves: list[NamedSharding | None] = [None] * len(signature.in_ranks)
    converter = NamedShardings(meshes, signature.devices if devices is None else devices)
    for leaf, port in zip(signature.kept, ports):
        leaves[leaf] = converter.of(port, signature.in_ranks[leaf])
    args, _ = jax.tree.unflatten(signature.in_tree, leaves)
    return args


def output_tree(
    signature: JaxSignature, ports: Sequence[Port], meshes: Mapping[str, Mesh], devices: Sequence[Any] | None = None
) -> Tree:
    """The shardings of the outputs as a tree over the result, fit for `jax.jit(out_shardings=...)`."""
    converter = NamedShardings(meshes, signature.devices if devices is None else devices)
    leaves = [converter.of(port, rank) for port, rank in zip(ports, signature.out_ranks)]
    return jax.tree.unflatten(signature.out_tree, leaves)


class NamedShardings:
    """Converts shardings to `NamedSharding`s on meshes of real devices.

    Args:
        meshes: The meshes of the module by name.
        devices: The devices, in the order that device ids count them; by default all that JAX has.
    """

    def __init__(self, meshes: Mapping[str, Mesh], devices: Sequence[Any] | None = None) -> None:
        self.meshes = meshes
        self._devices = devices
        self._jax_meshes: dict[Mesh, jax.sharding.Mesh] = {}

    def of(self, port: Port, rank: int | None = None) -> NamedSharding | None:
        """The sharding of an input or output; None if the module has no mesh with axes.

        Args:
            port: The input or output.
            rank: Its rank as JAX sees it, if that is smaller than that of its data.
        """
        sharding = port.sharding
        mesh = None if sharding is None else mesh_of(sharding, self.meshes)
        if mesh is None or not mesh.axes:
            sharding, mesh = None, next((mesh for mesh in self.meshes.values() if mesh.axes), None)
        if mesh is None:
            return None
        try:
            spec = partition_spec(sharding, len(port.shape) if rank is None else rank)
        except InvalidShardingError as error:
            raise InvalidShardingError(f"{error.doing} of {port.name}", got=error.got, needed=error.needed) from error
        return NamedSharding(self.jax_mesh(mesh), spec)

    def cut(self, port: Port) -> NamedSharding | None:
        """The sharding of an input or output on a mesh whose axes are cut where it has sub-axes.

        `PartitionSpec` cannot name a sub-axis, but the axes of that mesh, called `x:(1)2` and so on.
        """
        sharding = port.sharding
        if sharding is None or all(axis.is_full for axis in sharding.all_axes()):
            return self.of(port)
        mesh = mesh_of(sharding, self.meshes)
        atoms = ordered_refs(mesh, sharding.all_axes())
        cut = Mesh([(_name(atom), atom.length(mesh)) for atom in atoms], mesh.device_ids)
        dims = [[_name(atom) for axis in dim.axes for atom in atoms if axis.contains(atom)] for dim in sharding.dims]
        return NamedSharding(self.jax_mesh(cut), PartitionSpec(*(tuple(names) or None for names in dims)))

    def jax_mesh(self, mesh: Mesh) -> jax.sharding.Mesh:
        """The mesh over real devices."""
        found = self._jax_meshes.get(mesh)
        if found is None:
            found = self._jax_meshes[mesh] = jax_mesh(mesh, self._devices)
        return found


def _name(axis: AxisRef) -> str:
    return axis.name if axis.size is None else f"{axis.name}:({axis.pre_size}){axis.size}"


def jax_mesh(mesh: Mesh, devices: Sequence[Any] | None = None) -> jax.sharding.Mesh:
    """A JAX mesh with the axes and the device order of `mesh`.

    Raises:
        UsageError: There are fewer devices than the mesh needs.
    """
    available = list(jax.devices() if devices is None else devices)
    if len(available) < mesh.size:
        raise UsageError(
            f"laying the mesh {mesh} over devices",
            got=f"{len(available)} devices",
            needed=f"{mesh.size}",
            hint=f"on a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count={mesh.size} before importing jax",
        )
    ordered = np.array([available[device] for device in mesh.device_order], dtype=object)
    return jax.sharding.Mesh(ordered.reshape([size for _, size in mesh.axes]), mesh.axis_names)


def partition_spec(sharding: TensorSharding | None, rank: int) -> PartitionSpec:
    """The `PartitionSpec` of a sharding; replicated if there is none.

    Args:
        sharding: The sharding.
        rank: Number of dimensions to describe; further ones must not be sharded.

    Raises:
        InvalidShardingError: A sub-axis, which a `PartitionSpec` cannot name.
    """
    if sharding is None:
        return PartitionSpec()
    entries: list[Any] = []
    for dim in sharding.dims:
        for axis in dim.axes:
            if not axis.is_full:
                raise InvalidShardingError(
                    "converting the sharding", got=f"the sub-axis {axis}", needed="whole axes, as PartitionSpec has"
                )
        names = tuple(axis.name for axis in dim.axes)
        entries.append(names[0] if len(names) == 1 else names or None)
    if any(entries[rank:]):
        raise InvalidShardingError("converting the sharding", got=str(sharding), needed=f"at most {rank} sharded dims")
    unreduced = {axis.name for axis in sharding.unreduced}
    if not unreduced:
        return PartitionSpec(*entries[:rank])
    return PartitionSpec(*entries[:rank], unreduced=unreduced)
