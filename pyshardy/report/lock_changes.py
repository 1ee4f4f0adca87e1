"""Compares locks: what was added, removed or changed, with layers that change alike in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from pyshardy.core.folding import fold_names
from pyshardy.core.text import format_bytes
from pyshardy.report.changes import Total
from pyshardy.report.lock import Lock, unfolded

MEMORY_SLACK = 0.01
"""The part by which the peak memory, an estimate, may differ and count as equal."""
CHANGE_KINDS = ("mesh", "constraint", "input", "output", "type", "collective", "replication")
"""The kinds of changes, what a user writes first."""
_ANNOTATED = " (annotated)"
_IN_SCOPES = ("constraint", "type", "collective", "replication")
_FIGURES = ("count_before", "count_after", "bytes_before", "bytes_after")


class Key(NamedTuple):
    """The name of a row of a lock.

    Attributes:
        kind: One of `CHANGE_KINDS`.
        name: The name that layers differ in: that of a tensor, or a scope.
        what: The rest of the name.
    """

    kind: str
    name: str
    what: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """The content of a row of a lock.

    Attributes:
        text: The content in words.
        number: How many there are.
        bytes: The bytes of all of them.
        note: What to say besides; entries that differ in it alone are equal.
    """

    text: str
    number: int = 1
    bytes: int = 0
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        times = f"×{self.number} " if self.number > 1 else ""
        return times + self.text + (f", {format_bytes(self.bytes)}" if self.bytes else "") + self.note


Side = dict[Key, list[Entry]]


@dataclass(frozen=True, slots=True)
class LockChange:
    """A row of a lock that the program does not have, or has otherwise.

    Attributes:
        kind: One of `CHANGE_KINDS`.
        name: A tensor, or a scope, function or file; a folded name for several layers.
        what: What it is, such as "all_gather along model, reshard of operand 1 of dot_general".
        before: What the lock says, one text per row; empty if it has no such row.
        after: What the program has.
        count_before: The number of tensors, constraints or runs of collectives in the lock.
        count_after: The number in the program.
        bytes_before: The bytes that a device sends for collectives in the lock.
        bytes_after: The bytes in the program.
        members: The names of single layers.
        places: The lines of the user's program that need what the program has.
        why: Sentences that explain what the program has.
        is_moved: Whether the program has the same in another scope; `before` and `after` name the scopes then.
    """

    kind: str
    name: str
    what: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    count_before: int = 0
    count_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    members: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    is_moved: bool = False

    @property
    def verb(self) -> str:
        """Whether it was added, removed or changed, or is the same in another scope."""
        if self.is_moved:
            return "moved"
        return "added" if not self.before else "removed" if not self.after else "changed"

    @property
    def keys(self) -> tuple[Key, ...]:
        """The names of its rows for single layers."""
        return tuple(Key(self.kind, name, self.what) for name in self.members)

    def to_json(self) -> dict[str, Any]:
        """The change as JSON-ready data."""
        data = {one.name: getattr(self, one.name) for one in fields(self)} | {"verb": self.verb}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}


def compare_locks(lock: Lock, found: Lock) -> tuple[LockChange, ...]:
    """What differs between a lock and that of a program, what a user writes first.

    Args:
        lock: The lock.
        found: That of the program.
    """
    if lock.covers == "inputs":
        lock, found = _inputs_alone(lock, found)
    changes = list(_changes(_side(lock), _side(found)))
    return tuple(sorted(_moved(list(_folded(changes))), key=_order))


def _order(change: LockChange) -> tuple[int, bool, int]:
    """Of one kind, what a user annotates comes first, and then what makes most difference."""
    is_inferred = not any(text.endswith(_ANNOTATED) for text in (*change.before, *change.after))
    return CHANGE_KINDS.index(change.kind), is_inferred, -abs(change.bytes_after - change.bytes_before)


def totals_of(lock: Lock, found: Lock) -> tuple[Total, ...]:
    """The bytes on one device, and the parts of the peak memory that differ; none for a lock of inputs alone."""
    names = {
        "inputs": "input_bytes",
        "outputs": "output_bytes",
        "sent in collectives": "sent_bytes",
        "peak memory (estimated)": "peak_bytes",
    }
    if lock.covers == "inputs":
        return ()
    totals = [Total(name, getattr(lock, size), getattr(found, size)) for name, size in names.items()]
    sides = [{row.what: row.bytes for row in side.memory} for side in (lock, found)]
    parts = [Total(f"  {what}", *(side.get(what, 0) for side in sides)) for what in sides[0] | sides[1]]
    return (*totals, *(part for part in parts if part.before != part.after))


def is_other_peak(lock: Lock, found: Lock) -> bool:
    """Whether the peak memory differs by more than an estimate may."""
    return lock.covers == "all" and abs(found.peak_bytes - lock.peak_bytes) > MEMORY_SLACK * lock.peak_bytes


def _side(lock: Lock) -> Side:
    """The rows of a lock by their names."""
    side: Side = {}
    kinds = {
        "mesh": lock.meshes,
        "constraint": unfolded(lock.constraints),
        "input": unfolded(lock.inputs),
        "output": unfolded(lock.outputs),
        "type": unfolded(lock.types),
        "collective": unfolded(lock.collectives),
        "replication": unfolded(lock.replications),
    }
    for kind, rows in kinds.items():
        for row in rows:
            for key, entry in locked_entries(kind, row):
                side.setdefault(key, []).append(entry)
    return side


def locked_entries(kind: str, row: Any) -> Iterator[tuple[Key, Entry]]:
    """The name and the content of a row of one layer."""
    if kind == "mesh":
        yield Key(kind, row.name), Entry(_mesh(row.axes, row.device_order))
    elif kind == "constraint":
        yield Key(kind, row.where), Entry(f"{row.tensor} {row.sharding}", row.count)
    elif kind in ("input", "output"):
        text = f"{row.tensor} {row.sharding}".strip() + ", donated" * row.donated
        yield Key(kind, row.name), Entry(text, note=_ANNOTATED * row.annotated)
    elif kind == "type":
        yield from ((Key(kind, row.where), Entry(name)) for name in row.types.split(", "))
    elif kind == "collective":
        text = row.tensor + ", per round" * row.per_round + ", if taken" * row.if_taken
        what = f"{row.kind} along {row.along}, {row.because}"
        yield Key(kind, row.where, what), Entry(text, row.count, row.bytes)
    else:
        text = f"{row.before} to {row.after}"
        yield Key(kind, row.where, f"{row.what}, {row.tensor}"), Entry(text, row.count, row.bytes)


def tensor_parts(text: str) -> tuple[str, str, bool]:
    """The tensor, the sharding, and whether it is donated, of the text of an input or output.

    >>> tensor_parts("f32[8, 4] P('x'), donated (annotated)")
    ('f32[8, 4]', "P('x')", True)
    """
    bare = text.removesuffix(_ANNOTATED)
    donated = bare.endswith(", donated")
    tensor, _, sharding = bare.removesuffix(", donated").partition("] ")
    return (f"{tensor}]", sharding, donated) if sharding else ("", tensor, donated)


def _mesh(axes: str, order: str) -> str:
    return axes + (f", device order {order}" if order else "")


def _inputs_alone(lock: Lock, found: Lock) -> tuple[Lock, Lock]:
    """Both programs, reduced to what a lock of inputs knows: axes with several devices, and inputs that match its
    names.

    A program has the name of the argument before a path. A lock of MaxText has no element types, and may lack shapes.
    """
    there = {row.name: row for row in unfolded(found.inputs)}
    before, after = [], []
    for row in unfolded(lock.inputs):
        ends = [name for name in there if name.endswith(row.name) and _is_argument(name.removesuffix(row.name))]
        name = ends[0] if len(ends) == 1 else row.name
        before.append(replace(row, name=name, donated=False))
        if name in there:
            tensor = there[name].tensor
            known = tensor[tensor.index("[") :] if row.tensor.startswith("[") else tensor if row.tensor else ""
            after.append(replace(there[name], tensor=known, donated=False))
    mesh = found.meshes[0].name if len(found.meshes) == 1 else ""
    one = replace(lock, inputs=tuple(before), meshes=tuple(replace(one, name=mesh or one.name) for one in lock.meshes))
    meshes = tuple(replace(one, axes=_without_ones(one.axes), device_order="") for one in found.meshes)
    return one, Lock(found.version, found.program, "", "", inputs=tuple(after), meshes=meshes)


def _without_ones(axes: str) -> str:
    """Axes without those of one device."""
    return ", ".join(axis for axis in axes.split(", ") if not axis.endswith("=1"))


def _is_argument(text: str) -> bool:
    return not text or text.isidentifier()


def _changes(before: Side, after: Side) -> Iterator[LockChange]:
    for key in {**before, **after}:
        left, right = Counter(before.get(key, ())), Counter(after.get(key, ()))
        gone, new = sorted((left - right).elements()), sorted((right - left).elements())
        if gone or new:
            yield LockChange(
                *key,
                before=tuple(map(str, gone)),
                after=tuple(map(str, new)),
                count_before=sum(one.number for one in gone),
                count_after=sum(one.number for one in new),
                bytes_before=sum(one.bytes for one in gone),
                bytes_after=sum(one.bytes for one in new),
                members=(key.name,),
            )


def _folded(changes: Sequence[LockChange]) -> Iterator[LockChange]:
    """The changes, with those of layers that change alike as one."""
    keys = [replace(change, name="", members=()) for change in changes]
    for name, members in fold_names((change.name, key) for change, key in zip(changes, keys)):
        first = changes[members[0]]
        numbers: dict[str, Any] = {name: len(members) * getattr(first, name) for name in _FIGURES}
        names = tuple(name for member in members for name in changes[member].members)
        yield replace(first, **numbers | {"name": name, "members": names})


def _moved(changes: Sequence[LockChange]) -> Iterator[LockChange]:
    """The changes; what is gone in one scope and new in another is one change, as when a scope is renamed."""
    new: dict[Hashable, list[LockChange]] = {}
    for change in changes:
        if not change.before and change.kind in _IN_SCOPES:
            new.setdefault((change.kind, change.what, change.after, len(change.members)), []).append(change)
    found, taken = [], set()
    for change in changes:
        there = new.get((change.kind, change.what, change.before, len(change.members)))
        if change.after or not there:
            found.append(change)
            continue
        other = there.pop(0)
        taken.add(other)
        found.append(
            replace(
                other,
                name="",
                what=", ".join(filter(None, (change.what, *change.before))),
                before=(change.name,),
                after=(other.name,),
                count_before=change.count_before,
                bytes_before=change.bytes_before,
                is_moved=True,
            )
        )
    yield from (change for change in found if change not in taken)
