"""Lowers JAX functions, jitted or not, for the available devices or for any others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from pyshardy.core import mesh as core
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import PartitionSpec as Spec
from pyshardy.errors import UsageError
from pyshardy.frontend.jax_leaves import (
    filtered,
    has_static,
    is_argument,
    is_filtered,
    is_sharding,
    taking_static,
    unfiltered,
)
from pyshardy.frontend.jax_private import stand_in_mesh
from pyshardy.frontend.jax_shardings import abstract_mesh

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_ALIASES = {"gpu": "cuda"}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of lowering.

    Attributes:
        mesh: JAX's mesh during lowering, of real devices or of stand-ins; None for the function's own.
        abstract: The abstract mesh, if there are no devices.
        platform: The platform, if it differs from that of the devices.
        is_named: Whether the mesh was given as axes with sizes, so that it may be one of this machine's devices.
    """

    mesh: jax.sharding.Mesh | None = None
    abstract: AbstractMesh | None = None
    platform: str | None = None
    is_named: bool = False

    @property
    def spec_mesh(self) -> jax.sharding.Mesh | AbstractMesh | None:
        """The mesh of specs without a mesh."""
        return self.abstract or self.mesh

    def context(self) -> AbstractContextManager[Any]:
        """Set the mesh as JAX's mesh."""
        return nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)


def make_target(mesh: Any, platform: str | None, shardings: Any) -> Target:
    """The target of lowering for a mesh, a platform and shardings.

    Args:
        mesh: A mesh of JAX, abstract or not, a mesh of pyshardy, or axes with sizes, which propagation may use freely.
            By default the abstract mesh of a sharding, if there is one.
        platform: The platform; by default that of the mesh, otherwise JAX's.
        shardings: A tree of shardings and arguments.
    """
    platform = None if platform is None else _platform(platform)
    if mesh is None:
        mesh = _abstract_mesh_in(shardings)
    if mesh is None or isinstance(mesh, jax.sharding.Mesh):
        return Target(mesh, None, platform)
    if isinstance(mesh, core.Mesh) and mesh.device_ids:
        raise UsageError("lowering a function", got=f"the mesh {mesh}", needed="devices in their natural order")
    abstract = abstract_mesh(mesh)
    is_named = not isinstance(mesh, AbstractMesh)
    if is_named:
        real = next((one for one in _real_meshes(shardings) if one.shape_tuple == abstract.shape_tuple), None)
        if real is not None:
            return Target(_automatic(real), None, platform, is_named)
    device = abstract.abstract_device
    platform = platform or (None if device is None else device.platform) or jax.default_backend()
    return Target(stand_in_mesh(abstract, platform), abstract, platform, is_named)


def _real_meshes(tree: Any, takes_arrays: bool = False) -> list[jax.sharding.Mesh]:
    """The meshes of devices in the shardings and shapes of a tree, and on request those of arrays, which can move."""
    found: dict[jax.sharding.Mesh, None] = {}
    for leaf in jax.tree.leaves(tree, is_leaf=is_sharding):
        if isinstance(leaf, jax.core.Tracer) or (isinstance(leaf, jax.Array) and not takes_arrays):
            continue
        sharding = leaf if isinstance(leaf, NamedSharding) else getattr(leaf, "sharding", None)
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, jax.sharding.Mesh) and sharding.mesh.size:
            found[sharding.mesh] = None
    return list(found)


def _automatic(mesh: jax.sharding.Mesh) -> jax.sharding.Mesh:
    """A mesh with axes that propagation may use freely."""
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))


def _on_devices(target: Target, tree: Any) -> Target | None:
    """The target with devices of this machine for those that stand in; None if it has too few, or another mesh."""
    mesh = target.abstract
    if mesh is None or not target.is_named or _real_meshes(tree):
        return None
    for real in _real_meshes(tree, takes_arrays=True):
        if real.shape_tuple == mesh.shape_tuple:
            return Target(_automatic(real), None, target.platform, is_named=True)
    if mesh.size > len(jax.devices()):
        return None
    types = (AxisType.Auto,) * len(mesh.axis_names)
    real = jax.make_mesh(mesh.axis_sizes, mesh.axis_names, axis_types=types)
    return Target(real, None, target.platform, is_named=True)


def _platform(name: str) -> str:
    found = _ALIASES.get(name, name)
    if found not in _PLATFORMS:
        raise UsageError("lowering a function", got=f"platform={name!r}", needed=f"one of {', '.join(_PLATFORMS)}")
    return found


def _abstract_mesh_in(tree: Any) -> AbstractMesh | None:
    for leaf in jax.tree.leaves(tree, is_leaf=is_sharding):
        sharding = leaf if isinstance(leaf, NamedSharding) else getattr(leaf, "sharding", None)
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh) and sharding.mesh.size:
            return sharding.mesh
    current: AbstractMesh = jax.sharding.get_abstract_mesh()
    return None if current.empty or not jax.sharding.get_mesh().empty else current


def lower_function(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: Target,
    shardings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Any, Target]:
    """Lower a function.

    If the mesh was given as axes with sizes, and the arguments are over devices of this machine with the same axes, the
    function is lowered for these devices.

    Args:
        function: A function, jitted by any wrapper or not.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        target: The target.
        shardings: `in_shardings` and `out_shardings`, if given.
        options: Other options of `jax.jit`.

    Returns:
        What JAX lowered, and the target that it was lowered for.

    Raises:
        UsageError: Shardings or options are given for a jitted function, or there are two meshes.
    """
    tree = (args, kwargs, shardings)
    try:
        return _lower(function, args, kwargs, target, shardings, options), target
    except _TwoMeshesError as error:
        other = _on_devices(target, tree)
        if other is not None:
            with suppress(_TwoMeshesError):
                return _lower(function, args, kwargs, other, shardings, options), other
        raise _two_meshes(target, tree) from error.__cause__


class _TwoMeshesError(Exception):
    """A function is over other devices than those that it is lowered for."""


_TWO_MESHES = ("incompatible devices", "should match the mesh passed to")
"""What JAX says of them."""


def _two_meshes(target: Target, tree: Any) -> UsageError:
    assert target.spec_mesh is not None
    found = [_axes_text(mesh) for mesh in _real_meshes(tree, takes_arrays=True)]
    where = f"over {' and '.join(dict.fromkeys(found))}, in the arguments" if found else "in the function"
    return UsageError(
        f"lowering a function for {target.spec_mesh.size} devices, {_axes_text(target.spec_mesh)}",
        got=f"arrays or shardings on devices of this machine, {where}{' or the function' if found else ''}",
        needed="jax.ShapeDtypeStructs, and shardings over a jax.sharding.AbstractMesh or PartitionSpecs",
        hint="if the devices are meant, pass their mesh itself, as mesh=",
    )


def _axes_text(mesh: Any) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.shape_tuple)


def _lower(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: Target,
    shardings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Any:
    given = {**shardings, **options}
    if is_filtered(function):
        function, args, kwargs, options = unfiltered(function, args, kwargs, options)
        given = {**shardings, **options}
    elif hasattr(function, "lower"):
        if given:
            raise UsageError(
                "loading a jitted function",
                got=" and ".join(given),
                needed="the shardings in jax.jit itself" if shardings else "them in jax.jit itself",
                hint="pass the function before jax.jit, give jax.jit the shardings, or annotate the module",
            )
        if isinstance(function, _JITTED):
            args, kwargs = (_on_target(tree, target) for tree in (tuple(args), dict(kwargs)))
        return _lower_jitted(function, args, kwargs, target)
    else:
        fixed = _fixed_positions(options, len(args))
        args = [arg if index in fixed else filtered(arg, is_argument) for index, arg in enumerate(args)]
        function = taking_static(function) if has_static(args) else function
    args, kwargs = (_on_target(tree, target) for tree in (tuple(args), dict(kwargs)))
    named = _named(given, target)
    args = _typed(tuple(args), named.get("in_shardings"), target)
    return _lower_jitted(jax.jit(function, **named), args, kwargs, target)


def _lower_jitted(jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target) -> Any:
    with target.context():
        try:
            if hasattr(jitted, "trace"):
                return lower_traced(jax_stage(jitted.trace(*args, **kwargs)), target.platform)
            return jax_stage(jitted.lower(*args, **kwargs))
        except RuntimeError as error:
            if target.spec_mesh is not None or "non-empty mesh" not in str(error):
                raise
            raise UsageError(
                "lowering a function", got="PartitionSpecs and no mesh", needed="the mesh, as mesh= or by jax.set_mesh"
            ) from error
        except ValueError as error:
            if (target.abstract is None and not target.is_named) or not any(map(str(error).__contains__, _TWO_MESHES)):
                raise
            raise _TwoMeshesError from error
        except UsageError as error:
            if target.spec_mesh is None or "AbstractMesh" not in str(error.__cause__):
                raise
            raise _TwoMeshesError from error


def lower_traced(traced: Any, platform: str | None) -> Any:
    """Lower a traced function for a platform; by default that of its devices or, without devices, JAX's."""
    platform = None if platform is None else _platform(platform)
    if platform is None:
        try:
            return traced.lower()
        except ValueError as error:
            if "AbstractMesh" not in str(error):
                raise
    try:
        return traced.lower(lowering_platforms=(platform or jax.default_backend(),))
    except ValueError as error:
        if "AbstractMesh" not in str(error):
            raise
        raise UsageError(
            "lowering a function over a jax.sharding.AbstractMesh",
            got="callbacks or partitioners, which need devices",
            needed="the function, not traced, and the mesh",
            hint="pyshardy.load(function, *arguments, mesh=...)",
        ) from error


def jax_stage(found: Any) -> Any:
    """JAX's `Lowered` or `Traced` inside the result of a wrapper of `jax.jit`."""
    while not isinstance(found, (jax.stages.Lowered, jax.stages.Traced)):
        inner = getattr(found, "lowered", None) or getattr(found, "traced", None)
        if inner is None:
            break
        found = inner
    return found


_JITTED = (type(jax.jit(lambda: None)),)


# Shardings


def _named(given: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """The options of `jax.jit`, with specs on the mesh; shardings that JAX cannot express are left open."""

    def named(leaf: Any) -> Any:
        if isinstance(leaf, (TensorSharding, Spec)):
            return None
        if isinstance(leaf, PartitionSpec) and target.spec_mesh is not None:
            return NamedSharding(target.spec_mesh, leaf)
        return leaf

    return {
        name: jax.tree.map(named, value, is_leaf=is_sharding) if name.endswith("_shardings") else value
        for name, value in given.items()
    }


def has_own_shardings(tree: Any) -> bool:
    """Whether a tree has shardings that JAX cannot express."""
    return any(isinstance(leaf, (TensorSharding, Spec)) for leaf in jax.tree.leaves(tree, is_leaf=is_sharding))


def sharding_leaves(tree: Any, numbers: Any, takes_all: bool = False) -> list[tuple[int, Any]]:
    """The shardings that JAX cannot express, or all shardings, with the numbers of their leaves.

    Args:
        tree: A tree of shardings; a sharding may stand for all leaves below it.
        numbers: The number of every leaf, in a tree.
        takes_all: Whether to take all shardings.
    """
    found: list[tuple[int, Any]] = []

    def note(sharding: Any, below: Any) -> None:
        if isinstance(sharding, (TensorSharding, Spec)) or (takes_all and sharding is not None):
            found.extend((number, sharding) for number in jax.tree.leaves(below))

    jax.tree.map(note, tree, numbers, is_leaf=is_sharding)
    return found


def _on_target(tree: Any, target: Target) -> Any:
    """Arguments on the mesh of the target: without their devices if it has others, and with its kinds of axes."""
    mesh = target.spec_mesh
    if mesh is None or (target.abstract is None and not target.is_named):
        return tree

    def one(leaf: Any) -> Any:
        is_array = isinstance(leaf, jax.Array)
        if isinstance(leaf, jax.core.Tracer) or not (is_array or isinstance(leaf, jax.ShapeDtypeStruct)):
            return leaf
        sharding = leaf.sharding
        fits = isinstance(sharding, NamedSharding) and sharding.mesh.shape_tuple == mesh.shape_tuple
        moves = is_array and target.abstract is not None
        if not moves and not (target.is_named and fits and sharding.mesh != mesh):
            return leaf
        kept = NamedSharding(mesh, sharding.spec) if fits else None
        is_weak = getattr(leaf, "weak_type", False)  # keys have no such attribute
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=kept, weak_type=is_weak)

    return jax.tree.map(one, tree)


def _typed(args: tuple[Any, ...], in_shardings: Any, target: Target) -> tuple[Any, ...]:
    """Arguments with their shardings in their types, where the mesh has explicit axes: JAX asks for that.

    Args:
        args: The positional arguments.
        in_shardings: Their shardings; one may stand for all leaves below it.
        target: The target.
    """
    mesh = target.spec_mesh
    if in_shardings is None or mesh is None or AxisType.Explicit not in mesh.axis_types:
        return args

    def typed(sharding: Any, below: Any) -> Any:
        def one(leaf: Any) -> Any:
            is_open = isinstance(leaf, jax.ShapeDtypeStruct) and leaf.sharding is None
            return leaf.update(sharding=sharding) if is_open and isinstance(sharding, NamedSharding) else leaf

        return jax.tree.map(one, below)

    try:
        found: tuple[Any, ...] = jax.tree.map(typed, in_shardings, args, is_leaf=is_sharding)
    except ValueError:  # not the structure of the arguments, which JAX will say
        return args
    return found


# Leaves of arguments that are not arrays


def _fixed_positions(options: Mapping[str, Any], count: int) -> set[int]:
    """The positions of static arguments."""
    given = options.get("static_argnums") or ()
    return {index % count for index in ((given,) if isinstance(given, int) else given) if count}
