"""Reading the collectives of a per-device program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from pyshardy.core.axes import Axes, AxisRef, axes_size
from pyshardy.core.devices import axes_moved, axes_of_groups
from pyshardy.core.mesh import Mesh
from pyshardy.ir.causes import cause_of, scope_of
from pyshardy.ir.diagnostics import source_position
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.functions import calls, functions, main_function
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.symbols import post_order
from pyshardy.report.traffic import CollectiveRow
from pyshardy.reshard.collectives import CollectiveKind, sent_by_device

_KINDS = {f"stablehlo.{kind.value}": kind for kind in CollectiveKind}
_MESH_AXIS = re.compile(r'axis_ref<name = "((?:[^"\\]|\\.)*)"(?:, sub_axis_info = \((\d+)\)(\d+))?>')


def collectives_of(root: Op, mesh: Mesh | None, name: str = "-") -> list[CollectiveRow]:
    """The collectives of a per-device program, as far as the main function reaches, in program order.

    Args:
        root: The module.
        mesh: The mesh over all its devices; None if it has none.
        name: What to call the text that the program was read from, which MLIR knows as "-".
    """
    times = _calls(root)
    return [
        _row(op, mesh or Mesh([]), times[function.attrs["sym_name"]], name)
        for function in functions(root)
        if function.attrs["sym_name"] in times
        for op in walk(function)
        if op.name in _KINDS
    ]


def _calls(root: Op) -> dict[str, tuple[int, bool]]:
    """How often every function runs, and whether in a loop: those that run at all, callers first."""
    times: dict[str, tuple[int, bool]] = {main_function(root).attrs["sym_name"]: (1, False)}
    for caller in reversed(post_order(root)):
        count, is_in_loop = times.get(caller.attrs["sym_name"], (0, False))
        for call in calls(caller) if count else ():
            before, was_in_loop = times.get(call.attrs["callee"], (0, False))
            times[call.attrs["callee"]] = before + count, was_in_loop or is_in_loop or _is_in_loop(call)
    return times


def _is_in_loop(op: Op) -> bool:
    return op.enclosing("stablehlo.while") is not None


def _row(op: Op, mesh: Mesh, times: tuple[int, bool], name: str) -> CollectiveRow:
    count, is_in_loop = times
    kind = _KINDS[op.name]
    axes, group_size = _groups(op, mesh)
    sent = [sent_by_device(kind, _bytes(a), _bytes(b), group_size) for a, b in zip(op.operands, op.results)]
    before, after = op.operands[0].type, op.results[0].type
    return CollectiveRow(
        kind=kind.value,
        axes=None if axes is None else tuple(map(str, axes)),
        group_size=group_size,
        dtype=before.element,
        shape_before=before.shape or (),
        shape_after=after.shape or (),
        sent_bytes_per_device=sum(sent),
        times=count,
        is_in_loop=is_in_loop or _is_in_loop(op),
        op=scope_of(op.location),
        cause=cause_of(op.location),
        source=_source(op, name),
    )


def _source(op: Op, name: str) -> tuple[str, int, int] | None:
    position = source_position(op.location)
    return (name, *position[1:]) if position is not None and position[0] == "-" else position


def _bytes(value: Value) -> int:
    type = value.type
    return tensor_bytes(type.shape, type.element) if type.is_static and type.shape is not None else 0


def _groups(op: Op, mesh: Mesh) -> tuple[Axes | None, int]:
    """The axes along which devices work together, and how many do."""
    pairs = op.shared_attrs.get("source_target_pairs")
    if pairs is not None:
        return axes_moved([(source, target) for source, target in _rows(pairs)], mesh), 2
    groups = op.attrs["replica_groups"]
    if not isinstance(groups, ir.DenseElementsAttr):
        axes = tuple(mesh_axes(str(groups)))
        return axes, axes_size(axes, mesh)
    rows = _rows(groups)
    return axes_of_groups(rows, mesh), max(map(len, rows), default=1)


def _rows(attr: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in np.array(ir.DenseIntElementsAttr(attr)))


def mesh_axes(text: str) -> Iterator[AxisRef]:
    """The axes in the text of groups along axes of a mesh.

    >>> text = '#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>'
    >>> list(mesh_axes(text))
    [AxisRef('y')]
    """
    for name, pre_size, size in _MESH_AXIS.findall(text):
        yield AxisRef(name, int(pre_size), int(size)) if size else AxisRef(name)
