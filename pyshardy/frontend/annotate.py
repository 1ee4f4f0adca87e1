"""Assigns shardings to inputs and outputs of a loaded program by their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from warnings import warn

from pyshardy.core.axis_lists import sort_axes
from pyshardy.core.jax_values import (
    is_jax_mesh,
    is_named_sharding,
    is_partition_spec,
    mesh_axes,
    parsed_spec,
    spec_unreduced,
)
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding, mesh_of
from pyshardy.core.spec import OPEN, PartitionSpec, parse_spec
from pyshardy.core.text import format_symbol, named_type
from pyshardy.errors import InvalidShardingError, ShardyError, UsageError
from pyshardy.frontend.input_names import matching_names
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.attributes import NO_ATTRS
from pyshardy.ir.functions import SHARDING, main_function, return_op
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.importing.import_hlo_shardings import read_axes
from pyshardy.source.places import is_library

_DOING = "annotating a module"
ShardingsByName = Mapping[str, Any]
PortAnnotation = tuple[str, InterfaceTensor, Any]
Checked = tuple[str, InterfaceTensor, TensorSharding | None]
"""The attribute of the main function, the input or output, and its sharding."""


def annotate(module: Module, shardings: ShardingsByName, mesh: Any = None) -> Module:
    """A module with new shardings on the inputs and outputs of these names.

    Args:
        module: The result of `load`; it does not change.
        shardings: By name a `PartitionSpec` of JAX or pyshardy, a `NamedSharding`, a `TensorSharding`, a text like
            "None,model" or '[{}, {"model", ?}p1]', or None to remove a sharding. Names are those that `show` prints:
            `params['layers'][0]['w1']`, also written `params.layers.0.w1`. `[*]` stands for any one index or key, `*`
            for any text. A name also stands for everything inside it. If several names match, the last one counts.
        mesh: The mesh of the specs: a mesh of JAX or pyshardy, or axes with sizes; by default the only mesh of the
            module. It is added to the module if it is missing.

    Raises:
        UsageError: A name matches no input or output, or there is not exactly one mesh.
        InvalidShardingError: A sharding does not fit its tensor or mesh.

    >>> text = "func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }"
    >>> module = annotate(Module.parse(text), {"arg0": PartitionSpec("data")}, mesh={"data": 4})
    >>> input_tensors(module.root)[0].sharding
    TensorSharding(<@mesh, [{"data"}, {}]>)
    """
    if not isinstance(module, Module):
        raise UsageError(_DOING, got=named_type(module), needed="a Module, as `load` returns it")
    if mesh is not None:
        module = with_mesh(module, core_mesh(mesh))
    found = named_ports(input_tensors(module.root), output_tensors(module.root), shardings)
    return annotate_ports(module, found, None if mesh is None else core_mesh(mesh))


def named_ports(
    inputs: Sequence[InterfaceTensor], outputs: Sequence[InterfaceTensor], shardings: ShardingsByName
) -> list[PortAnnotation]:
    """The inputs and outputs that match the names, each with its last annotation.

    Raises:
        UsageError: The annotations are not a mapping, or a name matches no input or output; the error lists the
            nearest names.
    """
    if not isinstance(shardings, Mapping):
        needed = "a dictionary of shardings by name, such as {'x': P('data')}"
        raise UsageError(_DOING, got=named_type(shardings), needed=needed)
    tensors = [*(("arg_attrs", tensor) for tensor in inputs), *(("res_attrs", tensor) for tensor in outputs)]
    names = [tensor.name for _, tensor in tensors]
    found: dict[tuple[str, int], PortAnnotation] = {}
    for name, sharding in shardings.items():
        if not isinstance(name, str):
            raise UsageError(_DOING, got=f"{name!r} as a name", needed="the name of an input or output")
        for position in matching_names(name, names):
            kind, tensor = tensors[position]
            found[kind, tensor.index] = kind, tensor, sharding
    return list(found.values())


def annotate_ports(module: Module, annotations: Iterable[PortAnnotation], mesh: Mesh | None = None) -> Module:
    """A module with other shardings on some inputs and outputs.

    Args:
        module: The module.
        annotations: Per annotation "arg_attrs" or "res_attrs", the input or output, and its sharding as for `annotate`.
        mesh: The mesh that specs are over; by default the one that the module has.
    """
    given = list(annotations)
    _warn_of_explicit_axes(module, given)
    for mesh_ in annotated_meshes(given):
        module = with_mesh(module, mesh_)
    return store_annotations(module, checked(given, module_meshes(module.root), mesh))


def annotated_meshes(annotations: Iterable[PortAnnotation]) -> list[Mesh]:
    """The meshes that come with annotations."""
    return list({core_mesh(value.mesh): None for _, _, value in annotations if is_named_sharding(value)})


def checked(
    annotations: Iterable[PortAnnotation], meshes: Mapping[str, Mesh], mesh: Mesh | None = None
) -> list[Checked]:
    """The annotations as valid shardings.

    Args:
        annotations: As for `annotate_ports`.
        meshes: The meshes of the module by name.
        mesh: The mesh of the specs; by default the only one.

    Raises:
        UsageError: There is no mesh, or several.
        InvalidShardingError: A sharding does not fit its tensor or mesh.
    """
    found = []
    for kind, tensor, value in annotations:
        try:
            found.append((kind, tensor, None if value is None else _sharding(value, tensor, meshes, mesh)))
        except ShardyError as error:
            raise error.located(
                f"annotating {tensor.name}: {error.doing}", f"{tensor.name}, {_shape(tensor)}"
            ) from error
    return found


def store_annotations(module: Module, annotations: Iterable[Checked]) -> Module:
    """A module with other shardings on some inputs and outputs, which are already checked."""
    root = module.copy_root()
    main = main_function(root)
    for kind, tensor, sharding in annotations:
        store_annotation(main, kind, tensor.index, sharding)
    return module.with_root(root)


def _warn_of_explicit_axes(module: Module, annotations: Iterable[tuple[str, InterfaceTensor, Any]]) -> None:
    """Warn if JAX has already decided all shardings along explicit axes, so that new ones have little effect."""
    axes = getattr(module.origin, "explicit_axes", ())
    if axes and any(value is not None for _, _, value in annotations):
        warn(
            f"JAX has already sharded all values of the function along its explicit axes {', '.join(axes)}. These "
            "annotations change only inputs and outputs. To let propagation use the axes, load the function with "
            "mesh={'axis': size} or axis_types=(jax.sharding.AxisType.Auto, ...)",
            stacklevel=_user_level(),
        )


def _user_level() -> int:
    """How far up the stack the user's own code calls, for `warn` in the calling function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _shape(tensor: InterfaceTensor) -> str:
    return f"{tensor.element}[{', '.join(map(str, tensor.shape))}]"


def store_annotation(main: Op, kind: str, index: int, sharding: TensorSharding | None) -> None:
    """Set or remove the sharding of an argument ("arg_attrs") or result ("res_attrs") of a function."""
    block = main.region.blocks[0]
    count = len(block.args) if kind == "arg_attrs" else len(return_op(main).operands)
    entries = list(main.attrs.get(kind) or (NO_ATTRS,) * count)
    if sharding is None:
        entries[index] = entries[index].without(SHARDING)
    else:
        entries[index] = entries[index].with_value(SHARDING, sharding)
    main.set_attr(kind, tuple(entries))


# Meshes


def core_mesh(mesh: Any) -> Mesh:
    """The mesh of pyshardy for a mesh of JAX, for axes with sizes, or for text like "data=4,model=2".

    Raises:
        UsageError: The argument is not a mesh.

    >>> core_mesh({"data": 4, "model": 2})
    Mesh([('data', 4), ('model', 2)])
    """
    if isinstance(mesh, Mesh):
        return mesh
    if isinstance(mesh, str):
        return Mesh(read_axes(mesh) or ())
    if isinstance(mesh, Mapping) or is_jax_mesh(mesh):
        return Mesh(mesh_axes(mesh))
    needed = "axes with sizes, like {'data': 4, 'model': 2}, or a mesh of JAX or pyshardy"
    raise UsageError("reading a mesh", got=named_type(mesh), needed=needed)


def with_mesh(module: Module, mesh: Mesh) -> Module:
    """The module with a mesh, which is added if it is missing."""
    if not mesh.axes or mesh in module_meshes(module.root).values():
        return module
    root = module.copy_root()
    last = next((op for op in reversed(list(root.region.block)) if op.name == "sdy.mesh"), None)
    op = Op("sdy.mesh", attrs={"sym_name": "mesh", "mesh": mesh}, location=root.location)
    if last is None:
        root.region.block.prepend(op)
    else:
        op.insert_after(last)
    SymbolTable(root, op).insert(op)
    return module.with_root(root)


def _mesh_for_specs(meshes: Mapping[str, Mesh], mesh: Mesh | None) -> str:
    names = [name for name, known in meshes.items() if (known == mesh if mesh is not None else known.axes)]
    if names and (mesh is not None or len({meshes[name] for name in names}) == 1):
        return names[0]
    got = "a module without a mesh" if not names else f"the meshes {', '.join(map(format_symbol, names))}"
    raise UsageError(
        "finding the mesh of a PartitionSpec", got=got, needed="one mesh", hint="say which, as mesh= or --mesh"
    )


# Shardings


def _sharding(value: Any, tensor: InterfaceTensor, meshes: Mapping[str, Mesh], mesh: Mesh | None) -> TensorSharding:
    """The sharding of an input or output, checked."""
    if isinstance(value, str):
        value = _parsed(value, meshes, mesh)
    if isinstance(value, TensorSharding):
        sharding = value
    else:
        name = _mesh_for_specs(meshes, core_mesh(value.mesh) if is_named_sharding(value) else mesh)
        sharding = as_spec(value).sharding(name, len(tensor.shape))
    found = mesh_of(sharding, meshes)
    if all(found.has_axis(axis.name) for axis in sharding.all_axes()):
        sharding = sharding.with_replicated(sort_axes(sharding.replicated, found))
        sharding = sharding.with_unreduced(sort_axes(sharding.unreduced, found))
    check_sharding(sharding, found, len(tensor.shape))
    return sharding


def _parsed(text: str, meshes: Mapping[str, Mesh], mesh: Mesh | None) -> PartitionSpec | TensorSharding:
    stripped = text.strip()
    if stripped.startswith(("<", "#")):
        return parse_sharding(stripped)
    if stripped.startswith("["):
        return parse_sharding(f"<{format_symbol(_mesh_for_specs(meshes, mesh))}, {stripped}>")
    return parse_spec(text)


def as_spec(value: Any) -> PartitionSpec:
    """The spec of pyshardy for a `PartitionSpec` or `NamedSharding` of JAX.

    Raises:
        UsageError: The argument is not a spec.
        InvalidShardingError: Shardy cannot express the spec.
    """
    if isinstance(value, PartitionSpec):
        return value
    spec = value.spec if is_named_sharding(value) else value
    if not is_partition_spec(spec):
        needed = "a PartitionSpec, a NamedSharding, a TensorSharding, text, or None"
        raise UsageError("reading a sharding", got=named_type(value), needed=needed)
    doing = "reading a PartitionSpec"
    if spec.reduced:
        got = f"{spec}, reduced along {', '.join(sorted(spec.reduced))}"
        raise InvalidShardingError(doing, got=got, needed="one without reduced axes")
    unreduced, kind = spec_unreduced(spec)
    if unreduced and kind.lower() != "sum":
        got = f"{spec}, unreduced by {kind.lower()}"
        raise InvalidShardingError(doing, got=got, needed="partial sums, or a TensorSharding")
    entries = [(*axes, *([OPEN] if is_open else [])) for axes, is_open in parsed_spec(spec, doing)]
    return PartitionSpec(*(entry or None for entry in entries), unreduced=unreduced)
