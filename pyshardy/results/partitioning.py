"""Runs the passes that make the program of one device, on nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyshardy.core.mesh import Mesh
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import Hook, run_on_root
from pyshardy.results.completed_sums import leave_sums_to_passes


def partition_in_place(
    module: Module,
    root: Op,
    meshes: Mapping[str, Mesh],
    ending: Sequence[Pass],
    diagnostics: Diagnostics | None = None,
    after_pass: Hook | None = None,
) -> None:
    """Partition nodes with final shardings.

    Args:
        module: The module that the nodes come from.
        root: The nodes.
        meshes: The meshes in use.
        ending: The passes, from `partition_ending`.
        diagnostics: Where warnings go.
        after_pass: Called after every pass.

    Raises:
        PassError: The program cannot be partitioned; the error names the op.
    """
    _put_first(root, meshes)
    leave_sums_to_passes(root)
    if getattr(module.origin, "inspections", None):
        from pyshardy.runtime.inspections import drop_answered

        drop_answered(root, module.origin)
    run_on_root(module, root, [*_user_partitioners(module), *ending], diagnostics, after_pass)


def _user_partitioners(module: Module) -> Iterator[Pass]:
    """The pass that calls the user's partitioners, if the program comes with any."""
    if getattr(module.origin, "partitioners", None):
        from pyshardy.runtime.user_partitioners import ExpandUserPartitioners

        yield ExpandUserPartitioners(module)


def _put_first(root: Op, meshes: Mapping[str, Mesh]) -> None:
    """Put first the meshes that shardings are on; a mesh that none is on may have other devices.

    `sdy-resolve-single-device-sharding` gathers on the first mesh with axes, as the reference does.
    """
    for op in reversed([op for op in root.region.block if op.name == "sdy.mesh" and op.attrs["sym_name"] in meshes]):
        root.region.block.prepend(op.detach())
