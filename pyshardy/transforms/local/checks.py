"""Checks that an op gives the right result if every device runs it on its shards."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, join_axes
from pyshardy.core.devices import shard_indices
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.op import Op
from pyshardy.ir.strings import string_value
from pyshardy.reshard.conflicts import shared_axes
from pyshardy.reshard.strides import equivalent_across_reshape
from pyshardy.rules.ops import ops_that
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule, factor_symbol
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.reshards.kinds import kind_of
from pyshardy.transforms.reshards.op_rules import is_buffer, rule_on_shards, takes_shards

_COMPLETED = ops_that(lambda traits: traits.completes_parts)
_CHECKED_APART = ops_that(lambda traits: traits.is_checked_apart)
_WITH_SIZE_OPERANDS = ops_that(lambda traits: traits.has_size_operands)
_NEEDS_MATRICES = ops_that(lambda traits: traits.needs_matrices)
_INTERNAL = "_SPMDInternalOp_"
"""The prefix of the targets of custom calls that XLA's partitioner inserts."""


class _Tensors(NamedTuple):
    """An op with the global shapes and the shardings of its operands and results."""

    op: Op
    shapes: tuple[tuple[int, ...] | None, ...]
    shardings: tuple[TensorSharding | None, ...]
    mesh: Mesh


def check_runs_locally(op: Op, local: Localizer) -> None:
    """Check the op and the shardings of its operands and results.

    Raises:
        PassError: The op on shards would not give the shards of its results, or that is unknown.
    """
    kind = kind_of(op, local.global_types)
    if kind is None or kind not in local.checked:
        _check(op, local)
        local.checked.add(kind)


def _check(op: Op, local: Localizer) -> None:
    tensors = _tensors(op, local)
    if tensors is None or takes_shards(op) or is_buffer(op):
        return
    if op.name == "stablehlo.reshape" and 0 in (tensors.shapes[0] or ()):
        return  # all shards are empty; such a reshape has no rule
    target = string_value(op.attrs["call_target_name"]) if op.name == "stablehlo.custom_call" else ""
    rule = None if op.name in _WITH_SIZE_OPERANDS or target.startswith(_INTERNAL) else _rule(op, tensors, local)
    if rule is None:
        raise PassError(op, f"is sharded, and it is unknown how to run it on shards{_HINT}")
    if op.name == "stablehlo.reverse":
        _check_reverse(tensors, local)
    elif op.name != "stablehlo.reshape" or not _moves_nothing(tensors):
        _check_factors(tensors, rule)
    if f"@{target}" in _NEEDS_MATRICES and RULE not in op.attrs:
        _check_matrices(tensors)


_HINT = "; reshard its operands and results to be replicated, or give it a sharding rule"


def _tensors(op: Op, local: Localizer) -> _Tensors | None:
    """The shapes and shardings to check; None if nothing is sharded.

    Raises:
        PassError: Tensors are sharded over different meshes.
    """
    values = (*op.operands, *op.results)
    shapes = tuple([local.global_type(value).shape for value in values])
    shardings = tuple(
        [_without_trivial_axes(local.sharding(value), local, shape) for value, shape in zip(values, shapes)]
    )
    meshes: dict[Mesh, TensorSharding] = {}
    for sharding in shardings:
        if sharding is not None and not sharding.is_fully_replicated:
            meshes.setdefault(local.mesh(sharding), sharding)
    if not meshes:
        return None
    if len(meshes) > 1 and op.name != "stablehlo.reverse":
        one, other = list(meshes.values())[:2]
        raise PassError(op, f"has tensors on different devices, {one} and {other}; reshard one of them first")
    return _Tensors(op, shapes, shardings, next(iter(meshes)))


def _without_trivial_axes(
    sharding: TensorSharding | None, local: Localizer, shape: tuple[int, ...] | None = None
) -> TensorSharding | None:
    """The sharding without axes of size 1, and without the axes of empty dimensions, whose shards are all empty."""
    if sharding is None or sharding.is_fully_replicated:
        return sharding
    return _without_axes_that_split_nothing(sharding, local.mesh(sharding), shape)


@lru_cache(maxsize=16384)
def _without_axes_that_split_nothing(
    sharding: TensorSharding, mesh: Mesh, shape: tuple[int, ...] | None
) -> TensorSharding:
    sizes = (1,) * sharding.rank if shape is None else shape
    if 0 not in sizes and all(axis.length(mesh) > 1 for axis in sharding.all_axes()):
        return sharding
    dims = (
        DimSharding(join_axes([tuple(axis for axis in axes if axis.length(mesh) > 1 and size != 0)], mesh))
        for axes, size in zip(sharding.dim_axes, sizes)
    )
    return sharding.with_dims(dims)


register_cache(_without_axes_that_split_nothing.cache_clear)


def _rule(op: Op, tensors: _Tensors, local: Localizer) -> Rule | None:
    own: Rule | None = op.attrs.get(RULE)
    if own is not None:
        return own
    facts = local.context.specs.spec(op)
    count = len(op.operands)
    return rule_on_shards(OpSpec(op.name, tensors.shapes[:count], tensors.shapes[count:], facts.attributes))


def _check_factors(tensors: _Tensors, rule: Rule) -> None:
    """Raise `PassError` unless every factor has the same axes in all tensors, and may be sharded."""
    op, mesh = tensors.op, tensors.mesh
    axes = shared_axes(rule, tensors.shardings, mesh)
    if axes is None:
        listed = ", ".join("none" if sharding is None else str(sharding) for sharding in tensors.shardings)
        raise PassError(
            op,
            f"has operands and results that are sharded incompatibly: {listed}; "
            "sdy-insert-explicit-reshards reshards them",
        )
    if op.name not in _CHECKED_APART:
        for factor in rule.factors_of(FactorKind.PERMUTATION):
            if axes_size(axes[factor], mesh) > 1:
                raise PassError(
                    op,
                    f"is sharded along factor {factor_symbol(factor)} of its rule, along which elements would have to "
                    "move between devices; run sdy-resolve-permutation-factors first",
                )
    if op.name not in _COMPLETED:
        _check_complete(tensors, sum((axes[factor] for factor in rule.factors_of(FactorKind.REDUCTION)), ()))


def _check_complete(tensors: _Tensors, axes: Axes) -> None:
    """Raise `PassError` if results are partial along axes that their shardings do not list as unreduced."""
    for sharding in tensors.shardings[len(tensors.op.operands) :]:
        unreduced = () if sharding is None else sharding.unreduced
        for axis in axes:
            if axis.length(tensors.mesh) > 1 and not any(other.contains(axis) for other in unreduced):
                raise PassError(
                    tensors.op,
                    f"gives results that are partial along {axis}; sdy-insert-explicit-reshards with "
                    "mark-partial-result-with-unreduced-axes=true completes them",
                )


def _moves_nothing(tensors: _Tensors) -> bool:
    """Whether a reshape keeps every element on its device."""
    (before, after), (shape, new_shape) = tensors.shardings, tensors.shapes
    if before is None or after is None:
        return False
    return equivalent_across_reshape(before, shape or (), after, new_shape or (), tensors.mesh)


def _check_reverse(tensors: _Tensors, local: Localizer) -> None:
    """Raise `PassError` unless the result has the devices in reversed order along the reversed dimensions."""
    op = tensors.op
    before, after = tensors.shardings
    reversed_dims = tuple(op.attrs["dimensions"])
    for dim in range(len(tensors.shapes[0] or ())):
        one, other = (_indices(sharding, dim, local) for sharding in (before, after))
        last = max(one)
        wanted = tuple(last - index for index in one) if dim in reversed_dims else one
        if other != wanted:
            raise PassError(
                op,
                f"has dimension {dim} of its result on other devices than the reversal puts it; "
                "run sdy-resolve-permutation-factors first",
            )


def _indices(sharding: TensorSharding | None, dim: int, local: Localizer) -> tuple[int, ...]:
    """The index of the shard of a dimension, per device."""
    if sharding is None or not sharding.dims:
        return (0,)
    axes = sharding.dim_axes[dim]
    return shard_indices(axes, local.mesh(sharding)) if axes else (0,)


def _check_matrices(tensors: _Tensors) -> None:
    for sharding in tensors.shardings:
        for axes in sharding.dim_axes[-2:] if sharding is not None else ():
            if axes_size(axes, tensors.mesh) > 1:
                raise PassError(tensors.op, f"works on whole matrices, which are sharded{_HINT}")


def check_passes_on(op: Op, given: TensorSharding | None, wanted: TensorSharding | None, local: Localizer) -> None:
    """Raise `PassError` if a value has another sharding than the argument or result that receives it."""
    if given is not wanted and _layout(given, local) != _layout(wanted, local):
        raise PassError(op, f"passes on a value with sharding {given} where the sharding must be {wanted}")


def _layout(sharding: TensorSharding | None, local: Localizer) -> tuple[Mesh, tuple[Axes, ...]] | None:
    if sharding is None or sharding.is_fully_replicated:
        return None
    found = _without_trivial_axes(sharding, local)
    return None if found is None or found.is_fully_replicated else (local.mesh(found), found.dim_axes)
