"""Converts shardings to JAX's `NamedSharding` and `PartitionSpec`, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import takewhile
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import ordered_refs
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.spec import axis_text
from pyshardy.errors import InvalidShardingError, UsageError
from pyshardy.frontend.annotate import core_mesh
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.frontend.jax_devices import checked_devices


class SubAxes(Enum):
    """What to do with sub-axes, which `PartitionSpec` cannot name."""

    REFUSE = "refuse"
    """Raise `InvalidShardingError`."""
    SPLIT = "split"
    """Use a mesh whose axes are split where the sharding needs it, with names like `x:(1)2`."""
    GATHER = "gather"
    """Drop sub-axes and the axes minor to them, which means that these shards are gathered."""


ABSTRACT = "abstract"
"""Instead of devices: use abstract meshes."""
Devices = Sequence[Any] | AbstractMesh | str | None


class NamedShardings:
    """Converts shardings to `NamedSharding`s.

    Args:
        meshes: The meshes of the module by name.
        devices: The devices, in the order of device ids: a list, or a mesh of JAX; by default all devices of JAX.
            "abstract" or a `jax.sharding.AbstractMesh` needs none.
        sub_axes: What to do with sub-axes.
    """

    def __init__(
        self, meshes: Mapping[str, Mesh], devices: Devices = None, sub_axes: SubAxes | str = SubAxes.REFUSE
    ) -> None:
        self.meshes = meshes
        if isinstance(devices, str) and devices != ABSTRACT:
            raise UsageError("choosing devices", got=repr(devices), needed='devices, or "abstract" for none')
        is_placed = devices is not None and not isinstance(devices, (str, AbstractMesh))
        self._devices = checked_devices(devices) if is_placed else devices
        self._sub_axes = _sub_axes(sub_axes)
        self._jax_meshes: dict[Mesh, Any] = {}

    def of(self, tensor: InterfaceTensor, rank: int | None = None) -> NamedSharding | None:
        """The sharding of an input or output; None if the module has no mesh with axes.

        Args:
            tensor: The input or output.
            rank: Its rank in JAX, if that is smaller than the rank of its data.
        """
        mesh = self._mesh_of(tensor)
        if mesh is None:
            return None
        if self._sub_axes is SubAxes.SPLIT and tensor.sharding is not None and _has_sub_axes(tensor.sharding):
            _check_reduced(tensor.sharding)
            return self.cut(tensor)
        spec = self.spec(tensor, rank)
        try:
            return NamedSharding(self.jax_mesh(mesh), spec)
        except ValueError as error:
            doing = f"converting the sharding of {tensor.name}"
            raise InvalidShardingError(doing, got=str(error).splitlines()[0], needed="what JAX can express") from error

    def spec(self, tensor: InterfaceTensor, rank: int | None = None) -> PartitionSpec:
        """The spec of an input or output; the parameters are those of `of`."""
        sharding = None if self._mesh_of(tensor) is None else tensor.sharding
        if sharding is not None and self._sub_axes is SubAxes.GATHER:
            sharding = whole_axes(sharding)
        try:
            return partition_spec(sharding, len(tensor.shape) if rank is None else rank)
        except InvalidShardingError as error:
            raise error.located(f"{error.doing} of {tensor.name}") from None

    def _mesh_of(self, tensor: InterfaceTensor) -> Mesh | None:
        mesh = None if tensor.sharding is None else mesh_of(tensor.sharding, self.meshes)
        if mesh is None or not mesh.axes:
            return next((mesh for mesh in self.meshes.values() if mesh.axes), None)
        return mesh

    def cut(self, tensor: InterfaceTensor) -> NamedSharding | None:
        """The sharding of an input or output, on a mesh in which the axes with sub-axes are split.

        `PartitionSpec` cannot name a sub-axis, but it can name an axis `x:(1)2` of that mesh.
        """
        sharding = tensor.sharding
        if sharding is None or not _has_sub_axes(sharding):
            return self.of(tensor)
        mesh = mesh_of(sharding, self.meshes)
        atoms = ordered_refs(mesh, sharding.all_axes())
        cut = Mesh([(axis_text(atom), atom.length(mesh)) for atom in atoms], mesh.device_ids)
        dims = [
            [axis_text(atom) for axis in dim.axes for atom in atoms if axis.contains(atom)] for dim in sharding.dims
        ]
        return NamedSharding(self.jax_mesh(cut), PartitionSpec(*(tuple(names) or None for names in dims)))

    def jax_mesh(self, mesh: Mesh) -> Any:
        """The mesh of real devices, or the abstract mesh."""
        found = self._jax_meshes.get(mesh)
        if found is None:
            devices = self._devices
            if isinstance(devices, AbstractMesh):
                found = devices if core_mesh(devices) == mesh else abstract_mesh(mesh)
            else:
                found = abstract_mesh(mesh) if isinstance(devices, str) else jax_mesh(mesh, devices)
            self._jax_meshes[mesh] = found
        return found


def _sub_axes(given: SubAxes | str) -> SubAxes:
    try:
        return SubAxes(given)
    except ValueError:
        names = ", ".join(repr(member.value) for member in SubAxes)
        raise UsageError("converting sub-axes", got=repr(given), needed=f"one of {names}") from None


def _has_sub_axes(sharding: TensorSharding | None) -> bool:
    return sharding is not None and not all(axis.is_full for axis in sharding.all_axes())


def whole_axes(sharding: TensorSharding) -> TensorSharding:
    """The sharding up to the first sub-axis of every dimension.

    >>> from pyshardy.core.notation import parse_sharding
    >>> whole_axes(parse_sharding('<@mesh, [{"x", "y":(1)2, "z"}, {"y":(2)2}]>'))
    TensorSharding(<@mesh, [{"x"}, {}]>)
    """
    dims = [DimSharding(_up_to_sub_axis(dim.axes), dim.is_open) for dim in sharding.dims]
    replicated, unreduced = (
        [axis for axis in axes if axis.is_full] for axes in (sharding.replicated, sharding.unreduced)
    )
    if len(unreduced) < len(sharding.unreduced):
        raise InvalidShardingError("gathering sub-axes", got=f"{sharding}, unreduced on one", needed="whole axes")
    return TensorSharding(sharding.mesh, dims, replicated, unreduced, sharding.reduction)


def _up_to_sub_axis(axes: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    return tuple(takewhile(lambda axis: axis.is_full, axes))


def abstract_mesh(mesh: Any) -> AbstractMesh:
    """The abstract mesh of JAX for a mesh of pyshardy or JAX, or for axes with sizes.

    Raises:
        UsageError: The argument is not a mesh.

    >>> abstract_mesh({"data": 32, "model": 16}).shape_tuple
    (('data', 32), ('model', 16))
    """
    if isinstance(mesh, (AbstractMesh, jax.sharding.Mesh)):
        found: AbstractMesh = mesh.abstract_mesh
        return found
    mesh = core_mesh(mesh)
    mesh.check_listable()
    if not mesh.axes:
        raise UsageError("making a mesh of JAX", got="a mesh without axes", needed="axes with their sizes")
    sizes = tuple(size for _, size in mesh.axes)
    return AbstractMesh(sizes, mesh.axis_names, axis_types=(AxisType.Auto,) * len(sizes))


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


def _check_reduced(sharding: TensorSharding) -> None:
    if sharding.unreduced:
        needed = "tensors without partial values, or sums on whole axes"
        raise InvalidShardingError("converting the sharding", got=str(sharding), needed=needed)


def partition_spec(sharding: TensorSharding | None, rank: int) -> PartitionSpec:
    """The `PartitionSpec` of a sharding; replicated if there is none.

    Args:
        sharding: The sharding.
        rank: The number of dimensions to describe; the others must not be sharded.

    Raises:
        InvalidShardingError: There is a sub-axis, which a `PartitionSpec` cannot name.
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
    if sharding.reduction is not ReductionKind.SUM or not all(axis.is_full for axis in sharding.unreduced):
        _check_reduced(sharding)
    if not unreduced:
        return PartitionSpec(*entries[:rank])
    return PartitionSpec(*entries[:rank], unreduced=unreduced)
