"""The rewrites of `canonicalize`, by label.

Source: docs/semantics/reshards-and-collectives.md#canonicalization
Source: docs/semantics/reshards-and-collectives.md#rewrites-without-a-label
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.sharding import DimSharding, TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, module_meshes
from pyshardy.transforms.reshards.single_device import is_on_single_device
from pyshardy.transforms.rewriting.greedy import Pattern, Rewriter

_AXES_PER_DIM = {
    "sdy.all_gather": "gathering_axes",
    "sdy.all_slice": "slicing_axes",
    "sdy.reduce_scatter": "reduce_scatter_axes",
}


def _operation_of(op: Op, name: str) -> Op | None:
    """The op of this name that defines the operand of `op`."""
    found = op.operands[0].defining_op
    return found if found is not None and found.name == name else None


def _both(op: Op, inner: Op) -> Any:
    """The location of an op that replaces two ops."""
    if op.location is None or inner.location is None:
        return op.location or inner.location
    return ir.Location.fused([op.location, inner.location])


def reshard_of_reshard(op: Op, rewriter: Rewriter) -> bool:
    """Reshard directly from the first sharding to the last, if nothing else uses the value in between."""
    inner = _operation_of(op, "sdy.reshard")
    if inner is None or not inner.result.has_one_use():
        return False
    attrs = {"sharding": op.attrs["sharding"]}
    new = rewriter.insert(Op("sdy.reshard", inner.operands, [op.result.type], attrs, location=_both(op, inner)), op)
    rewriter.replace(op, new.result)
    return True


def reshard_on_one_mesh(op: Op, rewriter: Rewriter) -> bool:
    """As `reshard_of_reshard`, but a value that is whole on its way to another mesh, or to a single device, stays."""
    inner = _operation_of(op, "sdy.reshard")
    if inner is None:
        return False
    meshes = _meshes_around(op)
    first, between, last = get_sharding(inner.operands[0]), inner.attrs["sharding"], op.attrs["sharding"]
    axes = {mesh_of(one, meshes).axes for one in (first, last) if one is not None}
    if len(axes) > 1 or not (is_on_single_device(between, meshes) or mesh_of(between, meshes).axes in axes):
        return False
    return reshard_of_reshard(op, rewriter)


def without_axes(op: Op, rewriter: Rewriter) -> bool:
    """Remove a collective without axes."""
    name = _AXES_PER_DIM.get(op.name)
    if op.attrs["reduction_axes"] if name is None else any(op.attrs[name]):
        return False
    rewriter.replace(op, op.operands[0])
    return True


def permute_to_same(op: Op, rewriter: Rewriter) -> bool:
    """Remove a collective-permute that does not change the sharding."""
    if not is_equivalent(op.attrs["out_sharding"], get_sharding(op.operands[0])):
        return False
    rewriter.replace(op, op.operands[0])
    return True


def slice_of_gather(op: Op, rewriter: Rewriter) -> bool:
    """Use the value before a gather if the same axes are sliced again."""
    gather = _operation_of(op, "sdy.all_gather")
    if gather is None or gather.attrs["gathering_axes"] != op.attrs["slicing_axes"]:
        return False
    rewriter.replace(op, gather.operands[0])
    return True


def reduce_of_replicated(op: Op, rewriter: Rewriter) -> bool:
    """Use the value before it was made unreduced if the same axes are reduced again."""
    unreduced = _operation_of(op, "sdy.replicated_to_unreduced")
    if unreduced is None or unreduced.attrs["axes"] != op.attrs["reduction_axes"]:
        return False
    rewriter.replace(op, unreduced.operands[0])
    return True


def reduce_of_sharded(op: Op, rewriter: Rewriter) -> bool:
    """Gather axes that dimensions lose when they are made unreduced, if all of them are reduced."""
    unreduced = _operation_of(op, "sdy.sharded_to_unreduced")
    if unreduced is None:
        return False
    axes: tuple[Axes, ...] = unreduced.attrs["axes"]
    out: TensorSharding = op.attrs["out_sharding"]
    if sort_and_merge(sum(axes, ()), mesh_of(out, _meshes_around(op))) != op.attrs["reduction_axes"]:
        return False
    attrs = {"gathering_axes": axes, "out_sharding": out}
    gather = Op("sdy.all_gather", unreduced.operands, [op.result.type], attrs, location=op.place)
    rewriter.replace(op, rewriter.insert(gather, op).result)
    return True


def all_to_all_of_all_to_all(op: Op, rewriter: Rewriter) -> bool:
    """Merge two all-to-alls between different dimensions, if nothing else uses the value in between."""
    inner = _operation_of(op, "sdy.all_to_all")
    if inner is None or not inner.result.has_one_use():
        return False
    from pyshardy.transforms.rewriting.all_to_all import make_params, read_params  # few programs need it

    params = sorted([*read_params(inner), *read_params(op)], key=lambda param: param.source)
    dims = [dim for param in params for dim in (param.source, param.target)]
    if len(set(dims)) < len(dims):
        return False
    attrs = {"params": make_params(params, rewriter.attrs), "out_sharding": op.attrs["out_sharding"]}
    new = Op("sdy.all_to_all", inner.operands, [op.result.type], attrs, location=_both(op, inner))
    rewriter.replace(op, rewriter.insert(new, op).result)
    return True


def unused(op: Op, rewriter: Rewriter) -> bool:
    """Remove an op that has no effect although it is not declared as pure."""
    if op.has_uses():
        return False
    rewriter.erase(op)
    return True


def slice_of_all_reduce(op: Op, rewriter: Rewriter) -> bool:
    """Turn an all-reduce that is only sliced into a reduce-scatter, and slice the rest."""
    reduce = _operation_of(op, "sdy.all_reduce")
    if reduce is None or not _is_first_of_equal_slices(op, reduce):
        return False
    scattered, rest = split_slice(op.attrs["slicing_axes"], reduce.attrs["reduction_axes"])
    if sum(map(len, scattered)) < len(reduce.attrs["reduction_axes"]):
        return False
    attrs = {"reduce_scatter_axes": scattered, "out_sharding": _scattered_sharding(op, reduce, scattered)}
    if "reduction_op" in reduce.attrs:
        attrs["reduction_op"] = reduce.attrs["reduction_op"]
    new = Op("sdy.reduce_scatter", reduce.operands, [op.result.type], attrs, location=reduce.place)
    rewriter.insert(new, op)
    if any(rest):
        attrs = {"slicing_axes": rest, "out_sharding": op.attrs["out_sharding"]}
        slice = Op("sdy.all_slice", new.results, [op.result.type], attrs, location=op.place)
        new = rewriter.insert(slice, op)
    for user in reduce.result.users():
        rewriter.replace(user, new.result)
    rewriter.erase(reduce)
    return True


def _is_first_of_equal_slices(op: Op, reduce: Op) -> bool:
    """Whether all uses of the reduction are equal slices, and this is the first one."""
    for user in reduce.result.users():
        if user.name != "sdy.all_slice" or user.attrs["slicing_axes"] != op.attrs["slicing_axes"]:
            return False
        if user is not op and not _comes_after(user, op):
            return False
    return True


def _comes_after(later: Op, op: Op) -> bool:
    """Whether `later`, or an op around it, comes after `op` in the same block."""
    around = next((outer for outer in (later, *later.ancestors()) if outer.block is op.block), None)
    return around is not None and op.is_before(around)


def split_slice(slicing: Sequence[Axes], reduced: Axes) -> tuple[tuple[Axes, ...], tuple[Axes, ...]]:
    """Per dimension, the leading axes that are reduced, and the rest; every axis is taken once.

    >>> a, b = AxisRef("a"), AxisRef("b")
    >>> split_slice([(a, b), (a,)], (a,))
    (((AxisRef('a'),), ()), ((AxisRef('b'),), (AxisRef('a'),)))
    """
    left = list(reduced)
    taken: list[Axes] = []
    for axes in slicing:
        count = 0
        while count < len(axes) and axes[count] in left:
            left.remove(axes[count])
            count += 1
        taken.append(axes[:count])
    return tuple(taken), tuple(axes[len(front) :] for axes, front in zip(slicing, taken))


def _scattered_sharding(op: Op, reduce: Op, scattered: Sequence[Axes]) -> TensorSharding:
    """The sharding of the reduced value with the scattered axes appended; otherwise that of the slice."""
    old: TensorSharding = reduce.attrs["out_sharding"]
    out: TensorSharding = op.attrs["out_sharding"]
    mesh = mesh_of(old, _meshes_around(op))
    operand = get_sharding(reduce.operands[0])
    dims = []
    for index, axes in enumerate(scattered):
        joined: list[AxisRef] = [] if operand is None else list(operand.dims[index].axes)
        for axis in axes:
            append_or_merge(joined, axis, mesh)
        dims.append(DimSharding(joined))
    return TensorSharding(old.mesh, dims, out.replicated, out.unreduced, out.reduction)


def _meshes_around(op: Op) -> Meshes:
    *_, root = op.ancestors()
    return module_meshes(root)


RESHARD_PATTERNS: Mapping[str, Sequence[Pattern]] = {"sdy.reshard": (reshard_of_reshard,)}
COLLECTIVE_PATTERNS: Mapping[str, Sequence[Pattern]] = {
    "sdy.all_gather": (without_axes,),
    "sdy.all_reduce": (without_axes, reduce_of_replicated, reduce_of_sharded),
    "sdy.all_slice": (slice_of_gather, without_axes, slice_of_all_reduce),
    "sdy.all_to_all": (all_to_all_of_all_to_all, unused),
    "sdy.collective_permute": (permute_to_same,),
    "sdy.reduce_scatter": (without_axes,),
}
PATTERNS: Mapping[str, Mapping[str, Sequence[Pattern]]] = {
    "sdy-collective": COLLECTIVE_PATTERNS,
    "sdy-reshard": RESHARD_PATTERNS,
}
OWN_PATTERNS: Mapping[str, Mapping[str, Sequence[Pattern]]] = {
    "pyshardy-reshard": {"sdy.reshard": (reshard_on_one_mesh,)},
}
"""Rewrites that the reference does not have."""
