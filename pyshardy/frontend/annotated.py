"""Modules whose shardings are in HLO's notation instead of the `sdy` dialect."""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.ir.functions import FROM_HLO
from pyshardy.ir.hlo_attributes import is_annotated
from pyshardy.ir.module import Module
from pyshardy.passes.importing.import_hlo_shardings import read_axes

_MARKS = (b"mhlo.sharding", b"xla.sdy.", FROM_HLO.encode())
"""Every annotated module, and every module that was HLO, contains one of these, as text or as bytecode."""
IMPORT_PASSES: tuple[tuple[str, dict[str, str]], ...] = (
    ("pyshardy-flatten-tuples", {}),
    ("pyshardy-import-frontend-attributes", {}),
    ("pyshardy-import-hlo-shardings", {}),
    ("pyshardy-import-manual-computations", {}),
    ("pyshardy-import-spmd-regions", {}),
    ("pyshardy-import-custom-calls", {}),
    ("pyshardy-add-hlo-rules", {}),
    ("sdy-lift-inlined-meshes", {"use-single-device-mesh-names": "true"}),
)
"""The passes, with their options, that import HLO's annotations into the dialect."""
MeshArgument = Mapping[str, int] | str | None


def mesh_text(mesh: MeshArgument) -> str:
    """The axes of a mesh as the text of an option.

    Raises:
        UsageError: The argument is not axes with sizes.

    >>> mesh_text({"data": 4, "model": 2})
    'data=4,model=2'
    """
    if mesh is None:
        return ""
    if not isinstance(mesh, (str, Mapping)):
        needed = "names with sizes, like {'data': 4}, or a text like data=4,model=2"
        raise UsageError("reading the axes of a mesh", got=named_type(mesh), needed=needed)
    text = mesh if isinstance(mesh, str) else ",".join(f"{name}={size}" for name, size in mesh.items())
    if not text:
        raise UsageError("reading the axes of a mesh", got="none", needed="axes with their sizes, like data=4,model=2")
    read_axes(text)
    return text


def may_be_annotated(content: bytes) -> bool:
    """Whether a module in text or bytecode might be annotated or have been HLO. This check is fast."""
    return any(mark in content for mark in _MARKS)


def import_annotations(module: Module, mesh: MeshArgument = None, needs_tilings: bool = True) -> Module:
    """The module with HLO's annotations imported into the `sdy` dialect; unchanged if it has none and was not HLO.

    Args:
        module: The module.
        mesh: The mesh axes of GSPMD's tilings; by default they are derived.
        needs_tilings: Whether a mesh for a module without tilings is refused.

    Raises:
        UsageError: The module is not annotated, but axes are given; or the axes are invalid.
        PassError: An annotation cannot be imported; the error names the op.
    """
    from pyshardy.passes.pipeline import run_passes
    from pyshardy.passes.pipelines import named_passes

    axes = mesh_text(mesh)
    if FROM_HLO not in module.root.attrs and not is_annotated(module.root):
        if axes and needs_tilings:
            has_mesh = any(op.name == "sdy.mesh" for op in module.root.region.block)
            hint = "load it without a mesh, and give the mesh where you annotate: module.annotate(..., mesh=...)"
            if has_mesh:
                hint = "leave the mesh out; pyshardy cost and search take other sizes for its axes"
            raise UsageError(
                f"applying the mesh {axes}",
                got="a module without GSPMD's annotations" + (", which has a mesh already" if has_mesh else ""),
                needed="mhlo.sharding with tilings, such as {devices=[4,2]<=[8]}",
                hint=hint,
            )
        return module
    passes = []
    for name, options in IMPORT_PASSES:
        passes += named_passes(name, {"mesh": axes} if axes and name == "pyshardy-import-hlo-shardings" else options)
    return run_passes(module, passes)
