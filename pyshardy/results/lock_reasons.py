"""Lines and reasons for what a program has otherwise than its lock says."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pyshardy.core.alike import general_text
from pyshardy.costing.traffic import CollectiveRow
from pyshardy.errors import ShardyError
from pyshardy.explain.collective_causes import Cause, CauseFinder
from pyshardy.explain.collectives import story_of
from pyshardy.explain.explanation import AxisCame, DimensionStory
from pyshardy.explain.names import short_label
from pyshardy.report.lock_changes import LockChange, locked_entries, tensor_parts
from pyshardy.report.specs import REPLICATED
from pyshardy.results.locked import Locked, label_place
from pyshardy.source.places import format_place

_REMEDY = "the compiler cannot go from one to the other step by step; pyshardy explain --collectives tries constraints"
_MOST_EXPLAINED = 20
"""The number of changes of one kind to explain."""
_MOST_REASONS = 2
"""The number of different reasons to give for one change."""
_MOST_PLACES = 4
"""The number of lines to name for one change."""


def explained(locked: Locked, changes: Sequence[LockChange]) -> tuple[LockChange, ...]:
    """Changes with the lines that need what the program has, and sentences that explain it.

    Of inputs and outputs that change alike, the first is explained.

    Args:
        locked: The program.
        changes: What it has otherwise than its lock says.
    """
    reasons = _Reasons(locked, changes)
    known: set[Hashable] = set()
    number: Counter[str] = Counter()
    found = []
    for change in changes:
        alike = (change.before, change.after) if change.kind in ("input", "output") else change
        is_wanted = not change.is_moved and alike not in known and number[change.kind] < _MOST_EXPLAINED
        number[change.kind] += 1
        found.append(reasons.explained(change) if is_wanted else change)
        known.add(alike)
    return tuple(found)


class _Reasons:
    """Explains the changes of a program."""

    def __init__(self, locked: Locked, changes: Iterable[LockChange]) -> None:
        self.locked = locked
        self._is_other_size = any(
            change.kind == "mesh"
            or (change.kind == "input" and change.verb == "changed" and _shape(change.before) != _shape(change.after))
            for change in changes
        )

    def explained(self, change: LockChange) -> LockChange:
        """A change with its lines and reasons."""
        if change.kind == "collective":
            return self._collective(change) if change.after else self._gone(change)
        if not change.after:
            return change
        if change.kind in ("input", "output"):
            return replace(change, why=tuple(self._why_of_tensor(change)))
        if change.kind == "constraint":
            at = [place for row, place in self.locked.constraints if _is_of(change, "constraint", row)]
            return replace(change, places=_some(at))
        if change.kind == "type":
            ops = self.locked.types[change.members[0]]
            return replace(change, why=tuple(f"{found} by {ops[found]}" for found in change.after))
        at = [place for row, place in self.locked.replications if _is_of(change, "replication", row)]
        return replace(change, places=_some(at), why=(_REMEDY,)) if change.kind == "replication" else change

    def _why_of_tensor(self, change: LockChange) -> Iterator[str]:
        if not change.before:
            return
        (_, before, was_donated), (_, after, is_donated) = map(tensor_parts, (change.before[0], change.after[0]))
        if was_donated and not is_donated:
            yield "its memory is no longer handed on to a result (donate_argnums of jax.jit)"
        if before == after:
            return
        try:
            story = self.locked.partition.propagated.explain(change.members[0]).values[0]
        except ShardyError:  # which the result has under another name
            return
        kept = tuple(dim for dim in story.dims if _is_changed(dim.dim, before, after))
        for dim in kept or story.dims:
            yield from _told(dim)

    def _collective(self, change: LockChange) -> LockChange:
        sent = self.locked.sent
        chosen = [number for number, one in enumerate(sent) if _is_of(change, "collective", one.locked)]
        at = _some(format_place(sent[number].row.place, only_name=True) for number in chosen)
        is_more = change.bytes_after > change.bytes_before and not self._is_other_size
        if change.before and not is_more:  # the reason is an old one
            return replace(change, places=at)
        alike: dict[str, list[tuple[CollectiveRow, Cause]]] = {}
        for number in chosen:
            cause = self._causes[number]
            alike.setdefault(general_text(cause.reason), []).append((sent[number].row, cause))
        said = [story_of(self.locked.partition.why, pairs).said for pairs in alike.values()]
        return replace(change, places=at, why=tuple(said[:_MOST_REASONS]))

    def _gone(self, change: LockChange) -> LockChange:
        """A collective that is gone, with the lines of those ops that needed it and still exist."""
        name = change.what.rpartition(" ")[2]
        ops = [
            label_place(label)
            for op, label in self.locked.labels
            if name in (short_label(label), op.name.partition(".")[2]) and self.locked.where(label) in change.members
        ]
        places = ", ".join(_some(ops))
        return replace(change, why=(f"it was for `{name}`, which is at {places}",)) if places else change

    @cached_property
    def _causes(self) -> list[Cause]:
        """The causes of the collectives, in program order."""
        part = self.locked.partition
        return CauseFinder(part.why, part.answer is not None).causes([sent.row for sent in self.locked.sent])


def _shape(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(tensor_parts(text)[0] for text in texts)


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


def _is_of(change: LockChange, kind: str, row: Any) -> bool:
    """Whether a row of the program is one of those that a change is about."""
    ((key, entry),) = locked_entries(kind, row)
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
