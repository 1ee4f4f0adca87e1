"""Modules whose shardings are in HLO's notation instead of the `sdy` dialect."""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.errors import UsageError
from pyshardy.ir.functions import FROM_HLO
from pyshardy.ir.hlo_attributes import is_annotated
from pyshardy.ir.module import Module
from pyshardy.passes.importing.import_hlo_shardings import read_axes

_MARKS = (b"mhlo.sharding", b"xla.sdy.", FROM_HLO.encode())
"""One of these is in every annotated module and in every one that was HLO, as text or as bytecode."""
PASSES: tuple[tuple[str, dict[str, str]], ...] = (
    ("pyshardy-flatten-tuples", {}),
    ("pyshardy-import-frontend-attributes", {}),
    ("pyshardy-import-hlo-shardings", {}),
    ("pyshardy-import-manual-computations", {}),
    ("pyshardy-import-spmd-regions", {}),
    ("pyshardy-import-custom-calls", {}),
    ("pyshardy-add-hlo-rules", {}),
    ("sdy-lift-inlined-meshes", {"use-single-device-mesh-names": "true"}),
)
"""What makes the annotations of HLO those of the dialect: passes with their options."""
Axes = Mapping[str, int] | str | None


def axes_text(mesh: Axes) -> str:
    """The axes of a mesh as an option has them.

    Raises:
        UsageError: They are no axes.

    >>> axes_text({"data": 4, "model": 2})
    'data=4,model=2'
    """
    if mesh is None:
        return ""
    text = mesh if isinstance(mesh, str) else ",".join(f"{name}={size}" for name, size in mesh.items())
    if not text:
        raise UsageError("reading the axes of a mesh", got="none", needed="axes with their sizes, like data=4,model=2")
    read_axes(text)
    return text


def may_be_annotated(content: bytes) -> bool:
    """Whether a module in text or bytecode might be annotated or have been HLO, found in no time."""
    return any(mark in content for mark in _MARKS)


def import_annotations(module: Module, mesh: Axes = None, needs_tilings: bool = True) -> Module:
    """The module with the annotations of HLO as those of the `sdy` dialect; as it is, if it was not HLO, without any.

    Args:
        module: The module.
        mesh: The axes that GSPMD's tilings are over; found without.
        needs_tilings: Whether a mesh for a module without tilings is refused.

    Raises:
        UsageError: Axes for a module that is not annotated, or that are none.
        PassError: An annotation that cannot be imported; names the op.
    """
    from pyshardy.passes.pipeline import run_passes
    from pyshardy.passes.pipelines import named_passes

    axes = axes_text(mesh)
    if FROM_HLO not in module.root.attrs and not is_annotated(module.root):
        if axes and needs_tilings:
            raise UsageError(
                f"laying a module on the mesh {axes}",
                got="a module without GSPMD's annotations",
                needed="mhlo.sharding with tilings, such as {devices=[4,2]<=[8]}",
            )
        return module
    passes = []
    for name, options in PASSES:
        passes += named_passes(name, {"mesh": axes} if axes and name == "pyshardy-import-hlo-shardings" else options)
    return run_passes(module, passes)
