"""Dimension and tensor shardings.

Source: docs/semantics/representation.md#shardings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_checks import as_axes, check_axes_in_mesh, check_axis_types, check_disjoint, check_merged
from pyshardy.core.given import as_rank, as_tuple
from pyshardy.core.intern import Interned, as_integer
from pyshardy.core.jax_values import is_named_sharding, parsed_spec, spec_partitions, spec_unreduced
from pyshardy.core.mesh import Mesh, as_mesh
from pyshardy.core.options import enum_value
from pyshardy.core.text import format_symbol, named_type
from pyshardy.errors import InvalidShardingError, UsageError


class ReductionKind(Enum):
    """How partial values on unreduced axes combine into the tensor."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"

    __hash__ = object.__hash__  # lookups hash it, and the hash of `Enum` is a slow Python function


class DimSharding(Interned):
    """The axes that split one dimension, major to minor, and whether propagation may add more.

    Args:
        axes: The axes, or their names, major to minor.
        is_open: Whether propagation may append axes.
        priority: User priority, at least 0, lower first; None if the user gave none, which counts as 0.

    Raises:
        InvalidShardingError: A negative priority, a priority on an empty closed dimension, an axis used twice,
            or neighbours that should be written as one reference.

    >>> DimSharding(["data"], is_open=True)
    DimSharding({"data", ?})
    """

    __slots__ = ("axes", "is_open", "priority")

    axes: Axes
    is_open: bool
    priority: int | None

    def __new__(  # noqa: D102 (the class docstring says it)
        cls, axes: Iterable[AxisRef | str] = (), is_open: bool = False, priority: int | None = None
    ) -> DimSharding:
        return cls._make((as_axes(axes), bool(is_open), priority))

    @classmethod
    def _canonical(cls, axes: Axes, is_open: bool, priority: int | None) -> tuple[Axes, bool, int | None]:
        doing = "sharding a dimension"
        priority = None if priority is None else as_integer(priority, doing)
        if priority is not None and priority < 0:
            raise InvalidShardingError(doing, got=f"priority {priority}", needed="a priority of at least 0")
        if priority is not None and not axes and not is_open:
            raise InvalidShardingError(
                doing,
                got=f"priority {priority} on an empty closed dimension",
                needed="an axis, an open dimension, or no priority",
            )
        check_axis_types(axes, doing)
        check_disjoint(axes, doing)
        check_merged(axes, doing)
        return axes, is_open, priority

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes] + (["?"] if self.is_open else [])
        return "{" + ", ".join(parts) + "}" + (f"p{self.priority}" if self.priority is not None else "")

    def __repr__(self) -> str:
        return f"DimSharding({self})"

    def closed(self) -> DimSharding:
        """The same axes and priority, closed."""
        return DimSharding._make((self.axes, False, self.priority))

    def opened(self) -> DimSharding:
        """The same axes and priority, open."""
        return DimSharding._make((self.axes, True, self.priority))

    def without_priority(self) -> DimSharding:
        """The same axes and openness, no priority."""
        return self if self.priority is None else DimSharding._make((self.axes, self.is_open, None))


class TensorSharding(Interned):
    """How one tensor is laid out over one mesh.

    Args:
        mesh: Name of the mesh in its module, or the mesh itself ("inlined"), ours or JAX's.
        dims: One sharding per dimension of the tensor: a `DimSharding`, the name of an axis, a list of names, or None;
            or a `PartitionSpec` of JAX.
        replicated: Axes along which the tensor must stay replicated; in mesh order.
        unreduced: Axes along which devices hold partial values; in mesh order.
        reduction: How the partial values combine, also by name: "max".

    `check_sharding` checks what depends on the mesh: known axes, sizes, order.

    Raises:
        InvalidShardingError: A mesh, dimension or axis of a wrong type, an axis that appears twice or that an inlined
            mesh does not have, or two overlapping parts of one axis.

    >>> TensorSharding("mesh", ["data", None])
    TensorSharding(<@mesh, [{"data"}, {}]>)
    >>> TensorSharding("mesh", [DimSharding(["data"]), DimSharding(is_open=True)])
    TensorSharding(<@mesh, [{"data"}, {?}]>)
    """

    __slots__ = ("mesh", "dims", "replicated", "unreduced", "reduction", "_is_fully_replicated")

    mesh: str | Mesh
    dims: tuple[DimSharding, ...]
    replicated: Axes
    unreduced: Axes
    reduction: ReductionKind
    _is_fully_replicated: bool

    def __new__(  # noqa: D102 (the class docstring says it)
        cls,
        mesh: str | Mesh | Any,
        dims: Iterable[DimSharding | str | Sequence[str] | None] | Any = (),
        replicated: Iterable[AxisRef | str] = (),
        unreduced: Iterable[AxisRef | str] = (),
        reduction: ReductionKind | str = ReductionKind.SUM,
    ) -> TensorSharding:
        if type(mesh) is not str and type(mesh) is not Mesh:
            mesh = _mesh_of_user(mesh)
        partial = as_axes(unreduced)
        if hasattr(dims, "unreduced"):
            names, kind = spec_unreduced(dims)
            partial, reduction = (partial, reduction) if partial or not names else (as_axes(names), kind)
        if type(reduction) is not ReductionKind:
            reduction = _reduction_of_user(reduction)
        return cls._make((mesh, as_dims(dims), as_axes(replicated), partial, reduction))

    @classmethod
    def of(cls, sharding: TensorSharding | Any) -> TensorSharding:
        """The sharding itself, or a `jax.sharding.NamedSharding` as a sharding on its mesh.

        Raises:
            InvalidShardingError: It is neither.
        """
        if isinstance(sharding, TensorSharding):
            return sharding
        if is_named_sharding(sharding):
            return cls(sharding.mesh, sharding.spec)
        needed = "a TensorSharding or a NamedSharding of JAX"
        raise InvalidShardingError("reading a sharding", got=named_type(sharding), needed=needed)

    @classmethod
    def _canonical(
        cls, mesh: str | Mesh, dims: tuple[DimSharding, ...], replicated: Axes, unreduced: Axes, kind: ReductionKind
    ) -> tuple[str | Mesh, tuple[DimSharding, ...], Axes, Axes, ReductionKind]:
        axes = [axis for dim in dims for axis in dim.axes]
        axes += replicated
        axes += unreduced
        check_axis_types(axes, "sharding a tensor")
        check_disjoint(axes, "sharding a tensor")
        if isinstance(mesh, Mesh) and axes:
            check_axes_in_mesh(axes, mesh, "sharding a tensor")
        return mesh, dims, replicated, unreduced, kind

    def __str__(self) -> str:
        mesh = f"mesh{self.mesh}" if isinstance(self.mesh, Mesh) else format_symbol(self.mesh)
        parts = [mesh, "[" + ", ".join(map(str, self.dims)) + "]"]
        if self.replicated:
            parts.append("replicated={" + ", ".join(map(str, self.replicated)) + "}")
        if self.unreduced:
            kind = "" if self.reduction is ReductionKind.SUM else self.reduction.value
            parts.append(f"unreduced={kind}{{" + ", ".join(map(str, self.unreduced)) + "}")
        return "<" + ", ".join(parts) + ">"

    def __repr__(self) -> str:
        return f"TensorSharding({self})"

    @classmethod
    def fully_replicated(cls, mesh: str | Mesh, rank: int, is_open: bool = False) -> TensorSharding:
        """A sharding of `rank` empty dimensions: fully closed, or fully open."""
        return cls(mesh, (DimSharding(is_open=is_open),) * as_rank(rank, "sharding a tensor"))

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def dim_axes(self) -> tuple[Axes, ...]:
        """The axes of every dimension, without openness and priorities."""
        return tuple(dim.axes for dim in self.dims)

    @property
    def is_fully_closed(self) -> bool:
        """Whether no dimension is open."""
        return not any(dim.is_open for dim in self.dims)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no dimension has an axis; explicit replicated and unreduced axes do not count."""
        try:
            return self._is_fully_replicated
        except AttributeError:
            found = not any(dim.axes for dim in self.dims)
            object.__setattr__(self, "_is_fully_replicated", found)
            return found

    def all_axes(self) -> list[AxisRef]:
        """Every reference, in dimensions first, then replicated, then unreduced."""
        return [axis for dim in self.dims for axis in dim.axes] + list(self.replicated) + list(self.unreduced)

    def with_mesh(self, mesh: str | Mesh | Any) -> TensorSharding:
        """The same sharding on another mesh: its name, or the mesh itself, ours or JAX's."""
        if type(mesh) is not str and type(mesh) is not Mesh:
            mesh = _mesh_of_user(mesh)
        return TensorSharding._make((mesh, self.dims, self.replicated, self.unreduced, self.reduction))

    def with_dims(self, dims: Iterable[DimSharding | str | Sequence[str] | None]) -> TensorSharding:
        """The same sharding with other dimensions, given as for `TensorSharding`."""
        given = as_dims(dims)
        if given == self.dims:
            return self
        return TensorSharding._make((self.mesh, given, self.replicated, self.unreduced, self.reduction))

    def with_replicated(self, axes: Iterable[AxisRef]) -> TensorSharding:
        """The same sharding with other replicated axes."""
        return TensorSharding(self.mesh, self.dims, axes, self.unreduced, self.reduction)

    def with_unreduced(self, axes: Iterable[AxisRef], reduction: ReductionKind | None = None) -> TensorSharding:
        """The same sharding with other unreduced axes, and another reduction kind if one is given."""
        return TensorSharding(self.mesh, self.dims, self.replicated, axes, reduction or self.reduction)

    def map_dims(self, change: Callable[[DimSharding], DimSharding]) -> TensorSharding:
        """The same sharding with `change` applied to every dimension."""
        return self.with_dims([change(dim) for dim in self.dims])

    def without_priorities(self) -> TensorSharding:
        """The same sharding without user priorities."""
        return self.with_dims([dim.without_priority() for dim in self.dims])

    def closed(self) -> TensorSharding:
        """All dimensions closed, priorities kept, replicated axes dropped, unreduced axes kept."""
        dims = tuple([dim.closed() for dim in self.dims])
        return TensorSharding._make((self.mesh, dims, (), self.unreduced, self.reduction))

    def opened(self) -> TensorSharding:
        """All dimensions open, everything else kept."""
        return self.map_dims(DimSharding.opened)


def as_dims(dims: Any) -> tuple[DimSharding, ...]:
    """The dimension shardings from a `PartitionSpec`, or from `DimSharding`s, axis names, lists of names and None."""
    if type(dims) is tuple or type(dims) is list:
        for dim in dims:
            if type(dim) is not DimSharding:
                break
        else:
            return tuple(dims)
    elif isinstance(dims, Iterable) and not isinstance(dims, str):
        dims = [*as_tuple(spec_partitions(dims), "sharding a tensor", "a list of shardings of dimensions")]
    if not isinstance(dims, (list, tuple)):
        parsed_spec(dims, "sharding a tensor")  # raises the error
    return tuple(
        dim
        if type(dim) is DimSharding
        else DimSharding([dim])
        if type(dim) is AxisRef
        else DimSharding(*parsed_spec([dim], "sharding a tensor")[0])
        for dim in dims
    )


def _mesh_of_user(mesh: Any) -> str | Mesh:
    if isinstance(mesh, str):
        return str(mesh)
    try:
        return as_mesh(mesh)
    except InvalidShardingError as error:
        needed = "the name of a mesh, a Mesh, or a mesh of JAX"
        raise InvalidShardingError("sharding a tensor", got=f"{mesh!r} as the mesh", needed=needed) from error


def _reduction_of_user(reduction: Any) -> ReductionKind:
    try:
        return enum_value(ReductionKind, reduction, "sharding a tensor", "the reduction ")
    except UsageError as error:
        raise InvalidShardingError(error.doing, got=error.got, needed=error.needed, hint=error.hint) from error


def is_unsharded(sharding: TensorSharding | None, ignore_unreduced: bool = False) -> bool:
    """Whether a sharding is absent, or has no axes in dimensions and no unreduced axes."""
    return sharding is None or (sharding.is_fully_replicated and (ignore_unreduced or not sharding.unreduced))


def is_equivalent(first: TensorSharding, second: TensorSharding | None, ignore_unreduced: bool = False) -> bool:
    """Whether both lay a tensor out alike; openness, priorities and replicated axes do not matter.

    >>> open_x = TensorSharding("m", [DimSharding(["x"], is_open=True)])
    >>> is_equivalent(open_x, open_x.closed())
    True
    """
    if is_unsharded(first, ignore_unreduced):
        return is_unsharded(second, ignore_unreduced)
    return (
        second is not None
        and first.mesh == second.mesh
        and (ignore_unreduced or first.unreduced == second.unreduced)
        and first.dim_axes == second.dim_axes
    )
