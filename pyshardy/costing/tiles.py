"""The memory of arrays in tiles, as TPUs keep them: the last two dimensions of the layout are rounded up.

XLA for TPUs chooses the layout that needs the fewest bytes among those that the ops can work with. The operands and the
result of a product have a dimension along the 128 lanes that is not a batch dimension. Those of a convolution have the
batch or the features there. So heads of 64 elements over sequences of 64 take twice their bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pyshardy.costing.kernels import Kernels, all_kernels
from pyshardy.costing.program import MATRIX_UNIT_OPS, CostKind, CostTensor
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers

_LANES, _SUBLANES = 128, 8


def tiled_bytes(tensor: CostTensor, lanes: Collection[int]) -> int:
    """The bytes of an array in tiles, in the layout that needs the fewest.

    Args:
        tensor: The type of the array.
        lanes: The dimensions that may be along the lanes.

    >>> tiled_bytes(CostTensor((512, 64, 16, 64), "bf16", 2**26), (1, 3)) == 2**27
    True
    """
    shape = [size for size in tensor.shape or () if size != 1]
    wide = [size for dim, size in enumerate(tensor.shape or ()) if size != 1 and dim in lanes]
    if len(shape) < 2 or not wide or tensor.elements <= 0:
        return tensor.bytes
    best = tensor.bytes * _LANES * _SUBLANES
    for lane in wide:
        rest = list(shape)
        rest.remove(lane)
        for sublane in rest:
            rounded = _rounded(lane, _LANES) * _rounded(sublane, min(_SUBLANES, 1 << (sublane - 1).bit_length()))
            best = min(best, tensor.bytes * rounded // (lane * sublane))
    return best


def _rounded(size: int, tile: int) -> int:
    return -(-size // tile) * tile


def tiled_values(block: Kernels, tensors: Sequence[CostTensor]) -> dict[int, int]:
    """The bytes of the values that products and convolutions read and write, where tiles make them larger.

    Args:
        block: The kernels.
        tensors: The type of every value.
    """
    found: dict[int, int] = {}
    larger: dict[int, list[_Larger]] = {}  # by the identity of the kind, which many ops share
    for kernel in all_kernels(block):
        outside: tuple[int, ...] = ()
        for op in kernel.ops:
            arrays = larger.get(id(op.kind))
            if arrays is None:
                arrays = larger[id(op.kind)] = list(_larger(op.kind))
            if not arrays:
                continue
            outside = outside or (*kernel.reads, *kernel.writes)
            values = (*op.operands[:2], *op.results)
            for place, tensor, ratio in arrays:
                value = values[place]
                for other in outside if value not in outside else (value,):
                    if other == value or tensors[other].shape == tensor.shape:
                        found[other] = max(found.get(other, 0), round(tensors[other].bytes * ratio))
    return found


class _Larger(NamedTuple):
    """An array of a product or a convolution that tiles make larger.

    Attributes:
        place: 0 or 1 for an operand, 2 for the result.
        tensor: Its type.
        ratio: Its bytes in tiles over those without.
    """

    place: int
    tensor: CostTensor
    ratio: float


def _larger(kind: CostKind) -> Iterator[_Larger]:
    lanes = _lanes(kind)
    if lanes and len(kind.operands) >= 2 and len(kind.results) == 1:
        for place, (tensor, wide) in enumerate(zip((*kind.operands[:2], *kind.results), lanes)):
            size = tiled_bytes(tensor, wide)
            if size > tensor.bytes:
                yield _Larger(place, tensor, size / tensor.bytes)


def _lanes(kind: CostKind) -> tuple[tuple[int, ...], ...]:
    if kind.name not in MATRIX_UNIT_OPS:
        return ()
    numbers = kind.fact("dot_dimension_numbers")
    if isinstance(numbers, DotNumbers):
        batches = numbers.lhs_batching, numbers.rhs_batching, tuple(range(len(numbers.lhs_batching)))
        shapes = (*kind.operands[:2], *kind.results)
        return tuple(
            tuple(dim for dim in range(len(tensor.shape or ())) if dim not in batch)
            for tensor, batch in zip(shapes, batches)
        )
    numbers = kind.fact("dimension_numbers")
    if isinstance(numbers, ConvolutionNumbers):
        return (
            (numbers.lhs_batch, numbers.lhs_feature),
            (numbers.kernel_input_feature, numbers.kernel_output_feature),
            (numbers.output_batch, numbers.output_feature),
        )
    return ()
