"""The lock of a partitioned program, and what it leaves out: lines and reasons."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from jaxlib import version as jaxlib_version

from pyshardy import __version__
from pyshardy.compilers.target import NONE
from pyshardy.core.alike import general_text
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import quote
from pyshardy.costing.peak import Peak
from pyshardy.errors import ShardyError
from pyshardy.explain.cells import file_name
from pyshardy.explain.collective_causes import Cause, Matcher
from pyshardy.explain.collectives import story_of
from pyshardy.explain.explanation import AxisCame, DimensionStory
from pyshardy.explain.names import around, short_scope
from pyshardy.explain.subject import Label
from pyshardy.frontend.explained import label_of
from pyshardy.ir.functions import functions, is_donated, main_function
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
from pyshardy.report.lock_changes import LockChange, entries_of, tensor_parts
from pyshardy.report.places import format_place
from pyshardy.report.specs import REPLICATED, Notation, format_axis, format_sharding
from pyshardy.report.summary import TensorRow, format_shape
from pyshardy.report.traffic import CollectiveRow
from pyshardy.results.partition import Partition

_PLAIN = re.compile(r"u?i(?:1|32|64)|index|!.*")
"""The element types that every program computes: booleans and plain integers."""
_UNTYPED = ("stablehlo.constant", "sdy.constant", "func.call")
"""Ops that compute nothing."""
_CONSTRAINT = "sdy.sharding_constraint"
_MOST_EXPLAINED = 20
"""The number of changes of one kind to explain."""
_MOST_REASONS = 2
"""The number of different reasons to give for one change."""
_MOST_PLACES = 4
"""The number of lines to name for one change."""
_LONG_ORDER = 32
"""The number of devices up to which their order is listed."""


class _Sent(NamedTuple):
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
            compiler=part.propagate_options.compiler or NONE,
            compiled_by="" if part.answer is None else str(part.answer),
            chip=self.chip,
            input_bytes=sum(row.bytes_per_device for row in summary.inputs),
            output_bytes=sum(row.bytes_per_device for row in summary.outputs),
            sent_bytes=part.traffic.sent_bytes_per_device,
            peak_bytes=self.peak.bytes,
            memory=tuple(LockedMemory(what, size) for what, size in sorted(self.peak.categories)),
            meshes=tuple(_mesh(name, mesh) for name, mesh in summary.meshes),
            constraints=folded(_counted(row for row, _ in self._constraints)),
            inputs=folded(inputs),
            outputs=folded(_tensor(row) for row in summary.outputs),
            types=folded(LockedTypes(where, ", ".join(sorted(found))) for where, found in self._types.items()),
            collectives=folded(_counted(sent.locked for sent in self._sent)),
            replications=folded(_counted(self._replications)),
            budgets=self.budgets,
        )

    @cached_property
    def _labels(self) -> tuple[tuple[Op, Label], ...]:
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
    def _constraints(self) -> tuple[tuple[LockedConstraint, str], ...]:
        """The constraints with their lines."""
        found = []
        for op, label in self._labels:
            if op.name == _CONSTRAINT:
                type, sharding = op.results[0].type, format_sharding(get_sharding(op.results[0]))
                tensor = format_shape(type.shape or (), type.element)
                found.append((LockedConstraint(self._where(label), tensor, sharding), _place(label)))
        return tuple(found)

    @cached_property
    def _types(self) -> dict[str, dict[str, str]]:
        """The types that ops compute by scope, with the first op of each."""
        found: dict[str, dict[str, str]] = {}
        for op, label in self._labels:
            where = self._where(label)
            for result in op.results if (where or label.file) and op.name not in _UNTYPED else ():
                if result.type.shape is not None and not _PLAIN.fullmatch(result.type.element):
                    text = f"`{short_scope(label)}`" + (f" at {_place(label)}" if label.file is not None else "")
                    found.setdefault(where, {}).setdefault(result.type.element, text)
        return found

    @cached_property
    def _sent(self) -> tuple[_Sent, ...]:
        """The collectives, in program order."""
        part = self.partition
        root, rows = part.module.root, part.traffic.collectives
        ops = counted_ops(root, run_counts(root, is_collective, TrafficReader(root, part.meshes).sent_bytes))
        is_one_mesh = len({row.mesh for row in rows if row.mesh is not None}) < 2
        return tuple(
            _Sent(_collective(row, self._where(label_of(op.name, op.location, part.before.name)), is_one_mesh), row)
            for op, row in zip(ops, rows, strict=True)
        )

    @property
    def _replications(self) -> Iterator[LockedReplication]:
        for one in self.partition.replications:
            before, after = ("?" if side is None else format_sharding(side) for side in (one.before, one.after))
            label = Label("", one.op, None, *(one.place or ()))
            what = one.name if one.place is None else f"the result of `{short_scope(label)}`"
            where = "" if one.place is None else self._where(label)
            yield LockedReplication(what, where, format_shape(one.shape, one.dtype), before, after, one.bytes)

    def _where(self, label: Label) -> str:
        """The scope of an op, or else its function or file; empty for a text that has none of these."""
        if label.file in (None, self.partition.before.name):
            return around(label._replace(function=None))
        return around(label) or file_name(label.file or "")

    # Lines and reasons

    def explained(self, changes: Iterable[LockChange]) -> tuple[LockChange, ...]:
        """Changes with the lines that need what the program has, and sentences that explain it.

        Of inputs and outputs that change alike, the first is explained.
        """
        known: set[Hashable] = set()
        number: dict[str, int] = {}
        found = []
        for change in changes:
            alike = (change.before, change.after) if change.kind in ("input", "output") else change
            number[change.kind] = number.get(change.kind, 0) + 1
            is_wanted = change.after and alike not in known and number[change.kind] <= _MOST_EXPLAINED
            found.append(self._explained(change) if is_wanted else change)
            known.add(alike)
        return tuple(found)

    def _explained(self, change: LockChange) -> LockChange:
        if change.kind in ("input", "output"):
            return replace(change, why=tuple(self._why_of_tensor(change)))
        if change.kind == "constraint":
            at = [place for row, place in self._constraints if _is_of(change, "constraint", row)]
            return replace(change, places=_some(at))
        if change.kind == "type":
            at = [f"{found} by {self._types[change.members[0]][found]}" for found in change.after]
            return replace(change, why=tuple(at))
        if change.kind == "collective":
            return self._explained_collective(change)
        return change

    def _why_of_tensor(self, change: LockChange) -> Iterator[str]:
        if not change.before:
            return
        (_, before, was_donated), (_, after, is_donated) = map(tensor_parts, (change.before[0], change.after[0]))
        if was_donated and not is_donated:
            yield "its memory is no longer handed on to a result (donate_argnums of jax.jit)"
        if before == after:
            return
        try:
            story = self.partition.propagated.explain(change.members[0]).values[0]
        except ShardyError:  # which the result has under another name
            return
        kept = tuple(dim for dim in story.dims if _is_changed(dim.dim, before, after))
        for dim in kept or story.dims:
            yield from _told(dim)

    def _explained_collective(self, change: LockChange) -> LockChange:
        chosen = [number for number, sent in enumerate(self._sent) if _is_of(change, "collective", sent.locked)]
        at = _some(format_place(self._sent[number].row.place, only_name=True) for number in chosen)
        if change.before:  # the reason is an old one
            return replace(change, places=at)
        alike: dict[str, list[tuple[CollectiveRow, Cause]]] = {}
        for number in chosen:
            alike.setdefault(general_text(self._causes[number].reason), []).append(
                (self._sent[number].row, self._causes[number])
            )
        said = [story_of(self.partition.why, pairs).story.text.partition(": ")[2] for pairs in alike.values()]
        return replace(change, places=at, why=tuple(said[:_MOST_REASONS]))

    @cached_property
    def _causes(self) -> list[Cause]:
        """The causes of the collectives, in program order."""
        part = self.partition
        return Matcher(part.why, part.answer is not None).causes([sent.row for sent in self._sent])


def _told(dim: DimensionStory) -> Iterator[str]:
    """Why a dimension has the axes that it has, in a sentence for each; or why it has none."""
    head = f"dimension {dim.dim}"
    yield from (f"{head}: {_came(axis)}" for axis in dim.axes)
    if dim.dropped:
        yield f"{head}: {dim.dropped}"
    yield from (f"{head}: whole, {reason.text}" for reason in dim.reasons[:1])


def _came(axis: AxisCame) -> str:
    if not axis.steps:
        is_own = axis.kind in ("argument", "output", "annotation")
        return f"{axis.axis}, given {'by its own annotation' if is_own else axis.origin}"
    count = len(axis.steps)
    steps = "1 step" if count == 1 else f"{count} steps, the last"
    return f"{axis.axis}, given {axis.origin}, came in {steps} {axis.steps[-1].text}"


def _place(label: Label) -> str:
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


def _is_of(change: LockChange, kind: str, row: Any) -> bool:
    """Whether a row of the program is one of those that a change is about."""
    ((key, entry),) = entries_of(kind, row)
    return key in change.keys and any(entry.text in text for text in change.after)


def _some(places: Iterable[str]) -> tuple[str, ...]:
    """The first of some lines, and the number of the rest."""
    found = list(dict.fromkeys(filter(None, places)))
    more = len(found) - _MOST_PLACES
    return (*found[:_MOST_PLACES], *([f"{more} more"] if more > 0 else []))


def _is_changed(dim: int, before: str, after: str) -> bool:
    """Whether a dimension has other axes; also if that cannot be told."""
    sides = [_entries(text) for text in (before, after)]
    ones = [None if side is None else side[dim] if dim < len(side) else () for side in sides]
    return None in sides or ones[0] != ones[1]


def _entries(text: str) -> tuple[Any, ...] | None:
    """The entries of a `PartitionSpec` as text, each as a tuple of axes; None if it is none."""
    if text == REPLICATED:
        return ()
    if not (text.startswith("P(") and text.endswith(")")):
        return None
    try:
        found = ast.literal_eval(f"[{text[2:-1]}]")
    except (ValueError, SyntaxError):
        return None
    return tuple(() if one is None else one if isinstance(one, tuple) else (one,) for one in found)
