"""`PartitionSpec` as in JAX, extended by all that a sharding can say: priorities, open dimensions, sub-axes.

Source: docs/semantics/representation.md#shardings
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_checks import as_axes
from pyshardy.core.given import as_rank, as_tuple
from pyshardy.core.intern import Interned
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError, NotationError, ShardyError

OPEN: Final = "?"
"""Marks a dimension to which propagation may append axes; stands alone or behind axes."""
_SUB_AXIS = re.compile(r"(.+):\((\d{1,30})\)(\d{1,30})")
_PRIORITY = re.compile(r"(.*)@(\d{1,30})")


class PartitionSpec(Interned):
    """How the dimensions of one tensor are split, on a mesh given elsewhere.

    Args:
        entries: Per dimension None, an axis, several axes major to minor, or `UNCONSTRAINED`, which may also stand
            behind axes. An axis is a name, a sub-axis like "model:(1)2", or an `AxisRef`. Missing entries at the
            end are None.
        priorities: Per dimension None or a priority, at least 0; lower priorities propagate earlier.
        replicated: Axes along which the tensor must stay replicated.
        unreduced: Axes along which devices hold partial sums.

    Raises:
        InvalidShardingError: An axis used twice, a priority on a dimension without axes that is not open.

    >>> PartitionSpec(None, "x", ("y", "z"), priorities=(None, 0, 1)).sharding("mesh", 4)
    TensorSharding(<@mesh, [{}, {"x"}p0, {"y", "z"}p1, {}]>)
    >>> PartitionSpec("model:(1)2", PartitionSpec.UNCONSTRAINED)
    PartitionSpec('model:(1)2', '?')
    """

    __slots__ = ("dims", "replicated", "unreduced")

    UNCONSTRAINED: Final = OPEN

    dims: tuple[DimSharding, ...]
    replicated: Axes
    unreduced: Axes

    def __new__(  # noqa: D102 (the class docstring says it)
        cls,
        *entries: Any,
        priorities: Sequence[int | None] | None = None,
        replicated: Iterable[AxisRef | str] = (),
        unreduced: Iterable[AxisRef | str] = (),
    ) -> PartitionSpec:
        doing = "making a PartitionSpec"
        given = () if priorities is None else as_tuple(priorities, doing, "a list of priorities, one per entry")
        if len(given) > len(entries):
            needed = f"at most {len(entries)}, one per entry"
            raise InvalidShardingError(doing, got=f"{len(given)} priorities", needed=needed)
        dims = tuple(_dim(entry, priority) for entry, priority in zip_longest(entries, given))
        return cls._make((dims, tuple(map(_axis, as_list(replicated))), tuple(map(_axis, as_list(unreduced)))))

    @classmethod
    def _canonical(cls, dims: tuple[DimSharding, ...], replicated: Axes, unreduced: Axes) -> tuple[Any, Axes, Axes]:
        TensorSharding("mesh", dims, replicated, unreduced)
        return dims, replicated, unreduced

    @classmethod
    def of(cls, sharding: TensorSharding) -> PartitionSpec:
        """The spec of a sharding; it keeps everything but the mesh.

        Raises:
            InvalidShardingError: Partial values that are not sums, or no sharding.

        >>> PartitionSpec.of(TensorSharding("mesh", [DimSharding(["x"], is_open=True, priority=2)]))
        PartitionSpec(('x', '?'), priorities=(2,))
        """
        sharding = TensorSharding.of(sharding)
        if sharding.unreduced and sharding.reduction is not ReductionKind.SUM:
            got = f"axes that are unreduced by {sharding.reduction.value}"
            raise InvalidShardingError(f"making a PartitionSpec of {sharding}", got=got, needed="partial sums")
        return cls._make((sharding.dims, sharding.replicated, sharding.unreduced))

    def sharding(self, mesh: str | Mesh, rank: int) -> TensorSharding:
        """The sharding of a tensor.

        Args:
            mesh: Name of the mesh, or the mesh itself.
            rank: Number of dimensions.

        Raises:
            InvalidShardingError: More entries than dimensions.
        """
        rank = as_rank(rank, "sharding a tensor")
        if len(self.dims) > rank:
            doing = f"sharding a tensor of {rank} dimensions by {self}"
            raise InvalidShardingError(doing, got=f"{len(self.dims)} entries", needed=f"at most {rank}")
        dims = self.dims + (DimSharding(),) * (rank - len(self.dims))
        return TensorSharding(mesh, dims, self.replicated, self.unreduced)

    @property
    def entries(self) -> tuple[Any, ...]:
        """The entries as given, one per dimension."""
        return tuple(_entry(dim) for dim in self.dims)

    def __repr__(self) -> str:
        parts = [repr(entry) for entry in self.entries]
        priorities = tuple(dim.priority for dim in self.dims)
        while priorities and priorities[-1] is None:
            priorities = priorities[:-1]
        if priorities:
            parts.append(f"priorities={priorities}")
        for name in ("replicated", "unreduced"):
            axes = getattr(self, name)
            if axes:
                parts.append(f"{name}={tuple(map(axis_text, axes))}")
        return f"PartitionSpec({', '.join(parts)})"


def axis_text(axis: AxisRef) -> str:
    """An axis as specs write it.

    >>> axis_text(AxisRef("model", 1, 2))
    'model:(1)2'
    """
    return axis.name if axis.size is None else f"{axis.name}:({axis.pre_size}){axis.size}"


def as_list(axes: Any) -> list[Any]:
    """One or several axes as a list."""
    if isinstance(axes, (str, AxisRef)):
        return [axes]
    return [*as_tuple(axes, "listing axes", "a list of axes, by name or as AxisRef")]


def parse_spec(text: str) -> PartitionSpec:
    """A spec as written on a command line: entries separated by commas, several axes joined by `+`, `@` and a priority.

    Raises:
        NotationError: The text is not a spec.
        InvalidShardingError: Its parts contradict each other.

    >>> parse_spec("None,model")
    PartitionSpec(None, 'model')
    >>> parse_spec("data+model:(1)2@1,?")
    PartitionSpec(('data', 'model:(1)2'), '?', priorities=(1,))
    """
    entries: list[Any] = []
    priorities: list[int | None] = []
    for part in text.split(",") if text.strip() else []:
        found = _PRIORITY.fullmatch(part.strip())
        body, priority = (found[1], int(found[2])) if found else (part.strip(), None)
        axes = [axis.strip() for axis in body.split("+")]
        if not all(axes):
            needed = "None, ?, an axis, or axes joined by +, for every dimension"
            raise NotationError("reading a PartitionSpec", text=text, position=0, got=repr(part), needed=needed)
        entries.append(None if axes == ["None"] else tuple(axes))
        priorities.append(priority)
    return PartitionSpec(*entries, priorities=priorities)


def write_spec(sharding: TensorSharding) -> str | None:
    """The dimensions of a sharding as a command line has them; `parse_spec` is the inverse.

    None if there is no such text: it has no place for replicated and unreduced axes, and for some names of axes.

    >>> write_spec(TensorSharding("mesh", ["x", DimSharding(is_open=True), ["y", "z"], None]))
    'x,?,y+z,None'
    """
    if sharding.replicated or sharding.unreduced:
        return None
    text = ",".join(map(_dim_text, sharding.dims))
    try:
        return text if text[:1] not in ("<", "#", "[") and parse_spec(text).dims == sharding.dims else None
    except ShardyError:
        return None


def _dim_text(dim: DimSharding) -> str:
    axes = "+".join([*map(axis_text, dim.axes), *([OPEN] if dim.is_open else [])])
    return (axes or "None") + ("" if dim.priority is None else f"@{dim.priority}")


def format_spec(entries: Iterable[Sequence[str]], name: str = "P") -> str:
    """A spec as Python with JAX writes it, without empty entries at the end.

    Args:
        entries: Per dimension the names of its axes, or `[PartitionSpec.UNCONSTRAINED]`.
        name: What `PartitionSpec` is called.

    >>> format_spec([("data", "model"), (), ["x"], ()]), format_spec([(), "?"])
    ("P(('data', 'model'), None, 'x')", 'P(None, P.UNCONSTRAINED)')
    """
    texts = []
    for entry in map(tuple, entries):
        if entry == (OPEN,):
            texts.append(f"{name}.UNCONSTRAINED")
        else:
            texts.append(repr(entry[0]) if len(entry) == 1 else repr(entry or None))
    while texts and texts[-1] == "None":
        texts.pop()
    return f"{name}({', '.join(texts)})"


def _axis(axis: Any) -> AxisRef:
    found = _SUB_AXIS.fullmatch(axis) if isinstance(axis, str) else None
    if found is not None:
        return AxisRef(found[1], int(found[2]), int(found[3]))
    if not isinstance(axis, (str, AxisRef)) or axis == OPEN:
        needed = "None, an axis, several axes, or PartitionSpec.UNCONSTRAINED"
        raise InvalidShardingError("making a PartitionSpec", got=f"the entry {axis!r}", needed=needed)
    return as_axes([axis])[0]


def _dim(entry: Any, priority: int | None) -> DimSharding:
    parts = [] if entry is None else list(entry) if isinstance(entry, (tuple, list)) else [entry]
    is_open = bool(parts) and isinstance(parts[-1], str) and parts[-1] == OPEN
    return DimSharding(tuple(map(_axis, parts[:-1] if is_open else parts)), is_open, priority)


def _entry(dim: DimSharding) -> Any:
    axes = [*map(axis_text, dim.axes), *([OPEN] if dim.is_open else [])]
    return None if not axes else axes[0] if len(axes) == 1 else tuple(axes)
