"""The order in memory of the dimensions of products, and of what is computed from them element by element.

The rules are those of XLA for GPUs. A product is written with its batch dimensions first, then those of its left
operand, then those of its right one. A transpose after it only gives these dimensions other numbers. Where two products
meet, the earlier one decides. The later one is written with those of its right operand first, if that fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pyshardy.costing.flat import KEPT_COPY, Flat, FlatBlock
from pyshardy.costing.program import CostOp, CostTensor
from pyshardy.rules.dimension_numbers import DotNumbers
from pyshardy.rules.properties import ELEMENTWISE

_PRODUCT, _TRANSPOSE = "stablehlo.dot_general", "stablehlo.transpose"
CHAINED = frozenset(("stablehlo.convert", "stablehlo.negate"))
"""Ops of one array that run before a copy, and in its kernel."""
_MATRIX = 2
"""An array of no more dimensions is in either order."""

DimOrder = tuple[int, ...]
"""The dimensions of an array from the slowest to the fastest, with numbers that leave out those of one element."""


class _Origin(NamedTuple):
    """What a value is computed from, element by element.

    Attributes:
        shape: The shape, without dimensions of one element.
        order: The order of these dimensions in memory.
        others: All orders that are possible without a copy.
        sources: The products, after transposes and conversions; the earliest first.
        at: The position of the earliest product.
        is_source: Whether it is one of them.
    """

    shape: tuple[int, ...]
    order: DimOrder
    others: frozenset[DimOrder]
    sources: tuple[int, ...]
    at: int
    is_source: bool = False


class Orders(NamedTuple):
    """The orders in the blocks of a program.

    Attributes:
        of: The order of each value for which it is known.
        turned: The products that meet an earlier one in an order in which they cannot be written.
    """

    of: dict[int, DimOrder]
    turned: frozenset[int]


def find_orders(flat: Flat) -> Orders:
    """The orders of products, and of what is computed from them.

    Args:
        flat: The program.
    """
    found, turned = dict[int, DimOrder](), set[int]()
    _look(flat.body, found, turned)
    return Orders(found, frozenset(turned))


def _look(block: FlatBlock, orders: dict[int, DimOrder], turned: set[int]) -> None:
    readers: dict[int, int] = {}
    for one in block.ops:
        for value in {*one.op.operands, *(outer for region in one.inner for outer in region.outer)}:
            readers[value] = readers.get(value, 0) + 1
    found: dict[int, _Origin] = {}
    for at, one in enumerate(block.ops):
        if len(one.op.results) == 1 and not one.inner:
            origin = _origin(one.op, at, found, readers, turned)
            if origin is not None and len(origin.shape) > _MATRIX:
                found[one.op.results[0]] = origin
        for region in one.inner:
            _look(region, orders, turned)
    orders.update((value, origin.order) for value, origin in found.items())


def _origin(
    op: CostOp, at: int, found: dict[int, _Origin], readers: dict[int, int], turned: set[int]
) -> _Origin | None:
    """The values that the result of an op is computed from. Later products that do not fit are added to `turned`."""
    (value,), shape = op.results, squeezed(op.kind.results[0])
    if op.kind.name == _PRODUCT:
        order, swapped = _product_orders(op)
        return _Origin(shape, order, frozenset((order, swapped)), (value,), at, True)
    if op.kind.name == KEPT_COPY:
        copied = op.kind.fact("order")
        return _Origin(shape, copied, frozenset((copied,)), (value,), at, True) if isinstance(copied, tuple) else None
    read = [(one, found[one]) for one in dict.fromkeys(op.operands) if one in found]
    if op.kind.name == _TRANSPOSE:
        return _transposed(op, read[0][1], value) if read else None
    read = sorted([pair for pair in read if pair[1].shape == shape], key=lambda pair: pair[1].at)
    if op.kind.name not in ELEMENTWISE or not read:
        return None
    (first, origin), *later = read
    if not later:
        is_chained = op.kind.name in CHAINED and origin.is_source and readers[first] == 1
        return origin._replace(sources=(value,)) if is_chained else origin._replace(is_source=False)
    sources = origin.sources
    for _, other in later:
        new = [one for one in other.sources if one not in sources]
        if origin.order not in other.others and new:
            turned.update(new)
        for one in new:
            if one in found and found[one].shape == shape:
                found[one] = found[one]._replace(order=origin.order, others=frozenset((origin.order,)))
        sources += tuple(new)
    return _Origin(shape, origin.order, frozenset((origin.order,)), sources, origin.at)


def _product_orders(op: CostOp) -> tuple[DimOrder, DimOrder]:
    """The orders in which a product can be written: the left operand's dimensions first, or the right one's."""
    numbers, shape = op.kind.fact("dot_dimension_numbers"), op.kind.results[0].shape or ()
    assert isinstance(numbers, DotNumbers)
    batches = len(numbers.lhs_batching)
    left = len(op.kind.operands[0].shape or ()) - len(numbers.lhs_contracting)
    dims = tuple(range(len(shape)))
    return _without_ones(dims, shape), _without_ones((*dims[:batches], *dims[left:], *dims[batches:left]), shape)


def _transposed(op: CostOp, origin: _Origin, value: int) -> _Origin | None:
    """The same array, whose dimensions have the numbers that they have after a transpose."""
    permutation: tuple[int, ...] = op.kind.fact("permutation", ())  # type: ignore[assignment]
    before = op.kind.operands[0]
    if squeezed(before) != origin.shape:
        return None
    after = _without_ones(permutation, before.shape or ())

    def renamed(order: DimOrder) -> DimOrder:
        return tuple([after.index(dim) for dim in order])

    sources = (value,) if origin.is_source else ()
    others = frozenset(renamed(order) for order in origin.others)
    return _Origin(squeezed(op.kind.results[0]), renamed(origin.order), others, sources, origin.at, origin.is_source)


def _without_ones(order: Iterable[int], shape: tuple[int, ...]) -> DimOrder:
    """An order of dimensions without those of one element, with the numbers that are left.

    >>> _without_ones((2, 0, 1, 3), (5, 1, 7, 9))
    (1, 0, 2)
    """
    kept = [dim for dim, size in enumerate(shape) if size != 1]
    return tuple([kept.index(dim) for dim in order if shape[dim] != 1])


def squeezed(tensor: CostTensor) -> tuple[int, ...]:
    """The shape of an array without dimensions of one element."""
    return tuple([size for size in tensor.shape or () if size != 1])


def in_memory(tensor: CostTensor, order: DimOrder | None) -> tuple[int, ...]:
    """The shape of an array in the order in which it lies in memory, without dimensions of one element.

    Args:
        tensor: The type of the array.
        order: Its order; None for the order of its numbers.
    """
    shape = squeezed(tensor)
    return shape if order is None or len(order) != len(shape) else tuple([shape[dim] for dim in order])


def is_last(dims: Collection[int], tensor: CostTensor, order: DimOrder | None) -> bool:
    """Whether some dimensions of an array are the fastest in memory.

    Args:
        dims: The dimensions.
        tensor: The type of the array.
        order: Its order; None for the order of its numbers.

    >>> array = CostTensor((4, 8, 8), "f32", 1024)
    >>> is_last([2], array, None), is_last([2], array, (0, 2, 1))
    (True, False)
    """
    shape = tensor.shape or ()
    inside = set(_without_ones([dim for dim in range(len(shape)) if dim in dims], shape))
    whole = order if order is not None else tuple(range(len(squeezed(tensor))))
    return not inside or inside == set(whole[-len(inside) :])


def is_matrix(product: CostOp, place: int, order: DimOrder) -> bool:
    """Whether an operand is one matrix per batch as it lies in memory: the dimensions to sum over, and the rest.

    Args:
        product: The product.
        place: Which operand: 0 or 1.
        order: Its order.
    """
    numbers = product.kind.fact("dot_dimension_numbers")
    assert isinstance(numbers, DotNumbers)
    batching = (numbers.lhs_batching, numbers.rhs_batching)[place]
    summed = (numbers.lhs_contracting, numbers.rhs_contracting)[place]
    shape = product.kind.operands[place].shape or ()
    free = [dim for dim in range(len(shape)) if dim not in batching and dim not in summed]
    ways = ((*batching, *summed, *free), (*batching, *free, *summed))
    return order in [_without_ones(way, shape) for way in ways]
