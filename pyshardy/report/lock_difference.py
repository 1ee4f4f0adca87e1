"""What differs between a lock and a program, as plain data and as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from pyshardy.report.changes import Total
from pyshardy.report.difference import totals_table
from pyshardy.report.layout import paragraph
from pyshardy.report.lock import Lock
from pyshardy.report.lock_changes import CHANGE_KINDS, LockChange
from pyshardy.report.printing import Page, Printable

CHECK_VERSION = 1
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""
_HEADINGS = {
    "mesh": "mesh",
    "constraint": "sharding constraints",
    "input": "inputs",
    "output": "outputs",
    "type": "types that ops compute",
    "collective": "collectives",
    "replication": "tensors gathered whole",
}
_NOUNS = {
    "type": ("types of ops in {}", "scope"), "replication": ("{} gathered whole", "tensor"), "mesh": ("the mesh", ""),
}  # fmt: skip
"""What the kinds of changes that are not called by their name are called, around how many of what there are."""
_MOST_ROWS = 6
"""The number of names that change alike, and of rows of one name, to show by default."""
_MOST_BLOCKS = 12
"""The number of different changes of one kind to show by default."""


@dataclass(frozen=True, slots=True)
class LockDifference(Printable):
    """The comparison of a program with a lock. It is true if they are equal and no budget is broken.

    Attributes:
        name: The program.
        lock_name: The lock.
        lock: The lock.
        found: The lock that the program would have.
        changes: What differs, what a user writes first.
        totals: The bytes on one device.
        other_peak: Whether the peak memory differs by more than an estimate may.
        broken: A sentence for every broken budget.
        notes: What else to know, such as other versions.
    """

    name: str
    lock_name: str
    lock: Lock
    found: Lock
    changes: tuple[LockChange, ...] = ()
    totals: tuple[Total, ...] = ()
    other_peak: bool = False
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the program differs from the lock."""
        return bool(self.changes) or self.other_peak

    def __bool__(self) -> bool:
        return not self.differs and not self.broken

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON-ready data."""
        return {
            "version": CHECK_VERSION,
            "program": self.name,
            "lock": self.lock_name,
            "equal": not self.differs,
            "changes": [change.to_json() for change in self.changes],
            "totals": [total.to_json() for total in self.totals],
            "broken_budgets": list(self.broken),
            "notes": list(self.notes),
            "said_by": {"lock": _said_by(self.lock), "program": _said_by(self.found)},
        }

    @property
    def verdict(self) -> str:
        """The comparison in one line."""
        if not self.differs:
            over = f", but {_counted(len(self.broken), 'budget')} {'is' if len(self.broken) == 1 else 'are'} broken"
            return f"{self.name} is sharded as {self.lock_name} says" + over * bool(self.broken)
        counts = Counter(change.kind for change in self.changes)
        nouns = [(counts[kind], *_NOUNS.get(kind, ("{}", kind))) for kind in CHANGE_KINDS if counts[kind]]
        kinds = [text.format(_counted(count, noun)) for count, text, noun in nouns]
        what = ", ".join(kinds + ["the peak memory"] * self.other_peak)
        over = f"; {_counted(len(self.broken), 'broken budget')}" if self.broken else ""
        return f"{self.name} differs from {self.lock_name}: {what}{over}"

    def tables(self, unfold: bool = False) -> Page:
        """The comparison as a diff, for a `rich` console.

        Args:
            unfold: Whether to show every row of a name.
        """
        return Page(lambda width: list(self._lines(width, unfold)))

    def _lines(self, width: int, unfold: bool) -> Iterator[Text]:
        yield from paragraph(self.verdict, width, style="bold")
        for sentence in self.broken:
            yield from _lines("! ", sentence, width, "bold red")
        for note in self.notes if not self else ():
            yield from _lines("  ", note, width, "dim")
        for kind in CHANGE_KINDS:
            blocks = _blocks([change for change in self.changes if change.kind == kind])
            most = len(blocks) if unfold or len(blocks) == _MOST_BLOCKS + 1 else _MOST_BLOCKS
            if blocks:
                yield Text()
                yield Text(_HEADINGS[kind], style="bold")
            for block in blocks[:most]:
                yield from _block_lines(block, width, unfold)
            if len(blocks) > most:
                yield from _lines("  ", f"and {len(blocks) - most} more: --all shows them", width, "dim")
        if any(total.before != total.after for total in self.totals):
            yield Text()
            for line in totals_table(self.totals).lines(width - 2):
                yield Text("  ") + line

    def __repr__(self) -> str:
        return f"<LockDifference: {self.verdict}>"


def _said_by(lock: Lock) -> dict[str, str]:
    return {name: getattr(lock, name) for name in ("pyshardy", "jaxlib", "compiler", "compiled_by", "chip")}


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _blocks(changes: Sequence[LockChange]) -> list[list[LockChange]]:
    """Changes of one kind, with inputs or outputs that change alike together."""
    found: dict[Hashable, list[LockChange]] = {}
    for change in changes:
        key = (change.before, change.after) if change.kind in ("input", "output") else change
        found.setdefault(key, []).append(change)
    return list(found.values())


def _block_lines(block: Sequence[LockChange], width: int, unfold: bool) -> Iterator[Text]:
    """What changes, as the lock has it, as the program has it, and why."""
    first = block[0]
    most = _most(len(block), unfold)
    for change in block[:most]:
        count = f" (×{len(change.members)})" if len(change.members) > 1 else ""
        inside = f"in {change.name}" if change.what and change.name else change.name
        title = ", ".join(filter(None, (change.what, inside))) or "the program"
        yield from _lines("  ", title + count, width)
    if len(block) > most:
        yield from _lines("  ", f"and {len(block) - most} more", width, "dim")
    for sign, entries, style in (("-   ", first.before, "red"), ("+   ", first.after, "green")):
        most = _most(len(entries), unfold)
        for entry in entries[:most]:
            yield from _lines(sign, entry, width, style)
        if len(entries) > most:
            yield from _lines("    ", f"and {len(entries) - most} more", width, "dim")
    if first.places:
        yield from _lines("      ", f"at {', '.join(first.places)}", width)
    for sentence in first.why:
        yield from _lines("      ", sentence, width, "dim")


def _most(count: int, unfold: bool) -> int:
    """How many of some rows to show; a message in the place of one row would be as long."""
    return count if unfold or count == _MOST_ROWS + 1 else _MOST_ROWS


def _lines(head: str, text: str, width: int, style: str = "") -> Iterator[Text]:
    """A text behind a head, in lines of which only the first has the sign."""
    for number, line in enumerate(paragraph(text, max(1, width - len(head)), style)):
        yield Text(head if number == 0 else " " * len(head), style=style) + line
