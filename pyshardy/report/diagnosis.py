"""What makes a program slower or larger than it need be: findings, each with its cause and a cure, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from rich.text import Text

from pyshardy.core.text import counted, format_bytes
from pyshardy.report.cost import format_duration
from pyshardy.report.layout import paragraph
from pyshardy.report.patch import changed_places, merged_patches
from pyshardy.report.printing import Page, Printable
from pyshardy.source.places import SourcePlace

_SCREEN = 23
"""The lines of a screen of 24, but for the one that says which findings are not in the patch."""


_HAS_LINE = re.compile(r"\.py:\d")


class _Room(NamedTuple):
    """How much of a screen a finding may take.

    Attributes:
        cause: The most lines of its cause.
        what: The most lines of what is lost.
        cure: The most lines of what to write.
        apart: Whether an empty line stands before it.
    """

    cause: int
    what: int = _SCREEN
    cure: int = _SCREEN
    apart: bool = True


_ROOMS = (
    _Room(4), _Room(3), _Room(2), _Room(1), _Room(1, apart=False),
    _Room(1, 2, apart=False), _Room(0, 2, apart=False), _Room(0, 2, 3, apart=False), _Room(0, 2, 2, apart=False),
)  # fmt: skip
"""The first in which all findings fit on a screen is taken. What to write is cut last; in the last room three fit."""


class FindingKind(StrEnum):
    """What is wrong."""

    CONSTRAINT = "constraint"
    """A constraint of the program costs more than it saves."""
    RULE = "rule"
    """A logical axis rule gives a name of dimensions no axis, or one that costs more than another."""
    LOST_AXIS = "lost axis"
    """A value lost an axis on the way that others have."""
    LAYOUT = "layout"
    """An intermediate value is better off with other axes than propagation gives it."""
    CONFLICT = "conflict"
    """Two annotations clash, and devices communicate because of that."""
    DONATION = "donation"
    """Results could take the place of arguments, and do not."""
    STATE = "whole state"
    """A weight, its optimizer state or a cache is whole along an axis that splits others."""
    OTHER_OUTPUT = "other output"
    """An output is sharded otherwise than the input that it replaces in the next step."""
    REPLICATION = "replication"
    """The compiler gathers a tensor whole on every device."""
    KERNEL = "kernel"
    """An op without a sharding rule makes its operands whole."""
    UNEVEN = "uneven"
    """An axis does not divide a dimension, which stays whole."""
    PRECISION = "precision"
    """Inputs are kept more exactly than anything reads them."""
    MEMORY = "memory"
    """The program does not fit, and no annotation mends that."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The cost of a step.

    Attributes:
        seconds: Its time.
        bytes: The peak memory of a device.
    """

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that costs, with its cause and a cure.

    Attributes:
        kind: What is wrong.
        what: What is lost, in words, with the line of the user's program.
        why: The cause, in words; may be empty.
        place: The line of the user's program; None if there is none.
        cure: What to write, as code or in words.
        before: The cost with all earlier findings cured.
        after: The cost with this one cured too; None for a cure that cannot be tried.
        patch: The cure as a diff of the user's source, for `patch -p1`; empty if it cannot be written as one.
        is_design: Whether the cure is another way to share the work rather than a mended fault.
    """

    kind: FindingKind
    what: str
    why: str
    place: SourcePlace | None
    cure: str
    before: Figures
    after: Figures | None
    patch: str = ""
    is_design: bool = False

    @property
    def advice(self) -> str:
        """What to do, and at which line if the patch is for one; said as a design if it is one."""
        lines = [] if _HAS_LINE.search(self.cure) else [f"{file}:{line}" for file, line in changed_places(self.patch)]
        more = f" and {counted(len(lines) - 1, 'other line')}" if len(lines) > 1 else ""
        at = f" ({lines[0]}{more})" if lines else ""
        return f"{'another design' if self.is_design else 'do'}: {self.cure}{at}"

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON-ready data."""
        return {
            "kind": self.kind.value,
            "what": self.what,
            "why": self.why,
            "file": self.place and self.place[0],
            "line": self.place and self.place[1],
            "cure": self.cure,
            "is_design": self.is_design,
            "before": _figures(self.before),
            "after": self.after and _figures(self.after),
            "patch": self.patch,
        }


def _figures(one: Figures) -> dict[str, Any]:
    return {"step_seconds": one.seconds, "peak_bytes": one.bytes}


@dataclass(frozen=True, slots=True)
class Diagnosis(Printable):
    """The findings on a program, the one that saves most first.

    Attributes:
        findings: At most three.
        now: The cost of the program as it is.
        limit: The bytes of memory of a device.
        devices: The number of devices.
        hardware: The chip.
        tries: The number of programs that were priced.
        speaker: Whose program was priced, in words: a compiler's, or pyshardy's own.
    """

    findings: tuple[Finding, ...]
    now: Figures
    limit: float
    devices: int
    hardware: str
    tries: int
    speaker: str = ""

    @property
    def patch(self) -> str:
        """The patches of all findings as one."""
        return merged_patches([one.patch for one in self.findings])

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as JSON-ready data."""
        return {
            "speaker": self.speaker,
            "hardware": self.hardware,
            "devices": self.devices,
            "now": _figures(self.now),
            "memory_limit_bytes": round(self.limit),
            "tries": self.tries,
            "findings": [one.to_json() for one in self.findings],
        }

    def tables(self) -> Page:
        """The findings as paragraphs of one screen, in the width in which they are printed."""
        return Page(lambda width: _screen(self, width))


def _screen(found: Diagnosis, width: int) -> list[Text]:
    for room in _ROOMS:
        lines = list(_lines(found, width, room))
        if len(lines) <= _SCREEN:
            break
    return lines


def _lines(found: Diagnosis, width: int, room: _Room) -> Iterator[Text]:
    now, limit = found.now, format_bytes(round(found.limit))
    fits = "" if now.bytes <= found.limit else f", which does not fit in {limit}"
    head = f"a step takes {format_duration(now.seconds)} on {found.devices} x {found.hardware}"
    yield from paragraph(f"{head}, {format_bytes(now.bytes)} per device{fits} (estimated)", width, "bold")
    if found.speaker:
        yield from paragraph(found.speaker, width)
    if not found.findings:
        tried = "1 other program was tried" if found.tries == 1 else f"{found.tries} other programs were tried"
        yield from paragraph(f"nothing found that costs 1% or more; {tried}", width)
    for number, one in enumerate(found.findings, 1):
        if room.apart:
            yield Text("")
        yield from _cut(paragraph(f"{number}. {one.what}", width - 2, "bold", "   "), room.what)
        cause = _cut(paragraph(one.why, width - 5) if one.why else [], room.cause)
        cure = _cut(paragraph(one.advice, width - 5), room.cure)
        worth = paragraph(worth_text(one, found.limit), width - 3)
        yield from (Text("   ").append(line) for line in [*cause, *cure, *worth])


def _cut(lines: list[Text], most: int) -> list[Text]:
    """At most so many lines; the last says by a sign that more follows."""
    return (
        lines if len(lines) <= most else [*lines[: max(most - 1, 0)], *(one.append(" …") for one in lines[:most][-1:])]
    )


def worth_text(one: Finding, limit: float) -> str:
    """The figures before and after a cure, in words.

    Args:
        one: The finding.
        limit: The bytes of memory of a device.
    """
    if one.after is None:
        return "not tried: no annotation does this"
    seconds = f"{format_duration(one.before.seconds)} → {format_duration(one.after.seconds)}"
    held = f"{format_bytes(one.before.bytes)} → {format_bytes(one.after.bytes)}"
    fits = ", which fits" if one.after.bytes <= limit < one.before.bytes else ""
    return f"tried: a step {seconds}, memory per device {held}{fits}"
