"""Loads JAX functions."""

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
from pyshardy.frontend.annotated import MeshArgument
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.frontend.jax_leaves import is_array, is_filtered
from pyshardy.frontend.jax_lower import (
    Target,
    has_own_shardings,
    jax_stage,
    lower_function,
    lower_traced,
    make_target,
    sharding_leaves,
)
from pyshardy.frontend.jax_model_names import with_lowered_names, with_model_names
from pyshardy.frontend.jax_nnx import NnxCall, is_nnx_jitted, nnx_call, nnx_function
from pyshardy.frontend.jax_private import (
    compile_arg,
    compiler_options_of,
    devices_of,
    inspections,
    kept_leaves,
    platform_of,
    stand_in_mesh,
)
from pyshardy.frontend.jax_shardings import NamedShardings, abstract_mesh, jax_mesh, partition_spec
from pyshardy.frontend.load import load_content
from pyshardy.ir.module import Module

__all__ = ["JaxSignature", "NamedShardings", "jax_mesh", "partition_spec"]


@dataclass(frozen=True, slots=True)
class JaxSignature:
    """How the flat inputs and outputs of a lowered module correspond to the arguments and results of the function.

    Attributes:
        in_tree: Structure of (positional arguments, keyword arguments).
        in_ranks: The rank in JAX of every leaf of the arguments. A typed PRNG key has fewer dimensions than its data.
        kept: The leaves that the module takes; JAX drops unused ones.
        out_tree: Structure of the result.
        out_ranks: Rank of every leaf of the result.
        devices: The devices that it was lowered for, in the order of the module's device ids; None if it was not
            lowered for specific devices.
        callbacks: The Python functions that the module calls, by their numbers there.
        mesh: The abstract mesh that it was lowered for, if there was one.
        platform: The platform that it was lowered for, if known.
        compiler_options: The options for the compiler that `jax.jit` was given, by name.
        partitioners: JAX's records of the partitioners of `custom_partitioning`, by their names in the module.
        explicit_axes: The explicit mesh axes, along which JAX decides all shardings while it traces.
        static_argnums: The positions of static arguments, if known.
        example: The positional and keyword arguments that it was loaded with, without the data of arrays; None if
            unknown.
        inspections: The callbacks of `jax.debug.inspect_array_sharding`, by their numbers in the module.
        nnx: The function under `flax.nnx.jit`, if it is one, with its caller and the structure of its models.
        lowered: The lowered function. It keeps Python functions such as partitioners alive, which JAX references
            weakly.
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
    compiler_options: tuple[tuple[str, Any], ...] = ()
    partitioners: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    explicit_axes: tuple[str, ...] = ()
    static_argnums: tuple[int, ...] = ()
    example: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)
    inspections: Mapping[int, Any] = field(default_factory=dict, repr=False, compare=False)
    nnx: NnxCall | None = field(default=None, repr=False, compare=False)
    lowered: Any = field(default=None, repr=False, compare=False)


def load_lowered(lowered: Any, mesh: MeshArgument = None) -> Module:
    """The module of a lowered JAX function, with the function's signature in `origin`.

    Args:
        lowered: The result of `jax.jit(f).lower(...)`, or of a wrapper of `jax.jit`.
        mesh: The mesh axes of tilings, if it was lowered for GSPMD; by default they are derived.
    """
    return _load_stage(jax_stage(lowered), nnx_function(lowered), mesh)


def load_traced(traced: Any, mesh: Any = None, platform: str | None = None) -> Module:
    """The module of a function that JAX or a wrapper of `jax.jit` has traced, lowered for a platform.

    Raises:
        UsageError: A mesh is given. Tracing has already fixed the mesh.
    """
    if mesh is not None:
        needed = "the mesh where the function is traced, or a function that is not traced yet"
        raise UsageError("loading a traced function", got="a mesh", needed=needed)
    return _load_stage(lower_traced(jax_stage(traced), platform), nnx_function(traced))


def _load_stage(lowered: Any, function: Any, mesh: MeshArgument = None) -> Module:
    """The module of JAX's own `Lowered`; with names in models, if it is of a function under `nnx.jit`."""
    module = _module_of(lowered, mesh)
    if function is not None:
        module = with_lowered_names(module, function, lowered)
    module.origin = _signature(lowered)
    return module


def _module_of(lowered: Any, mesh: MeshArgument) -> Module:
    stream = BytesIO()
    mlir: Any = lowered.compiler_ir("stablehlo")
    mlir.operation.write_bytecode(stream)
    return load_content(stream.getvalue(), "the lowered function", mesh)


def load_exported(exported: Any, mesh: MeshArgument = None) -> Module:
    """The module of a `jax.export.Exported`, with the function's signature in `origin`; `mesh` as for `load_lowered`.

    Its shardings are over devices in the natural order, because an export does not include devices.
    """
    module = load_content(exported.mlir_module_serialized, "the exported function", mesh)
    module.origin = JaxSignature(
        exported.in_tree,
        tuple(len(leaf.shape) for leaf in exported.in_avals),
        tuple(exported.module_kept_var_idx),
        exported.out_tree,
        tuple(len(leaf.shape) for leaf in exported.out_avals),
        platform=exported.platforms[0],
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
    """Lower a function for example arguments and load the module.

    Args:
        function: A function, jitted by JAX or a wrapper of `jax.jit`, or not.
        args: Its arguments, arrays or `jax.ShapeDtypeStruct`s. For a function that is not jitted, other leaves are
            static.
        in_shardings: As for `jax.jit`; also `pyshardy.PartitionSpec`s and `TensorSharding`s. Specs are over `mesh`.
        out_shardings: As for `jax.jit`.
        mesh: The mesh: of JAX, of pyshardy, or axes with sizes. An abstract mesh needs no devices.
        platform: The platform to lower for; by default that of JAX.
        keywords: Options of `jax.jit` by name (`JIT_OPTIONS`), and the keyword arguments of the function.

    Raises:
        UsageError: Shardings are given for a jitted function, the function is already compiled, or real devices are
            used with an abstract mesh.
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
    """JAX does not accept shardings together with keyword arguments, so they are added to the module."""
    for_jax = {name: value for name, value in given.items() if name == "out_shardings" or not keeps_own}
    lowered, target = lower_function(function, args, kwargs, target, for_jax, options)
    module = load_lowered(lowered, _axes(mesh) if _is_tiled() else None)
    fixed = options.get("static_argnums") or ()
    module.origin = replace(
        module.origin,
        static_argnums=(fixed,) if isinstance(fixed, int) else tuple(fixed),
        example=jax.tree.map(lambda leaf: None if is_array(leaf) else leaf, (tuple(args), dict(kwargs))),
    )
    module = with_model_names(module, function, args, kwargs)
    if is_nnx_jitted(function):
        module.origin = replace(module.origin, nnx=nnx_call(function, args))
    if target.spec_mesh is not None:
        module = _on_mesh(module, target.spec_mesh, target)
    return _with_own_shardings(module, in_shardings, out_shardings, target.spec_mesh, keeps_own)


def _on_mesh(module: Module, mesh: Any, target: Target) -> Module:
    """The module with the mesh that its function was lowered for."""
    if target.abstract is not None:
        module.origin = replace(module.origin, mesh=target.abstract, platform=target.platform)
    axes = zip(mesh.axis_names, mesh.axis_types)
    explicit = tuple(name for name, kind in axes if kind is AxisType.Explicit)
    module.origin = replace(module.origin, explicit_axes=explicit)
    return with_mesh(module, core_mesh(mesh))


def check_arguments(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Refuse arguments that a function does not accept, before JAX calls it; parameters as for `load_function`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions in C have no signature
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


def _axes(mesh: Any) -> MeshArgument:
    return None if mesh is None else dict(core_mesh(mesh).axes)


def _with_own_shardings(module: Module, in_shardings: Any, out_shardings: Any, mesh: Any, takes_all: bool) -> Module:
    """The module with those shardings of two trees that JAX cannot express, or with all shardings of the inputs."""
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
        platform=platform_of(lowered),
        compiler_options=compiler_options_of(lowered),
        lowered=lowered,
    )
