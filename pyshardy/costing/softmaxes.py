"""Computes softmaxes in the products that they read, as XLA for TPUs does.

A product of 16-bit floats may be converted to f32, scaled or masked, and go through a softmax. Then one kernel computes
all of it. It writes the exponentials, in f32, and the sum of each row. The readers of the softmax, also in the backward
pass, divide one by the other. If there is no arithmetic between the conversion and the softmax, or if rows are longer,
the product is stored. The exponentials are then computed where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyshardy.costing.flat import BITCAST, FlatBlock
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.program import CostOp, CostTensor
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE, PROGRAM_CONSTANTS

_DOT, _CONVERT, _REDUCE = "stablehlo.dot_general", "stablehlo.convert", "stablehlo.reduce"
_EXPONENTIAL, _SUBTRACT, _BROADCAST = "stablehlo.exponential", "stablehlo.subtract", "stablehlo.broadcast_in_dim"
_MAXIMUM: Final = "stablehlo.maximum"
_SHAPING: Final = frozenset((BITCAST, *op_names("stablehlo.", "reshape transpose")))
_REPEATING: Final = PROGRAM_CONSTANTS | {_BROADCAST}
_SHORT: Final = frozenset(("bf16", "f16"))


def softmaxes(block: FlatBlock, longest: int) -> dict[int, int]:
    """The exponentials of softmaxes that the kernel of a product computes, and these products.

    Args:
        block: The ops.
        longest: The largest number of elements in a row.
    """
    makers = {flat.op.results[0]: flat.op for flat in block.ops if len(flat.op.results) == 1}
    found: dict[int, int] = {}
    for value, op in makers.items():
        if op.kind.name != _EXPONENTIAL or op.kind.results[0].dtype != "f32":
            continue
        shifted = makers.get(op.operands[0])
        if shifted is None or shifted.kind.name != _SUBTRACT:
            continue
        scores, most = shifted.operands
        row = _row(scores, most, makers)
        product = _product(scores, makers) if 0 < row <= longest else None
        if product is not None:
            found[value] = product
    return found


def _row(scores: int, most: int, makers: Mapping[int, CostOp]) -> int:
    """The length of the rows whose largest elements a value holds, repeated along the row; 0 if it is another value."""
    while (op := makers.get(most)) is not None:
        if op.kind.name == _REDUCE:
            is_most = op.kind.fact("body") == (_MAXIMUM,) and op.operands[0] == scores
            rows = max(1, op.kind.results[0].elements)
            return op.kind.operands[0].elements // rows if is_most else 0
        if op.kind.name == _MAXIMUM:  # of the largest element and a constant
            most = next((one for one in op.operands if _is_large(one, makers)), -1)
        elif op.kind.name == _BROADCAST or op.kind.name in _SHAPING:
            (most,) = op.operands
        else:
            return 0
    return 0


def _is_large(value: int, makers: Mapping[int, CostOp]) -> bool:
    """Whether a value is a reduction, possibly in another shape."""
    op = makers.get(value)
    while op is not None and op.kind.name in _SHAPING:
        op = makers.get(op.operands[0])
    return op is not None and op.kind.name == _REDUCE


def _product(value: int, makers: Mapping[int, CostOp]) -> int | None:
    """The product of which a value has the elements, converted to f32 and changed one by one; None if there is none."""
    is_changed = False
    size = makers[value].kind.results[0].elements if value in makers else 0
    while (op := makers.get(value)) is not None:
        if op.kind.name == _CONVERT:
            source = op.operands[0]
            while (maker := makers.get(source)) is not None and maker.kind.name in _SHAPING:
                (source,) = maker.operands
            is_product = maker is not None and maker.kind.name == _DOT
            return source if is_product and is_changed and op.kind.operands[0].dtype in _SHORT else None
        if op.kind.name in _SHAPING:
            (value,) = op.operands
        elif op.kind.name in ELEMENTWISE:
            arrays = [one for one in op.operands if _is_array(one, size, makers)]
            if len(arrays) != 1:
                return None
            (value,), is_changed = arrays, True
        else:
            return None
    return None


def _is_array(value: int, size: int, makers: Mapping[int, CostOp]) -> bool:
    """Whether a value has this many elements of its own, and does not only repeat fewer."""
    op = makers.get(value)
    return op is not None and op.kind.name not in _REPEATING and op.kind.results[0].elements == size


def with_softmaxes(block: Kernels, found: Mapping[int, int], tensors: Sequence[CostTensor]) -> Kernels:
    """A block with each softmax in the kernel of its product, and the blocks inside too.

    Args:
        block: The kernels, with the exponentials as results of kernels of their own.
        found: What `softmaxes` found in the block and those inside.
        tensors: The type of every value.
    """
    kernels = [
        kernel._replace(inner=tuple([with_softmaxes(one, found, tensors) for one in kernel.inner]))
        if kernel.inner
        else kernel
        for kernel in block.kernels
    ]
    places = {value: at for at, kernel in enumerate(kernels) for value in kernel.writes}
    readers: dict[int, list[int]] = {}
    for at, kernel in enumerate(kernels):
        for value in kernel.needs:
            readers.setdefault(value, []).append(at)
    kept: list[Kernel | None] = list(kernels)
    for exponentials, product in found.items():
        if exponentials not in places or product not in places or product in block.results:
            continue
        members = _members(exponentials, product, kernels, places, readers, tensors)
        if members and not any(kept[at] is None for at in members):
            last = places[exponentials]
            inside = [kernels[at] for at in members]
            outside = {value for at, one in enumerate(kernels) if at not in members for value in one.needs}
            for at in members:
                kept[at] = None
            kept[last] = _merged(inside, outside.union(block.results), exponentials)
    return block._replace(kernels=tuple([kernel for kernel in kept if kernel is not None]))


def _members(
    exponentials: int,
    product: int,
    kernels: Sequence[Kernel],
    places: Mapping[int, int],
    readers: Mapping[int, Sequence[int]],
    tensors: Sequence[CostTensor],
) -> list[int]:
    """The positions of the kernels that become one, in order; none if they cannot."""
    first, last = places[product], places[exponentials]
    small = tensors[exponentials].bytes // 8
    before = [at for at in readers.get(product, ()) if at != last]
    rows = [value for at in before for value in kernels[at].writes]
    if len(kernels[first].writes) > 1 or any(tensors[value].bytes > small for value in rows):
        return []
    if any(at > last for at in before) or any(at < last for value in rows for at in readers.get(value, ())):
        return []
    made = {exponentials, *rows}
    sums = [
        at
        for at in readers.get(exponentials, ())
        if kernels[at].root.kind.name == _REDUCE and made.issuperset(kernels[at].needs)
    ]
    return [first, *before, last, *sums]


def _merged(members: Sequence[Kernel], needed: set[int], exponentials: int) -> Kernel:
    """One kernel instead of several; its last op computes the exponentials."""
    made = {value for kernel in members for value in kernel.writes}
    reads = dict.fromkeys(value for kernel in members for value in kernel.reads if value not in made)
    writes = [value for kernel in members for value in kernel.writes if value in needed]
    root = next(kernel.root for kernel in members if exponentials in kernel.writes)
    ops = dict.fromkeys(op for kernel in members for op in kernel.ops if op is not root)
    waits = tuple(dict.fromkeys(_outside(members, made)))
    return Kernel((*ops, root), tuple(reads), tuple(writes), frozenset(), (), waits)


def _outside(members: Sequence[Kernel], made: set[int]) -> Iterator[int]:
    for kernel in members:
        yield from (value for value in kernel.waits if value not in made)
