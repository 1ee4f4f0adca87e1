"""Dimension shardings to factor shardings and back.

Source: docs/semantics/propagation.md#factors
Source: docs/semantics/propagation.md#writing-back
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.rules.rule import DimMapping, Rule, TensorMapping


class FactorState:
    """How one factor of one tensor is sharded during a step.

    Attributes:
        axes: The axes, major to minor.
        is_closed: Whether no axis may be added.
        is_minor_most: Whether the factor is the last one of its dimension, and so may be padded.
        overflow: Axes that fit neither into this factor nor, without a strided layout, into the next one.
    """

    __slots__ = ("axes", "is_closed", "is_minor_most", "overflow")

    def __init__(self, axes: Axes, is_closed: bool, is_minor_most: bool, overflow: Axes = ()) -> None:
        self.axes = axes
        self.is_closed = is_closed
        self.is_minor_most = is_minor_most
        self.overflow = overflow


class TensorState:
    """The factors of one tensor during a step; a factor behind an overflow is missing.

    Attributes:
        factors: State of every factor that the tensor has.
        blocked: Replicated, then unreduced axes: not available in this tensor.
    """

    __slots__ = ("factors", "blocked")

    def __init__(self, factors: dict[int, FactorState], blocked: Axes) -> None:
        self.factors = factors
        self.blocked = blocked


def project(sharding: TensorSharding | None, mapping: TensorMapping, sizes: tuple[int, ...], mesh: Mesh) -> TensorState:
    """Distribute the axes of every dimension over its factors.

    Args:
        sharding: The sharding of the tensor; None counts as open without axes.
        mapping: The factors of every dimension.
        sizes: Size of every factor of the rule.
        mesh: The mesh of the sharding.
    """
    factors: dict[int, FactorState] = {}
    if sharding is None:
        for dim in mapping:
            for factor in dim:
                factors[factor] = FactorState((), False, factor == dim[-1])
        return TensorState(factors, ())
    dims = sharding.dims
    for index in range(min(len(mapping), len(dims))):
        _project_dim(dims[index], mapping[index], sizes, mesh, factors)
    return TensorState(factors, sharding.replicated + sharding.unreduced)


def _project_dim(
    sharding: DimSharding, dim: DimMapping, sizes: tuple[int, ...], mesh: Mesh, factors: dict[int, FactorState]
) -> None:
    is_closed = not sharding.is_open
    todo = sharding.axes
    if len(dim) == 1:
        factors[dim[0]] = FactorState(todo, is_closed, True)
        return
    for position, factor in enumerate(dim[:-1]):
        taken, room, todo = take_axes(todo, sizes[factor], mesh)
        overflows = bool(todo) and room > 1
        factors[factor] = FactorState(taken, is_closed, False, todo if overflows else ())
        if overflows:
            following = dim[position + 1]
            factors[following] = FactorState((), True, following == dim[-1])
            return
    factors[dim[-1]] = FactorState(todo, is_closed, True)


def axes_if_same(rule: Rule, shardings: Sequence[TensorSharding | None]) -> dict[int, Axes] | None:
    """The axes of every factor if all tensors that have it show the same; None if they do not, or if that is unknown.

    It is unknown for sharded dimensions of several factors. No step changes tensors that have the same, whatever its
    directions and strategy: there is nothing that one could take over from another.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.rules.rule_builder import identity_rule
    >>> sharded = parse_sharding('<@m, [{"x"}]>')
    >>> axes_if_same(identity_rule((8,)), (sharded, sharded)), axes_if_same(identity_rule((8,)), (sharded, None))
    ({0: (AxisRef('x'),)}, None)
    """
    found: dict[int, Axes] = {}
    for tensor, mapping in enumerate(rule.tensors):
        sharding = shardings[tensor]
        dims = None if sharding is None else sharding.dims
        for index in range(len(mapping) if dims is None else min(len(mapping), len(dims))):
            axes = () if dims is None else dims[index].axes
            if axes and len(mapping[index]) > 1:
                return None
            for factor in mapping[index]:
                if found.setdefault(factor, axes) != axes:
                    return None
    return found


def take_axes(axes: Axes, size: int, mesh: Mesh) -> tuple[Axes, int, Axes]:
    """Take from the front of `axes` what divides a factor of this size; an axis may be split.

    Returns:
        The axes taken, the part of the size still free, and the axes left.

    >>> take_axes((AxisRef("p"),), 4, Mesh([("p", 12)]))
    ((AxisRef('p', 1, 4),), 1, (AxisRef('p', 4, 3),))
    """
    taken: list[AxisRef] = []
    left = list(axes)
    while left:
        length = left[0].length(mesh)
        part = 1 if length == 1 else gcd(size, length)
        if length > 1 and part == 1:
            break
        taken.append(left[0].head(part, mesh))
        size //= part
        if part == length:
            left.pop(0)
        else:
            left[0] = left[0].tail(part, mesh)
    return tuple(taken), size, tuple(left)


def unproject(
    state: TensorState,
    mapping: TensorMapping,
    sizes: tuple[int, ...],
    mesh: Mesh,
    before: tuple[DimSharding, ...] = (),
) -> tuple[DimSharding, ...]:
    """The dimension shardings of the factor states, without priorities.

    Axes behind a factor that is not full are dropped, because they would need a strided layout.

    Args:
        state: The factors of the tensor.
        mapping: The factors of every dimension.
        sizes: Size of every factor of the rule.
        mesh: The mesh of the sharding.
        before: The dimension shardings that the tensor had, if known: many of them stay.
    """
    found = []
    for index, dim in enumerate(mapping):
        given = before[index] if before else None
        found.append(_unproject_dim(state.factors, dim, sizes, mesh, given))
    return tuple(found)


def _unproject_dim(
    factors: dict[int, FactorState], dim: DimMapping, sizes: tuple[int, ...], mesh: Mesh, before: DimSharding | None
) -> DimSharding:
    if len(dim) == 1:
        only = factors[dim[0]]
        if (
            before is not None
            and before.axes is only.axes
            and before.is_open != only.is_closed
            and before.priority is None
        ):
            return before
        return DimSharding._make((only.axes, not only.is_closed, None))
    axes: list[AxisRef] = []
    is_closed = False
    for factor in dim:
        state = factors.get(factor)
        if state is None:
            break
        is_closed |= state.is_closed
        for part in (state.axes, state.overflow):
            if part:
                append_or_merge(axes, part[0], mesh)
                axes.extend(part[1:])
        if state.overflow or axes_size(state.axes, mesh) < sizes[factor]:
            break
    return DimSharding(axes, not is_closed)
