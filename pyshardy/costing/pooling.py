"""The gradient of max-pooling as XLA computes it: the places of the largest elements, and a scatter to them."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.costing.program import CostKind, CostOp, CostTensor

_INDEX_BYTES = 4
_BODY = ("compare", "compare", "compare", "not", "and", "or")
"""The ops that compare a place with the best one so far, before value and indices of the better one are selected."""


def expanded(op: CostOp, new: Callable[[CostTensor], int]) -> list[CostOp]:
    """The ops that compute `select_and_scatter`: iotas, a window reduction, a concatenation of indices, a scatter.

    Args:
        op: The op.
        new: Makes a new value of a type.
    """
    operand, source = op.kind.operands[:2]
    rank = len(operand.shape or ())
    whole = _indices(operand.shape or ())
    places = _indices(source.shape or ())
    iotas = [new(whole) for _ in range(rank)]
    found = [CostOp(CostKind("stablehlo.iota", (), (whole,)), (), (value,)) for value in iotas]
    best = [new(tensor) for tensor in (source, *(places for _ in range(rank)))]
    body = tuple(f"stablehlo.{name}" for name in (*_BODY, *("select" for _ in range(rank + 1))))
    facts = (("body", body), ("window_dimensions", op.kind.fact("window_dimensions", ())))
    kind = CostKind(
        "stablehlo.reduce_window", (operand, *(whole for _ in range(rank))), (source, *[places] * rank), facts
    )
    found.append(CostOp(kind, (op.operands[0], *iotas), tuple(best), place=op.place))
    joined = _indices((*(source.shape or ()), rank))
    index = new(joined)
    found.append(CostOp(CostKind("stablehlo.concatenate", (places,) * rank, (joined,)), tuple(best[1:]), (index,)))
    zeros = new(op.kind.results[0])
    spread = CostKind("stablehlo.broadcast_in_dim", op.kind.operands[2:3], op.kind.results)
    found.append(CostOp(spread, op.operands[2:3], (zeros,)))
    scatter = CostKind(
        "stablehlo.scatter", (op.kind.results[0], joined, source), op.kind.results, (("body", ("stablehlo.add",)),)
    )
    found.append(CostOp(scatter, (zeros, index, op.operands[1]), op.results, place=op.place))
    return found


def _indices(shape: tuple[int, ...]) -> CostTensor:
    tensor = CostTensor(shape, "i32", 0)
    return CostTensor(shape, "i32", _INDEX_BYTES * tensor.elements)
