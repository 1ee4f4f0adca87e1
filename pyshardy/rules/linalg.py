"""Linear algebra and Fourier transforms: batch dimensions pass through, the matrix dimensions mostly do not.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.errors import InvalidRuleError
from pyshardy.rules.aligned import aligned_rule, builder_of
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder

_REPLICATE = FactorKind.NEED_REPLICATION


def cholesky(spec: OpSpec, conservative: bool) -> Rule:
    """Both matrix dimensions need replication.

    >>> print(cholesky(OpSpec("stablehlo.cholesky", [(6, 5, 5)], [(6, 5, 5)]), False))
    <([i, j, k])->([i, j, k]) {i=6, j=5, k=5} need_replication={j, k}>
    """
    sizes = spec.operand(0)
    return aligned_rule(spec, sizes, special=_matrix_dims(sizes))


def fft(spec: OpSpec, conservative: bool) -> Rule:
    """The transformed dimensions need replication; the last is blocked where real data halves it.

    >>> print(fft(OpSpec("stablehlo.fft", [(6, 12)], [(6, 7)], {"fft_length": (12,)}), False))
    <([i, j])->([i, j]) {i=6, j=12} need_replication={j} blocked_propagation={j}>
    """
    sizes = spec.operand(0)
    last = len(sizes) - 1
    transformed = range(len(sizes) - len(spec.attr("fft_length")), len(sizes))
    return aligned_rule(spec, sizes, transformed, blocked=(last,) if sizes[last] != spec.result(0)[last] else ())


def triangular_solve(spec: OpSpec, conservative: bool) -> Rule:
    """Three factors that need replication: the equations, the unknowns, and the right-hand sides.

    >>> facts = {"left_side": True, "transpose_a": "NO_TRANSPOSE"}
    >>> print(triangular_solve(OpSpec("stablehlo.triangular_solve", [(5, 5), (5, 9)], [(5, 9)], facts), False))
    <([i, k], [i, j])->([k, j]) {i=5, j=9, k=5} need_replication={i, j, k}>
    """
    builder = builder_of(spec)
    a, b = spec.operand(0), spec.operand(1)
    _add_batch(builder, a)
    row, column = _matrix_dims(a)
    inner, outer = (column, row) if spec.attr("transpose_a") in ("TRANSPOSE", "ADJOINT") else (row, column)
    if spec.attr("left_side"):
        builder.factor(a[inner], [(0, inner), (1, row)], _REPLICATE)
        builder.factor(b[column], [(1, column), (2, column)], _REPLICATE)
        builder.factor(a[outer], [(0, outer), (2, row)], _REPLICATE)
    else:
        builder.factor(b[row], [(1, row), (2, row)], _REPLICATE)
        builder.factor(a[outer], [(0, outer), (1, column)], _REPLICATE)
        builder.factor(a[inner], [(0, inner), (2, column)], _REPLICATE)
    return builder.finish()


def eigh(spec: OpSpec, conservative: bool) -> Rule:
    """Eigenvectors are shaped as the matrix, eigenvalues as its last dimension.

    >>> print(eigh(OpSpec("stablehlo.custom_call", [(6, 5, 5)], [(6, 5, 5), (6, 5)]), False))
    <([i, j, k])->([i, j, k], [i, k]) {i=6, j=5, k=5}>
    """
    builder = builder_of(spec)
    sizes = spec.operand(0)
    _add_batch(builder, sizes)
    row, column = _matrix_dims(sizes)
    builder.factor(sizes[row], [(0, row), (1, row)])
    builder.factor(sizes[column], [(0, column), (1, column), (2, row)])
    return builder.finish()


def qr(spec: OpSpec, conservative: bool) -> Rule:
    """The matrix dimensions and that of the second result need replication.

    >>> print(qr(OpSpec("stablehlo.custom_call", [(7, 5)], [(7, 5), (5,)]), False))
    <([i, j])->([i, j], [k]) {i=7, j=5, k=5} need_replication={i, j, k}>
    """
    return _matrix_and_vector(spec, vector=2)


def householder_product(spec: OpSpec, conservative: bool) -> Rule:
    """The matrix dimensions and that of the second operand need replication.

    >>> print(householder_product(OpSpec("stablehlo.custom_call", [(7, 5), (5,)], [(7, 5)]), False))
    <([i, j], [k])->([i, j]) {i=7, j=5, k=5} need_replication={i, j, k}>
    """
    return _matrix_and_vector(spec, vector=1)


def _matrix_and_vector(spec: OpSpec, vector: int) -> Rule:
    """Matrices as first operand and first result, beside a batch of vectors, the value number `vector`."""
    builder = builder_of(spec)
    sizes = spec.operand(0)
    _add_batch(builder, sizes)
    row, column = _matrix_dims(sizes)
    result = builder.results[0]
    builder.factor(sizes[row], [(0, row), (result, row)], _REPLICATE)
    builder.factor(sizes[column], [(0, column), (result, column)], _REPLICATE)
    builder.factor((builder.shapes[vector] or ())[row], [(vector, row)], _REPLICATE)
    return builder.finish()


def _matrix_dims(sizes: tuple[int, ...]) -> tuple[int, int]:
    """The dimensions of the rows and of the columns: the last two."""
    if len(sizes) < 2:
        raise InvalidRuleError("looking for matrices", got=f"an operand of rank {len(sizes)}", needed="rank 2 or more")
    return len(sizes) - 2, len(sizes) - 1


def _add_batch(builder: RuleBuilder, sizes: tuple[int, ...]) -> None:
    for dim, size in enumerate(sizes[:-2]):
        builder.factor(size, builder.everywhere(dim))
