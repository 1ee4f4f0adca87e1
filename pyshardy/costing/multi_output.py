"""Merges kernels that run over the same elements into kernels with several results, as compilers for GPUs do.

Two kernels can be one if both run over arrays of one shape, and the second reads what the first wrote, or both read the
same array. A kernel that reduces the last dimensions can also hold the readers of its result, as XLA keeps whole rows
on one multiprocessor. So a softmax or a normalization reads and writes memory once. The last dimensions are those in
memory, where `orders` knows them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pyshardy.costing.flat import BITCAST
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.orders import DimOrder, in_memory, is_last
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.costing.work import TRANSCENDENTAL
from pyshardy.rules.properties import ELEMENTWISE

_LONGEST_ROW = 16_384
"""Longer rows are not kept on a multiprocessor: XLA for H100 makes one kernel of a softmax up to this length."""
_MOST_OPS, _MOST_VALUES = 400, 64
"""A kernel has no more ops, and no more values that it reads and writes."""
_SAME_ELEMENT = ELEMENTWISE | TRANSCENDENTAL | {BITCAST, "stablehlo.copy", "stablehlo.reduce_precision"}
_BROADCAST, _REDUCE = "stablehlo.broadcast_in_dim", "stablehlo.reduce"
_TRANSPOSE = "stablehlo.transpose"

_Shape = tuple[int, ...]


def merged(block: Kernels, tensors: Sequence[CostTensor], orders: Mapping[int, DimOrder]) -> Kernels:
    """A block with kernels merged, and the blocks inside too.

    Args:
        block: The kernels.
        tensors: The type of every value.
        orders: The order of dimensions in memory of the values for which it is known.
    """
    return _merged(block, [in_memory(tensor, orders.get(value)) for value, tensor in enumerate(tensors)], orders)


def _merged(block: Kernels, shapes: Sequence[_Shape], orders: Mapping[int, DimOrder]) -> Kernels:
    """The same, with the shape of every value in memory."""
    kernels = [
        kernel._replace(inner=tuple([_merged(one, shapes, orders) for one in kernel.inner])) if kernel.inner else kernel
        for kernel in block.kernels
    ]
    return block._replace(kernels=tuple(_Merger(kernels, block.results, shapes, orders).run()))


@dataclass(slots=True)
class _Space:
    """The elements that a kernel runs over.

    Attributes:
        shape: The shape, without dimensions of one element.
        rows: The leading part of the shape that reductions keep; None if nothing is reduced along the last dimensions.
        columns: The dimensions that other reductions reduce.
        aligned: The values that it reads at the element that it computes.
        by_row: The values that it reads one element of for a whole row.
    """

    shape: _Shape
    rows: _Shape | None
    columns: tuple[int, ...] | None
    aligned: frozenset[int]
    by_row: frozenset[int]


class _Group:
    """Kernels that are merged so far.

    Attributes:
        members: The kernels.
        spaces: What each of them runs over.
        at: The position of the merged kernel.
    """

    __slots__ = ("members", "spaces", "at")

    def __init__(self, kernel: Kernel, space: _Space | None, at: int) -> None:
        self.members, self.spaces, self.at = [kernel], [] if space is None else [space], at

    @property
    def shape(self) -> _Shape:
        return max((one.shape for one in self.spaces), key=prod)

    @property
    def rows(self) -> _Shape | None:
        return next((one.rows for one in self.spaces if one.rows is not None), None)

    @property
    def columns(self) -> tuple[int, ...] | None:
        return next((one.columns for one in self.spaces if one.columns is not None), None)


class _Merger:
    def __init__(
        self,
        kernels: Sequence[Kernel],
        results: Iterable[int],
        shapes: Sequence[_Shape],
        orders: Mapping[int, DimOrder],
    ) -> None:
        self.results, self.shapes = frozenset(results), shapes
        self.groups = [_Group(kernel, _space(kernel, self.shapes, orders), at) for at, kernel in enumerate(kernels)]
        self.makers = {value: group for group in self.groups for value in group.members[0].writes}
        self.readers: dict[int, list[_Group]] = {}
        for group in self.groups:
            for value in group.members[0].needs:
                self.readers.setdefault(value, []).append(group)

    def run(self) -> list[Kernel]:
        """The merged kernels, in an order in which they may run."""
        for group in [*self.groups]:
            if group.spaces:
                self._merge(group)
        kept = sorted((group for group in self.groups if group.members), key=lambda group: group.at)
        return [self._kernel(group) for group in kept]

    def _merge(self, group: _Group) -> None:
        """Merge a kernel into the first of those before it that takes it."""
        for other in self._others(group):
            at = self._position(other, group) if self._fits(other, group) else None
            if at is not None:
                if at == group.at:
                    self._delay(other, group)
                    at = group.at
                for kernel in group.members:
                    self.makers.update((value, other) for value in kernel.writes)
                    for value in kernel.needs:
                        self.readers[value] = [other if one is group else one for one in self.readers[value]]
                other.members += group.members
                other.spaces += group.spaces
                other.at, group.members = at, []
                return

    def _others(self, group: _Group) -> Iterable[_Group]:
        """The kernels whose results a kernel reads, the latest first, and then those that read the same arrays."""
        (kernel,) = group.members
        makers = [self.makers[value] for value in kernel.reads if value in self.makers]
        siblings = [
            one for value in group.spaces[0].aligned for one in self.readers.get(value, ()) if one.at < group.at
        ]
        for found in (makers, siblings):
            yield from sorted({id(one): one for one in found if one.spaces}.values(), key=lambda one: -one.at)

    def _position(self, first: _Group, second: _Group) -> int | None:
        """Where the merged kernel can run: where the second is or where the first is; None if neither."""
        inside = {value for kernel in first.members for value in kernel.writes}
        users = {one.at for value in inside for one in self.readers.get(value, ())} - {second.at, first.at}
        if all(at > second.at for at in users):
            return second.at
        made = (self.makers[value] for kernel in second.members for value in kernel.needs if value in self.makers)
        if all(one is first or one.at < first.at for one in made):
            return first.at
        return second.at if second not in self._after(first, second.at) else None

    def _after(self, group: _Group, last: int) -> set[_Group]:
        """The kernels up to a position that run after another one, as they need what it writes."""
        found: set[_Group] = set()
        pending = [group]
        while pending:
            inside = (value for kernel in pending.pop().members for value in kernel.writes)
            new = {one for value in inside for one in self.readers.get(value, ()) if one.at <= last} - found - {group}
            found |= new
            pending += new
        return found

    def _delay(self, first: _Group, second: _Group) -> None:
        """Move the kernels that need the results of one kernel behind another kernel, in whose place it will run."""
        later = self._after(first, second.at) - {second}
        if later:
            self.groups.sort(key=lambda one: one.at)
            order = sorted(
                (one for one in self.groups if one.members), key=lambda one: (one.at > second.at, one in later)
            )
            for at, one in enumerate(order):
                one.at = at

    def _fits(self, first: _Group, second: _Group) -> bool:
        """Whether one kernel can do the work of two."""
        (space,) = second.spaces
        shape, rows = first.shape, first.rows
        if prod(space.shape) > prod(shape):
            shape, rows = space.shape, rows if rows is not None else space.rows
        elif rows is None:
            rows = space.rows
        is_row = rows is not None and space.shape == rows
        if (space.shape != shape and not is_row) or any(one.shape not in (shape, rows) for one in first.spaces):
            return False
        is_long = rows is not None and (shape[: len(rows)] != rows or prod(shape) > _LONGEST_ROW * prod(rows))
        if is_long and self._reads_rows(first, second):
            return False
        if space.rows is not None and first.rows not in (None, space.rows):
            return False
        both = {one for one in (first.columns, space.columns) if one is not None}
        if len(both) > 1 or (both and rows is not None):
            return False
        if sum(len(kernel.ops) for one in (first, second) for kernel in one.members) > _MOST_OPS:
            return False
        reads, writes = self._interface((*first.members, *second.members))
        if len(reads) + len(writes) > _MOST_VALUES:
            return False
        (kernel,) = second.members
        if any(_is_copy(kernel, one) for one in first.members):
            return False
        inside = {value for one in first.members for value in one.writes}
        at_rows = rows is not None and shape[: len(rows)] == rows
        return all(
            value in space.aligned or (at_rows and value in space.by_row and self.shapes[value] == rows)
            for value in inside.intersection(kernel.reads)
        ) and not self._crosses(first, inside, kernel)

    def _crosses(self, first: _Group, inside: Collection[int], kernel: Kernel) -> bool:
        """Whether a kernel reads sums along columns, which are complete only after all rows."""
        return first.columns is not None and any(
            value in inside and self.makers[value] is first and self.shapes[value] != first.shape
            for value in kernel.reads
        )

    def _reads_rows(self, first: _Group, second: _Group) -> bool:
        """Whether the second kernel reads anything that the first computes of whole rows."""
        shape = first.shape
        small = {
            value for one in first.members for value in one.writes if self.shapes[value] != shape
        }  # fmt: skip
        return any(value in small for kernel in second.members for value in kernel.reads)

    def _interface(self, members: Sequence[Kernel]) -> tuple[list[int], list[int]]:
        """What a merged kernel reads and writes."""
        made = {value for kernel in members for value in kernel.writes}
        reads = dict.fromkeys(value for kernel in members for value in kernel.reads if value not in made)
        inside = {id(self.makers[value]) for value in made}
        writes = [
            value
            for kernel in members
            for value in kernel.writes
            if value in self.results or any(id(one) not in inside for one in self.readers.get(value, ()))
        ]
        return list(reads), writes

    def _kernel(self, group: _Group) -> Kernel:
        if len(group.members) == 1:
            return group.members[0]
        members = group.members
        reads, writes = self._interface(members)
        in_place = frozenset(
            value for value in reads if all(value in kernel.in_place for kernel in members if value in kernel.reads)
        )
        waits = tuple(dict.fromkeys(value for kernel in members for value in kernel.waits))
        root = next((kernel for kernel in reversed(members) if set(kernel.writes) & set(writes)), members[-1])
        ops = dict.fromkeys(op for kernel in members if kernel is not root for op in kernel.ops)
        own = tuple(op for op in ops if op not in root.ops) + root.ops
        return Kernel(own, tuple(reads), tuple(writes), in_place, (), waits)


def _space(kernel: Kernel, shapes: Sequence[_Shape], orders: Mapping[int, DimOrder]) -> _Space | None:
    """The elements that a kernel runs over; None if it cannot be merged."""
    root = kernel.root
    if kernel.inner or len(root.results) != 1 or root.traffic is not None:
        return None
    if root.kind.name not in (*_SAME_ELEMENT, _REDUCE, _BROADCAST) and not _renames(root, orders):
        return None
    shape, rows, columns = shapes[root.results[0]], None, None
    sums = {(op.kind.operands[0], _reduced(op.kind), orders.get(op.operands[0])) for op in kernel.ops if _sums(op)}
    if len(sums) > 1:
        return None
    for before, reduced, order in sums:
        whole = in_memory(before, order)
        kept = tuple([size for dim, size in enumerate(before.shape or ()) if size != 1 and dim not in reduced])
        if shape not in (whole, kept):
            return None
        if is_last(reduced, before, order):
            rows = kept
        elif shape == kept:
            columns = reduced
        else:
            return None
        is_whole, shape = shape == whole, whole
        if not shape:
            return None
        return _Space(shape, rows, columns, *_accesses(kernel, shapes, orders, shape, "same" if is_whole else "row"))
    return _Space(shape, rows, columns, *_accesses(kernel, shapes, orders, shape, "same")) if shape else None


def _renames(op: CostOp, orders: Mapping[int, DimOrder]) -> bool:
    """Whether an op is a transpose that leaves an array as it is in memory."""
    return op.kind.name == _TRANSPOSE and op.operands[0] in orders and op.results[0] in orders


def _is_copy(one: Kernel, other: Kernel) -> bool:
    """Whether two kernels compute the same: they write it in two orders."""
    return one.root.kind == other.root.kind and one.root.operands == other.root.operands


def _sums(op: CostOp) -> bool:
    """Whether an op reduces more than dimensions of one element."""
    before = op.kind.operands[0].shape if op.kind.name == _REDUCE else None
    return before is not None and any(before[dim] != 1 for dim in _reduced(op.kind))


def _reduced(kind: CostKind) -> tuple[int, ...]:
    dims = kind.fact("dimensions")
    return tuple(sorted(dims)) if isinstance(dims, tuple) else ()


def _accesses(
    kernel: Kernel, shapes: Sequence[_Shape], orders: Mapping[int, DimOrder], shape: _Shape, start: str
) -> tuple[frozenset[int], frozenset[int]]:
    """The values that a kernel reads at the element that it computes, and those that it reads once for a row.

    Args:
        kernel: The kernel.
        shapes: The shape of every value in memory.
        orders: The order of dimensions in memory of the values for which it is known.
        shape: The shape that it runs over.
        start: Whether its result has an element for each of these ("same"), or for each row ("row").
    """
    makers = {value: op for op in kernel.ops for value in op.results}
    ways: dict[int, set[str]] = {}
    pending: list[tuple[CostOp, str]] = [(kernel.root, start)]
    seen: set[tuple[int, str]] = set()
    while pending:
        op, way = pending.pop()
        if (op.results[0], way) in seen:
            continue
        seen.add((op.results[0], way))
        inner = way if _renames(op, orders) else _step(op, way)
        for value in op.operands:
            if value in makers:
                pending.append((makers[value], inner))
            else:
                ways.setdefault(value, set()).add(inner)
    aligned = frozenset([
        value for value, found in ways.items() if found == {"same"} and shapes[value] == shape
    ])  # fmt: skip
    return aligned, frozenset([value for value, found in ways.items() if found == {"row"}])


def _step(op: CostOp, way: str) -> str:
    """How a kernel reads the operands of an op, given how it reads the result."""
    name = op.kind.name
    if name == _REDUCE:
        return way if not _sums(op) else "same" if way == "row" else "other"
    if name in _SAME_ELEMENT:
        return way
    if name == _BROADCAST:
        dims, before, after = op.kind.fact("broadcast_dimensions"), op.kind.operands[0].shape, op.kind.results[0].shape
        if isinstance(dims, tuple) and before is not None and after is not None:
            kept = [dim for size, dim in zip(before, dims) if size != 1]
            whole = [dim for dim, size in enumerate(after) if size != 1]
            if kept == whole:
                return way
            if kept == whole[: len(kept)] and way == "same":
                return "row"
    return "other"
