"""Modules from JAX functions, and shardings to JAX's `NamedSharding`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType

from pyshardy.core.jax_values import JIT_OPTIONS
from pyshardy.core.mesh import Mesh
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import annotate_ports, core_mesh, with_mesh
from pyshardy.frontend.annotated import Axes
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.frontend.jax_lower import (
    has_own_shardings,
    is_array,
    is_filtered,
    lower,
    lower_traced,
    make_target,
    sharding_leaves,
    stage,
)
from pyshardy.frontend.jax_nnx import NnxCall, is_nnx_jitted, nnx_call
from pyshardy.frontend.jax_private import compile_arg, devices_of, inspections, kept_leaves, stand_in_mesh
from pyshardy.frontend.jax_shardings import NamedShardings, abstract_mesh, jax_mesh, partition_spec
from pyshardy.frontend.load import load_content
from pyshardy.frontend.nnx_names import with_nnx_names
from pyshardy.ir.module import Module

__all__ = ["JaxSignature", "NamedShardings", "jax_mesh", "partition_spec"]


@dataclass(frozen=True, slots=True)
class JaxSignature:
    """How the flat inputs and outputs of a lowered module make up the arguments and results of the function.

    Attributes:
        in_tree: Structure of (positional arguments, keyword arguments).
        in_ranks: Rank of every leaf of the arguments as JAX sees it; a typed PRNG key has fewer dimensions
            than the array of its data.
        kept: The leaves that the module takes; JAX drops those that are not used.
        out_tree: Structure of the result.
        out_ranks: Rank of every leaf of the result.
        devices: The devices it was lowered for, in the order that device ids of the module count them; None if it
            was lowered for no devices in particular.
        callbacks: The Python functions that the module calls, by their numbers there.
        mesh: The mesh without devices that it was lowered for, if it was.
        platform: The platform that it was lowered for, if it was for such a mesh.
        partitioners: What JAX knows of the partitioners of `custom_partitioning`, by their names in the module.
        explicit_axes: The axes along which JAX itself decides how everything is sharded, while it traces.
        static_argnums: The positions of static arguments, where they are known.
        example: The arguments that it was loaded for, positional and by keyword, without the data of arrays; None if
            they are not known.
        inspections: What answers `jax.debug.inspect_array_sharding`, by the numbers in the module.
        nnx: The function under `flax.nnx.jit`, if it is; what calls it, and how its models are taken apart.
        lowered: What it comes from: JAX refers to Python functions inside, such as partitioners, weakly.
    """

    in_tree: Any
    in_ranks: tuple[int, ...]
    kept: tuple[int, ...]
    out_tree: Any
    out_ranks: tuple[int, ...]
    devices: tuple[Any, ...] | None = None
    callbacks: tuple[Any, ...] = ()
    mesh: AbstractMesh | None = None
    platform: str | None = None
    partitioners: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    explicit_axes: tuple[str, ...] = ()
    static_argnums: tuple[int, ...] = ()
    example: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)
    inspections: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)
    nnx: NnxCall | None = field(default=None, repr=False, compare=False)
    lowered: Any = field(default=None, repr=False, compare=False)


def load_lowered(lowered: Any, mesh: Axes = None) -> Module:
    """The module of a lowered JAX function, with the function's signature in `origin`.

    Args:
        lowered: What `jax.jit(f).lower(...)` gives, or the same of a wrapper of `jax.jit`.
        mesh: The axes that tilings are over, if it was lowered for GSPMD; found without.
    """
    lowered = stage(lowered)
    module = _module_of(lowered, mesh)
    module.origin = _signature(lowered)
    return module


def load_traced(traced: Any, mesh: Any = None, platform: str | None = None) -> Module:
    """The module of a traced JAX function, or of one that a wrapper of `jax.jit` traced, lowered for the platform.

    Raises:
        UsageError: A mesh: it is decided when the function is traced.
    """
    if mesh is not None:
        needed = "it where the function is traced, or the function here"
        raise UsageError("loading a traced function", got="a mesh", needed=needed)
    return load_lowered(lower_traced(stage(traced), platform))


def _module_of(lowered: Any, mesh: Axes) -> Module:
    stream = BytesIO()
    mlir: Any = lowered.compiler_ir("stablehlo")
    mlir.operation.write_bytecode(stream)
    return load_content(stream.getvalue(), "the lowered function", mesh)


def load_exported(exported: Any, mesh: Axes = None) -> Module:
    """The module of a `jax.export.Exported`, with the function's signature in `origin`; `mesh` as for `load_lowered`.

    Its shardings are over devices in no particular order: those of an export are not part of it.
    """
    module = load_content(exported.mlir_module_serialized, "the exported function", mesh)
    module.origin = JaxSignature(
        exported.in_tree,
        tuple(len(leaf.shape) for leaf in exported.in_avals),
        tuple(exported.module_kept_var_idx),
        exported.out_tree,
        tuple(len(leaf.shape) for leaf in exported.out_avals),
    )
    return module


def load_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    in_shardings: Any = None,
    out_shardings: Any = None,
    mesh: Any = None,
    platform: str | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> Module:
    """Lower a function for example arguments, arrays or `jax.ShapeDtypeStruct`s, and load the module.

    Args:
        function: A function, jitted by JAX or a wrapper of `jax.jit`, or not.
        args: Its arguments. What is no array in those of a function that is not jitted is static.
        in_shardings: As for `jax.jit`; also `pyshardy.PartitionSpec`s and `TensorSharding`s. Specs are over `mesh`.
        out_shardings: As for `jax.jit`.
        mesh: The mesh: of JAX, of pyshardy, or axes with sizes. If it has no devices, none are needed.
        platform: The platform to lower for, by default that of JAX.
        keywords: Options of `jax.jit` by name (`JIT_OPTIONS`), and the keyword arguments of the function.

    Raises:
        UsageError: Shardings for a function that is jitted already, a function that is compiled already, or real
            devices where there is a mesh without.
    """
    if isinstance(function, jax.stages.Compiled):
        raise UsageError("loading a function", got="a compiled one", needed="the function, or what lowering it gives")
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    given = {name: value for name, value in given.items() if value is not None}
    keywords = keywords or {}
    options = {name: value for name, value in keywords.items() if name in JIT_OPTIONS}
    kwargs = {name: value for name, value in keywords.items() if name not in JIT_OPTIONS}
    target = make_target(mesh, platform, (args, kwargs, given))
    keeps_own = (
        bool(kwargs) and target.spec_mesh is not None and (is_filtered(function) or not hasattr(function, "lower"))
    )
    """JAX takes no shardings together with keyword arguments; they are added to the module."""
    for_jax = {name: value for name, value in given.items() if name == "out_shardings" or not keeps_own}
    lowered = lower(function, args, kwargs, target, for_jax, options)
    module = load_lowered(lowered, _axes(mesh) if _is_tiled() else None)
    fixed = options.get("static_argnums") or ()
    module.origin = replace(
        module.origin,
        static_argnums=(fixed,) if isinstance(fixed, int) else tuple(fixed),
        example=jax.tree.map(lambda leaf: None if is_array(leaf) else leaf, (tuple(args), dict(kwargs))),
    )
    if is_nnx_jitted(function):
        module = with_nnx_names(module, function, args, kwargs)
        module.origin = replace(module.origin, nnx=nnx_call(function, args))
    if target.spec_mesh is not None:
        if target.abstract is not None:
            module.origin = replace(module.origin, mesh=target.abstract, platform=target.platform)
        axes = zip(target.spec_mesh.axis_names, target.spec_mesh.axis_types)
        explicit = tuple(name for name, kind in axes if kind is AxisType.Explicit)
        module.origin = replace(module.origin, explicit_axes=explicit)
        module = with_mesh(module, core_mesh(target.spec_mesh))
    return _with_own_shardings(module, in_shardings, out_shardings, target.spec_mesh, keeps_own)


def check_arguments(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Refuse arguments that a function cannot be called with, before JAX calls it; the arguments of `load_function`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C has none
        return
    try:
        signature.bind(*args, **{name: value for name, value in keywords.items() if name not in JIT_OPTIONS})
    except TypeError as error:
        raise UsageError(
            "loading a function",
            got=f"{len(args)} example arguments: {error}",
            needed=f"arguments for {getattr(function, '__name__', 'it')}{signature}",
            hint="load(function, *arguments), with arrays or jax.ShapeDtypeStruct, or function.lower(*arguments)",
        ) from error


def _is_tiled() -> bool:
    """Whether JAX lowers for GSPMD."""
    return not getattr(jax.config, "jax_use_shardy_partitioner", True)


def _axes(mesh: Any) -> Axes:
    return None if mesh is None else dict(core_mesh(mesh).axes)


def _with_own_shardings(module: Module, in_shardings: Any, out_shardings: Any, mesh: Any, takes_all: bool) -> Module:
    """The module with those shardings of two trees that JAX cannot say, or with all of the inputs."""
    signature: JaxSignature = module.origin
    found = []
    if takes_all or has_own_shardings(in_shardings):
        args, _ = jax.tree.unflatten(signature.in_tree, range(signature.in_tree.num_leaves))
        tensors = dict(zip(signature.kept, input_tensors(module.root)))
        leaves = sharding_leaves(in_shardings, args, takes_all)
        found += [("arg_attrs", tensors[leaf], sharding) for leaf, sharding in leaves if leaf in tensors]
    if has_own_shardings(out_shardings):
        tree = jax.tree.unflatten(signature.out_tree, range(signature.out_tree.num_leaves))
        outs = output_tensors(module.root)
        found += [("res_attrs", outs[leaf], sharding) for leaf, sharding in sharding_leaves(out_shardings, tree)]
    return annotate_ports(module, found, None if mesh is None else core_mesh(mesh)) if found else module


def mesh_to_lower_for(signature: JaxSignature, mesh: Mesh) -> jax.sharding.Mesh:
    """The mesh over the devices that a function was lowered for, real ones or not."""
    if signature.mesh is None or signature.platform is None:
        found: jax.sharding.Mesh = jax_mesh(mesh, signature.devices)
        return found
    return stand_in_mesh(abstract_mesh(mesh), signature.platform)


def _signature(lowered: jax.stages.Lowered) -> JaxSignature:
    in_leaves = jax.tree.leaves(lowered.args_info)
    out_leaves = jax.tree.leaves(lowered.out_info)
    return JaxSignature(
        lowered.in_tree,
        tuple(len(leaf.shape) for leaf in in_leaves),
        kept_leaves(lowered, len(in_leaves)),
        lowered.out_tree,
        tuple(len(leaf.shape) for leaf in out_leaves),
        devices_of(lowered),
        tuple(compile_arg(lowered, "host_callbacks") or ()),
        partitioners={
            str(id(kept)): kept for kept in compile_arg(lowered, "keepalive") or () if hasattr(kept, "partition")
        },
        inspections=inspections(lowered),
        lowered=lowered,
    )
