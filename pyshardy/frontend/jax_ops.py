"""Annotations inside traced code: sharding constraints, sharding groups and propagation barriers.

They are ops of the `sdy` dialect, so `jax.jit` obeys them too. They have no effect outside of tracing, and if JAX
lowers for GSPMD.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import Primitive
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from pyshardy.core.axis_lists import sort_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import as_spec, core_mesh
from pyshardy.frontend.jax_private import ad, batching, mlir, numbers_of_module

_BARRIERS = {"none": 0, "forward": 1, "backward": 2}
_REVERSED = {"none": "none", "forward": "backward", "backward": "forward"}


class _Pair:
    """Identifies two arrays with equal shardings, in one trace."""


def constrain(x: Any, sharding: Any, mesh: Any = None) -> Any:
    """Constrain an array or a tree of arrays, like `jax.lax.with_sharding_constraint`, with any sharding of Shardy.

    Args:
        x: The arrays.
        sharding: The sharding of all arrays: a `PartitionSpec` of pyshardy (with priorities, open dimensions, sub-axes)
            or of JAX, a `NamedSharding`, or a `TensorSharding`.
        mesh: The mesh of a spec: a mesh of JAX or pyshardy, or axes with sizes; by default that of the context.

    Raises:
        UsageError: There is no mesh.
        InvalidShardingError: The sharding does not fit the array or the mesh.

    >>> from pyshardy import PartitionSpec, load
    >>> step = lambda x: constrain(x + 1, PartitionSpec("data", "?", priorities=(0, 1)), {"data": 4})
    >>> module = load(step, jax.ShapeDtypeStruct((8, 8), "float32"))
    >>> print(next(line for line in module.text().splitlines() if "constraint" in line).strip())
    %2 = sdy.sharding_constraint %1 <@mesh, [{"data"}p0, {?}p1]> : tensor<8x8xf32>
    """
    found = _mesh(sharding, mesh)

    def one(array: Any) -> Any:
        rank = jax.numpy.ndim(array)
        if isinstance(sharding, TensorSharding):
            given = sharding.with_mesh(found)
        else:
            given = as_spec(sharding).sharding(found, rank)
        if all(found.has_axis(axis.name) for axis in given.all_axes()):
            given = given.with_replicated(sort_axes(given.replicated, found))
            given = given.with_unreduced(sort_axes(given.unreduced, found))
        check_sharding(given, found, rank)
        return _constrain_p.bind(array, sharding=given)

    return jax.tree.map(one, x)


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Give two arrays of one shape the same sharding, whatever propagation finds for either.

    Raises:
        UsageError: The arrays have different shapes.

    >>> shard_alike(jax.numpy.ones(2), jax.numpy.zeros(2))[1].tolist()
    [0.0, 0.0]
    """
    shapes = jax.numpy.shape(x), jax.numpy.shape(y)
    if shapes[0] != shapes[1]:
        raise UsageError("sharding two arrays alike", got=f"the shapes {shapes[0]} and {shapes[1]}", needed="one shape")
    first, second = _alike_p.bind(x, y, pair=_Pair())
    return first, second


def propagation_barrier(x: Any, direction: str = "none") -> Any:
    """Stop propagation of shardings across an array or a tree of arrays, in one direction or both.

    Args:
        x: The arrays.
        direction: The direction that shardings may still propagate in: "none", "forward" or "backward".

    Raises:
        UsageError: The direction is unknown.

    >>> propagation_barrier(jax.numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    if not isinstance(direction, str) or direction not in _BARRIERS:
        names = ", ".join(map(repr, _BARRIERS))
        raise UsageError("making a propagation barrier", got=repr(direction), needed=f"one of {names}")
    return jax.tree.map(lambda array: _barrier_p.bind(array, direction=direction), x)


def _mesh(sharding: Any, mesh: Any) -> Mesh:
    if mesh is not None:
        return core_mesh(mesh)
    if isinstance(sharding, TensorSharding) and isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    if isinstance(sharding, jax.sharding.NamedSharding):
        return core_mesh(sharding.mesh)
    current = jax.sharding.get_abstract_mesh()
    if current.empty:
        needed = "one, as mesh=, as NamedSharding, or by jax.set_mesh"
        raise UsageError("constraining an array", got="no mesh", needed=needed)
    return core_mesh(current)


# The primitives


def _is_shardy() -> bool:
    return bool(getattr(jax.config, "jax_use_shardy_partitioner", True))


_constrain_p = Primitive("shardy_constraint")
_constrain_p.def_impl(lambda x, **_: x)
_constrain_p.def_abstract_eval(lambda x, **_: x)
ad.deflinear2(_constrain_p, lambda cotangent, _, **params: (_constrain_p.bind(cotangent, **params),))


def _batch_constraint(args: Any, dims: Any, *, sharding: TensorSharding) -> Any:
    (x,), (dim,) = args, dims
    split = [*sharding.dims[:dim], DimSharding(is_open=True), *sharding.dims[dim:]]
    return _constrain_p.bind(x, sharding=sharding.with_dims(split)), dim


def _lower_constraint(_: Any, x: Any, *, sharding: TensorSharding) -> Any:
    if not _is_shardy():
        return [x]
    further = ir.RankedTensorType(x.type).rank - sharding.rank  # the data of a key has more dimensions
    sharding = sharding.with_dims([*sharding.dims, *[DimSharding()] * further])
    return [sdy.ShardingConstraintOp(x, ir.Attribute.parse(f"#sdy.sharding{sharding}")).result]


batching.primitive_batchers[_constrain_p] = _batch_constraint
mlir.register_lowering(_constrain_p, _lower_constraint)

_barrier_p = Primitive("shardy_propagation_barrier")
_barrier_p.def_impl(lambda x, **_: x)
_barrier_p.def_abstract_eval(lambda x, **_: x)
ad.deflinear2(
    _barrier_p, lambda cotangent, _, *, direction: (_barrier_p.bind(cotangent, direction=_REVERSED[direction]),)
)
batching.primitive_batchers[_barrier_p] = lambda args, dims, **params: (_barrier_p.bind(*args, **params), dims[0])


def _lower_barrier(_: Any, x: Any, *, direction: str) -> Any:
    if not _is_shardy():
        return [x]
    allowed = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _BARRIERS[direction])
    return [sdy.PropagationBarrierOp(x, allowed).result]


mlir.register_lowering(_barrier_p, _lower_barrier)

_alike_p = Primitive("shardy_shard_alike")
_alike_p.multiple_results = True
_alike_p.def_impl(lambda x, y, **_: [x, y])
_alike_p.def_abstract_eval(lambda x, y, **_: [x, y])


def _alike_transpose(cotangents: Any, *_: Any, pair: _Pair) -> Any:
    del pair  # the cotangents form a separate pair
    return _alike_p.bind(*map(ad.instantiate_zeros, cotangents), pair=_Pair())


def _batch_alike(args: Any, dims: Any, *, pair: _Pair) -> Any:
    size = next(x.shape[dim] for x, dim in zip(args, dims) if dim is not None)
    moved = [
        jax.numpy.broadcast_to(x, (size, *jax.numpy.shape(x))) if dim is None else jax.numpy.moveaxis(x, dim, 0)
        for x, dim in zip(args, dims)
    ]
    return _alike_p.bind(*moved, pair=pair), [0, 0]


def _lower_alike(ctx: Any, x: Any, y: Any, *, pair: _Pair) -> Any:
    if _is_shardy():
        numbers = numbers_of_module(ctx)
        group = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), numbers.setdefault(pair, len(numbers)))
        for value in (x, y):
            sdy.ShardingGroupOp(value, group)
    return [x, y]


ad.deflinear2(_alike_p, _alike_transpose)
batching.primitive_batchers[_alike_p] = _batch_alike
mlir.register_lowering(_alike_p, _lower_alike)
