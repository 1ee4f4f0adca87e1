"""The lock of a partitioned program, with the lines that it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from jaxlib import version as jaxlib_version

from pyshardy import __version__
from pyshardy.compilers.target import NO_COMPILER
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_shape, quote
from pyshardy.costing.peak import Peak
from pyshardy.costing.traffic import CollectiveRow
from pyshardy.explain.names import around, short_label
from pyshardy.explain.subject import Label
from pyshardy.ir.functions import functions, is_donated, main_function
from pyshardy.ir.locations import source_frames
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.run_counts import counted_ops, run_counts
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.traffic import TrafficReader, is_collective
from pyshardy.report.budgets import Budgets
from pyshardy.report.collective_table import along, cause_cell
from pyshardy.report.lock import (
    LOCK_VERSION,
    Lock,
    LockedCollective,
    LockedConstraint,
    LockedMemory,
    LockedMesh,
    LockedReplication,
    LockedTensor,
    LockedTypes,
    folded,
)
from pyshardy.report.specs import Notation, format_axis, format_sharding
from pyshardy.report.summary import TensorRow
from pyshardy.results.explained import label_of
from pyshardy.results.partition import Partition
from pyshardy.source.cells import file_name
from pyshardy.source.constraining import is_in_helper
from pyshardy.source.places import format_place, is_library

_PLAIN = re.compile(r"u?i(?:1|32|64)|index|!.*")
"""The element types that every program computes: booleans and plain integers."""
_UNTYPED = ("stablehlo.constant", "sdy.constant", "func.call")
"""Ops that compute nothing."""
_CONSTRAINT = "sdy.sharding_constraint"
_LONG_ORDER = 32
"""The number of devices up to which their order is listed."""


class LockedCollectiveRow(NamedTuple):
    """A collective with its row for one layer."""

    locked: LockedCollective
    row: CollectiveRow


@dataclass(frozen=True)
class Locked:
    """A partitioned program with its lock.

    Attributes:
        partition: The program.
        peak: The estimated memory of a device.
        chip: The chip that it is estimated for.
        budgets: The budgets.
    """

    partition: Partition
    peak: Peak
    chip: str
    budgets: Budgets = Budgets()

    @cached_property
    def lock(self) -> Lock:
        """The lock of the program."""
        part = self.partition
        summary = part.propagated.summary
        main = main_function(part.before.root)
        donated = [is_donated(main, tensor.index) for tensor in part.propagated.inputs]
        inputs = [_tensor(row, is_one) for row, is_one in zip(summary.inputs, donated)]
        return Lock(
            version=LOCK_VERSION,
            program=part.title,
            pyshardy=__version__,
            jaxlib=jaxlib_version.__version__,
            compiler=part.propagate_options.compiler or NO_COMPILER,
            compiled_by="" if part.answer is None else str(part.answer),
            chip=self.chip,
            input_bytes=sum(row.bytes_per_device for row in summary.inputs),
            output_bytes=sum(row.bytes_per_device for row in summary.outputs),
            sent_bytes=part.traffic.sent_bytes_per_device,
            peak_bytes=self.peak.bytes,
            memory=tuple(LockedMemory(what, size) for what, size in sorted(self.peak.categories)),
            meshes=tuple(_mesh(name, mesh) for name, mesh in summary.meshes),
            constraints=folded(_counted(row for row, _ in self.constraints)),
            inputs=folded(inputs),
            outputs=folded(_tensor(row) for row in summary.outputs),
            types=folded(LockedTypes(where, ", ".join(sorted(found))) for where, found in self.types.items()),
            collectives=folded(_counted(sent.locked for sent in self.sent)),
            replications=folded(_counted(row for row, _ in self.replications)),
            budgets=self.budgets,
        )

    @cached_property
    def labels(self) -> tuple[tuple[Op, Label], ...]:
        """The ops of the given program with their labels."""
        root, name = self.partition.before.root, self.partition.before.name
        known: dict[tuple[str, object], Label] = {}
        found = []
        for op in (op for function in functions(root) for op in ops_in(function)):
            key = op.name, op.location
            if key not in known:
                known[key] = label_of(op.name, op.location, name)
            found.append((op, known[key]))
        return tuple(found)

    @cached_property
    def constraints(self) -> tuple[tuple[LockedConstraint, str], ...]:
        """The constraints with their lines."""
        found = []
        for op, label in self.labels:
            if op.name == _CONSTRAINT:
                type, sharding = op.results[0].type, format_sharding(get_sharding(op.results[0]))
                tensor = format_shape(type.shape or (), type.element)
                frames = source_frames(op.location, self.partition.before.name)
                own = (place for place in frames if not is_library(place[0]) and not is_in_helper(place))
                place = next(own, None)  # the call of a helper that constrains what it is given
                line = label_place(label) if place is None else format_place(place, only_name=True)
                found.append((LockedConstraint(self.where(label), tensor, sharding), line))
        return tuple(found)

    @cached_property
    def types(self) -> dict[str, dict[str, str]]:
        """The types that ops compute by scope, with the first op of each."""
        found: dict[str, dict[str, str]] = {}
        for op, label in self.labels:
            where = self.where(label)
            for result in op.results if (where or label.file) and op.name not in _UNTYPED else ():
                if result.type.shape is not None and not _PLAIN.fullmatch(result.type.element):
                    text = f"`{short_label(label)}`" + (f" at {label_place(label)}" if label.file is not None else "")
                    found.setdefault(where, {}).setdefault(result.type.element, text)
        return found

    @cached_property
    def sent(self) -> tuple[LockedCollectiveRow, ...]:
        """The collectives, in program order."""
        part = self.partition
        root, rows = part.module.root, part.traffic.collectives
        ops = counted_ops(root, run_counts(root, is_collective, TrafficReader(root, part.meshes).sent_bytes))
        is_one_mesh = len({row.mesh for row in rows if row.mesh is not None}) < 2
        return tuple(
            LockedCollectiveRow(
                _collective(row, self.where(label_of(op.name, op.location, part.before.name)), is_one_mesh), row
            )
            for op, row in zip(ops, rows, strict=True)
        )

    @cached_property
    def replications(self) -> tuple[tuple[LockedReplication, str], ...]:
        """The tensors that the compiler gathers whole, with the lines of what makes them."""
        found = []
        for one in self.partition.replications:
            before, after = ("?" if side is None else format_sharding(side) for side in (one.before, one.after))
            label = Label("", one.op, None, *(one.place or ()))
            what = one.name if one.place is None else f"the result of `{short_label(label)}`"
            where = "" if one.place is None else self.where(label)
            row = LockedReplication(what, where, format_shape(one.shape, one.dtype), before, after, one.bytes)
            found.append((row, label_place(label)))
        return tuple(found)

    def where(self, label: Label) -> str:
        """The scope of an op, or else its function or file; empty for a text that has none of these."""
        if label.file in (None, self.partition.before.name):
            return around(label._replace(function=None))
        return around(label) or file_name(label.file or "")


def label_place(label: Label) -> str:
    """The line of an op; empty if unknown."""
    return "" if label.file is None else format_place((label.file, label.line, label.column), only_name=True)


def _mesh(name: str, mesh: Mesh) -> LockedMesh:
    axes = ", ".join(f"{format_axis(quote(axis))}={size}" for axis, size in mesh.axes)
    order = "" if mesh.device_ids is None else ", ".join(map(str, mesh.device_ids))
    is_long = mesh.device_ids is not None and len(mesh.device_ids) > _LONG_ORDER
    return LockedMesh(name, axes, f"sha256 {sha256(order.encode()).hexdigest()[:16]}" if is_long else order)


def _tensor(row: TensorRow, donated: bool = False) -> LockedTensor:
    sharding = format_sharding(row.sharding, Notation.SPEC)
    tensor, is_given = format_shape(row.shape, row.dtype), row.given_by == "user"
    return LockedTensor(row.name, tensor, sharding, donated=donated, annotated=is_given)


def _collective(row: CollectiveRow, where: str, is_one_mesh: bool) -> LockedCollective:
    """The row of one collective."""
    before, after = (format_shape(shape, row.dtype) for shape in (row.shape_before, row.shape_after))
    return LockedCollective(
        kind=row.kind,
        along=along(row, is_one_mesh),
        where=where,
        because=cause_cell(row.cause).shown(1),
        tensor=before if before == after else f"{before} -> {after}",
        count=row.times,
        bytes=row.total_bytes,
        per_round=row.is_lower_bound,
        if_taken=not row.is_counted,
    )


def _counted(rows: Iterable[Any]) -> Iterator[Any]:
    """Equal rows as one, with the sums of their figures."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        figures = {name: 0 for name in ("count", "bytes") if hasattr(row, name)}
        found.setdefault(replace(row, **figures), []).append(row)
    for alike in found.values():
        names = [name for name in ("count", "bytes") if hasattr(alike[0], name)]
        yield replace(alike[0], **{name: sum(getattr(row, name) for row in alike) for name in names})
