"""Loads modules from files, dumps, bytes and text, and imports their annotations into the `sdy` dialect."""

from __future__ import annotations

from pathlib import Path

from pyshardy.core.text import STANDARD_INPUT
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.frontend.annotated import MeshArgument, import_annotations, may_be_annotated, mesh_text
from pyshardy.frontend.from_text import read_bytes, read_text_or_bytecode
from pyshardy.ir.module import Module


def load_path(
    source: str | Path,
    *,
    module: str | None = None,
    mesh: MeshArgument = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
    needs_tilings: bool = True,
) -> Module:
    """The module in a file, in a directory that XLA dumped to, or from standard input for `-`.

    Args:
        source: The file or directory; a directory may be followed by `::` and the name of a module.
        module: The name of the module in a directory.
        mesh: Names and sizes of the mesh axes of GSPMD's tilings; by default they are derived.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
        isolate: Whether to read it in a separate process, because its bytes may crash the reader.
        needs_tilings: Whether a mesh for a module without tilings is refused.

    Raises:
        UsageError: There is no such file or module, there are several modules, or `mesh` is wrong.
        InvalidModuleError: It is empty, or not a valid module.
        PassError: An annotation cannot be imported.
    """
    from pyshardy.frontend.from_dump import is_dump, load_dump

    if is_dump(source):
        return import_annotations(load_dump(source, module, allow_unregistered_dialects, isolate), mesh, needs_tilings)
    if module is not None:
        needed = "a directory that XLA dumped to"
        raise UsageError(f"reading module {module} of {source}", got="no directory", needed=needed)
    return load_content(read_bytes(str(source)), str(source), mesh, allow_unregistered_dialects, isolate, needs_tilings)


def load_content(
    content: bytes,
    name: str = STANDARD_INPUT,
    mesh: MeshArgument = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
    needs_tilings: bool = True,
) -> Module:
    """The module in the content of a file; parameters as for `load_path`, and `name` for messages."""
    mesh_text(mesh)
    if not content.strip():
        needed = "StableHLO as text or bytecode, HLO, or what jax.export writes"
        raise InvalidModuleError("reading a module", where=name, got="nothing: it is empty", needed=needed)
    found, source = read_text_or_bytecode(content, name, allow_unregistered_dialects, isolate)
    is_tiled = mesh is not None or may_be_annotated(source)
    return import_annotations(found, mesh, needs_tilings) if is_tiled else found
