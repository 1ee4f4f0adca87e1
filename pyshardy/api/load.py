"""`load`, `load_text` and `load_file`: programs from files, texts, and functions of JAX."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pyshardy.core.text import STANDARD_INPUT, named_type
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import core_mesh
from pyshardy.frontend.annotated import MeshArgument, import_annotations
from pyshardy.frontend.from_export import is_exported, is_lowered, is_traced
from pyshardy.frontend.from_text import BYTECODE_MAGIC
from pyshardy.frontend.load import load_content, load_path
from pyshardy.ir.module import Module
from pyshardy.ir.strings import utf8_bytes


def load(
    source: Any,
    *example_args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    allow_unregistered_dialects: bool = False,
    module: str | None = None,
    mesh: Any = None,
    isolate: bool = False,
    platform: str | None = None,
    **keywords: Any,
) -> Module:
    """Load a StableHLO module from a file, text, an MLIR module or a JAX function.

    Shardings in HLO's notation, as in dumps of XLA and in programs made for GSPMD, are imported into the `sdy` dialect.

    Args:
        source: A path (of StableHLO, of HLO, or of a `jax.export` file); a directory that XLA dumped to; StableHLO or
            HLO as text or bytes; an MLIR module of jaxlib; the result of `jax.jit(f).lower(...)`, `.trace(...)` or
            `jax.export.export(f)(...)`, serialized or not; or a function, jitted (by JAX, `nnx.jit` or
            `eqx.filter_jit`) or not.
        example_args: For a function, its arguments: arrays or `jax.ShapeDtypeStruct`s.
        in_shardings: For a function that is not jitted, the same as for `jax.jit`; specs refer to `mesh`.
            `pyshardy.PartitionSpec` and `TensorSharding` work too and can express more.
        out_shardings: The same for the results.
        allow_unregistered_dialects: Whether text and bytecode may hold ops of dialects that jaxlib does not know, in
            generic form. For an MLIR module, its context decides.
        module: For a directory with several modules, the name of one; the path may also give it, after `::`.
        mesh: For a function, its mesh: a mesh of JAX; or axes with sizes, such as `{"data": 32, "model": 16}`, or a
            `jax.sharding.AbstractMesh`, which need no devices. For any other program, the mesh axes of GSPMD tilings;
            by default pyshardy derives them.
        isolate: Whether to read files, text and bytes in a separate process, which takes half a second more. Use it for
            untrusted bytecode, which may crash MLIR's reader; the crash is then an `InvalidModuleError`.
        platform: For a function, the platform to lower it for: "cpu", "tpu", "cuda" or "rocm"; by default JAX's own.
        keywords: For a function: `static_argnums`, `donate_argnums`, `keep_unused` and the like go to `jax.jit`; the
            others are keyword arguments of the function.

    Raises:
        UsageError: The source is none of these, a file cannot be read, or there are arguments without a function.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    >>> load(text).text().startswith("module {")
    True
    """
    if isolate and not isinstance(source, (str, Path, bytes, bytearray, memoryview)):
        raise _unfit("isolate=True", source, "a path, text or bytes")
    if callable(source) and module is None and not is_traced(source):
        from pyshardy.frontend.from_jax import check_arguments, load_function

        check_arguments(source, example_args, keywords)
        return load_function(source, example_args, in_shardings, out_shardings, mesh, platform, keywords)
    if example_args or keywords or in_shardings is not None or out_shardings is not None:
        hint = "its function .apply" if hasattr(source, "apply") else None
        raise _unfit("arguments or shardings", source, "arguments and shardings only for a function", hint)
    if is_traced(source):
        from pyshardy.frontend.from_jax import load_traced

        return load_traced(source, mesh, platform)
    if platform is not None:
        raise _unfit(f"platform={platform!r}", source, "a platform only for a function that is not lowered yet")
    axes = _axes(mesh)
    if isinstance(source, Path) or (isinstance(source, str) and not _is_text(source)):
        allow = allow_unregistered_dialects
        return load_path(source, module=module, mesh=axes, allow_unregistered_dialects=allow, isolate=isolate)
    if module is not None:
        raise _unfit(f"module={module!r}", source, "a module name only for a directory that XLA dumped to")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return load_content(bytes(source), STANDARD_INPUT, axes, allow_unregistered_dialects, isolate)
    if isinstance(source, str):
        return load_content(utf8_bytes(source, "the text"), "the text", axes, allow_unregistered_dialects, isolate)
    return _load_object(source, axes)


def _unfit(given: str, source: Any, needed: str, hint: str | None = None) -> UsageError:
    """The error of `load` for an argument that does not suit the source."""
    return UsageError("loading a module", got=f"{given} for {named_type(source)}", needed=needed, hint=hint)


def _load_object(source: Any, mesh: MeshArgument) -> Module:
    """A module, an MLIR module, or an object that JAX makes of a function."""
    if isinstance(source, Module):
        return source if mesh is None else import_annotations(source, mesh)
    if is_exported(source) or is_lowered(source):
        from pyshardy.frontend import from_jax

        return from_jax.load_exported(source, mesh) if is_exported(source) else from_jax.load_lowered(source, mesh)
    if hasattr(source, "operation"):
        return load_content(_bytecode(source), "the module", mesh, source.context.allow_unregistered_dialects)
    raise UsageError(
        "loading a module",
        got=f"{named_type(source)}",
        needed="a path, StableHLO or HLO, an MLIR module, a lowered or exported JAX function, or a function",
    )


def _axes(mesh: Any) -> MeshArgument:
    """The names and sizes of the axes of a mesh of JAX or of pyshardy."""
    return mesh if mesh is None or isinstance(mesh, str) else dict(core_mesh(mesh).axes)


def _is_text(source: str) -> bool:
    return "\n" in source or "{" in source or source.startswith(BYTECODE_MAGIC.decode("latin1"))


def _bytecode(module: Any) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def load_text(
    text: str | bytes,
    *,
    mesh: Any = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
    name: str = "the text",
) -> Module:
    """Load the module in a text, even if the text looks like a path; `load` guesses what a string is.

    Args:
        text: StableHLO or HLO as text, or the content of any file that `load` reads, as bytes.
        mesh: As for `load`.
        allow_unregistered_dialects: As for `load`.
        isolate: As for `load`.
        name: The name of the text in messages.

    Raises:
        UsageError: The source is neither text nor bytes.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> load_text("module @empty {}").text()
    'module @empty {\\n}\\n'
    """
    if isinstance(text, str):
        text = utf8_bytes(text, name)
    elif not isinstance(text, (bytes, bytearray, memoryview)):
        raise UsageError("loading a module from text", got=named_type(text), needed="text or bytes")
    return load_content(bytes(text), name, _axes(mesh), allow_unregistered_dialects, isolate)


def load_file(
    path: str | PathLike[str],
    *,
    module: str | None = None,
    mesh: Any = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
) -> Module:
    """Load the module in a file, or in a directory that XLA dumped to; the arguments are those of `load`.

    Raises:
        UsageError: The argument is not a path, the file cannot be read, or the directory does not have the module.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> load_file("examples/mlp.mlir").name
    'examples/mlp.mlir'
    """
    if not isinstance(path, (str, PathLike)):
        raise UsageError("loading a module from a file", got=named_type(path), needed="a path")
    allow = allow_unregistered_dialects
    return load_path(fspath(path), module=module, mesh=_axes(mesh), allow_unregistered_dialects=allow, isolate=isolate)
