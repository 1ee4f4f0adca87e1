"""Collectives of StableHLO, with their replica groups.

Source: docs/semantics/partitioner.md#groups-of-devices
Source: docs/semantics/partitioner.md#channels
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.core.needs import Need
from pyshardy.core.sharding import ReductionKind
from pyshardy.core.text import format_symbol, quote
from pyshardy.ir.device_groups import stablehlo_mesh_text
from pyshardy.ir.nodes import Op, Region, Value, clone_region_into
from pyshardy.ir.source import place_for
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.channels import CHANNEL
from pyshardy.transforms.local.identity import COMBINERS
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.reshards.causes import reduction_word

MeshRef = str | Mesh
"""A mesh as shardings refer to it."""
Combine = ReductionKind | Region | str
"""How values are combined: by a reduction kind of shardings, by a body, or by an op of StableHLO."""
_GROUPS = "replica_groups"
_REDUCED_BY_ALL = frozenset(("add", "multiply", "maximum", "minimum"))
_OF_TRUTH_VALUES = frozenset(("and", "or"))


def is_all_reduced(name: str | None, element: str) -> bool:
    """Whether XLA has an all-reduce with this op and element type, on CPUs and GPUs alike.

    >>> is_all_reduced("add", "i32"), is_all_reduced("and", "i1"), is_all_reduced("and", "i32")
    (True, True, False)
    """
    return name in _REDUCED_BY_ALL or (name in _OF_TRUTH_VALUES and element == "i1")


class Collectives:
    """Makes collectives over the devices of one mesh, at one position.

    Args:
        local: The state of this run.
        builder: Makes the ops.
        mesh: The mesh, as shardings refer to it.
        of: The op whose results they complete; None if they do not complete results.
    """

    def __init__(self, local: Localizer, builder: Builder, mesh: MeshRef, of: Op | None = None) -> None:
        self.local = local
        self.of = of if local.options.name_causes else None
        self.builder = builder
        self.mesh_ref = mesh
        self.mesh: Mesh = local.meshes[mesh] if isinstance(mesh, str) else mesh

    def groups(self, axes: Axes) -> Any:
        """The groups of devices that differ only along these axes, as an attribute."""
        key = (axes, self.mesh_ref)
        if key not in self.local.groups:
            self.local.groups[key] = self._make_groups(axes)
        return self.local.groups[key]

    def _make_groups(self, axes: Axes) -> Any:
        attrs, options = self.local.attrs, self.local.options
        if options.mesh_axes_groups and not (options.axes_where_same and self.mesh.device_ids is not None):
            return attrs.parse(_axes_text(axes, self.mesh_ref))
        return attrs.device_rows(replica_groups(axes, self.mesh))

    def all_gather(self, value: Value, axes: Axes, dim: int) -> Value:
        """Concatenate the shards of a group along a dimension; on an empty one, the collective would be invalid."""
        shape = list(value.type.shape or ())
        if shape[dim] == 0:
            return value
        shape[dim] *= axes_size(axes, self.mesh)
        attrs = {"all_gather_dim": self.builder.number(dim), **self._grouped(axes)}
        return self._make("all_gather", value, shape, attrs)

    def all_reduce(self, value: Value, axes: Axes, combine: Combine, index: int = 0) -> Value:
        """Combine the values of a group; `combine` is the body or the reduction, `index` the number of the result."""
        op = self.builder.op("all_reduce", [value], [value.type], self._grouped(axes), region_count=1)
        self._fill(op.region, value, combine)
        self._name(op, index)
        return op.result

    def reduce_all(self, values: Sequence[Value], axes: Axes, initial: Sequence[Value], body: Region) -> list[Value]:
        """Combine the values of a group by any body: gather them along a new dimension and reduce it."""
        builder, gathered = self.builder, []
        for index, value in enumerate(values):
            shape = value.type.shape or ()
            gathered.append(self.all_gather(builder.reshape(value, (*shape, 1)), axes, len(shape)))
            self._name(gathered[-1].defining_op, index)
        attrs = {"dimensions": builder.array([values[0].type.rank])}
        op = builder.op("reduce", [*gathered, *initial], [value.type for value in values], attrs, region_count=1)
        clone_region_into(body, op.region, {})
        return list(op.results)

    def reduce_scatter(self, value: Value, axes: Axes, dim: int, kind: ReductionKind) -> Value:
        """Combine the values of a group and scatter a dimension; an empty dimension gets no collective."""
        shape = list(value.type.shape or ())
        if shape[dim] == 0:
            return value
        shape[dim] //= axes_size(axes, self.mesh)
        attrs = {"scatter_dimension": self.builder.number(dim), **self._grouped(axes)}
        type = self.builder.like(shape, value.type)
        op = self.builder.op("reduce_scatter", [value], [type], attrs, region_count=1)
        self._fill(op.region, value, kind)
        return op.result

    def all_to_all(self, value: Value, axes: Axes, split: int, concat: int) -> Value:
        """Exchange parts in a group: dimension `split` is split, and `concat` is concatenated."""
        size = axes_size(axes, self.mesh)
        shape = list(value.type.shape or ())
        shape[split] //= size
        shape[concat] *= size
        number = self.builder.number
        attrs = {
            "split_dimension": number(split),
            "concat_dimension": number(concat),
            "split_count": number(size),
            _GROUPS: self.groups(axes),
            **self._channel_of_partitions(),
        }
        return self._make("all_to_all", value, shape, attrs)

    def collective_permute(self, value: Value, targets: Sequence[int]) -> Value:
        """Send the value of every device to another one."""
        pairs = self.local.attrs.device_rows(list(enumerate(targets)))
        attrs = {"source_target_pairs": pairs, **self._channel_of_partitions()}
        return self._make("collective_permute", value, value.type.shape or (), attrs)

    def _make(self, name: str, value: Value, shape: Sequence[int], attrs: dict[str, Any]) -> Value:
        return self.builder.value(name, [value], self.builder.like(shape, value.type), **attrs)

    def _grouped(self, axes: Axes) -> dict[str, Any]:
        return {
            _GROUPS: self.groups(axes),
            CHANNEL: self.local.channels.next(),
            "use_global_device_ids": self.local.attrs.parse("unit"),
        }

    def _name(self, made: Op | None, index: int) -> None:
        """Give a collective that completes a result of an op a location that names the op."""
        if made is not None and self.of is not None and made.name.startswith("stablehlo.all_"):
            need = Need.of_result(reduction_word(self.of, index), self.of.name, index, len(self.of.results))
            made.location = place_for(self.builder.location, need)

    def _channel_of_partitions(self) -> dict[str, Any]:
        """The channel of a collective; none if devices are replicas."""
        return {} if self.local.options.use_replicas else {CHANNEL: self.local.channels.next()}

    def _fill(self, region: Region, value: Value, combine: Combine) -> None:
        if isinstance(combine, Region):
            clone_region_into(combine, region, {})
            return
        builder = self.builder
        name = COMBINERS[combine] if isinstance(combine, ReductionKind) else combine
        scalar = builder.like((), value.type)
        builder.body(region.op, [scalar, scalar], lambda inner, args: [inner.combine(name, *args)])


def _axes_text(axes: Axes, mesh: MeshRef) -> str:
    listed = ", ".join(map(_axis_text, axes))
    return f"#stablehlo.replica_group_mesh_axes<mesh = {_mesh_text(mesh)}, axes = [{listed}]>"


def _axis_text(axis: AxisRef) -> str:
    part = "" if axis.size is None else f", sub_axis_info = ({axis.pre_size}){axis.size}"
    return f"#stablehlo.axis_ref<name = {quote(axis.name)}{part}>"


def _mesh_text(mesh: MeshRef) -> str:
    return format_symbol(mesh) if isinstance(mesh, str) else stablehlo_mesh_text(mesh)
