"""What makes a program slower or larger than it need be: findings, each with its cause and a cure, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.text import Text

from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration
from pyshardy.report.layout import paragraph
from pyshardy.report.patch import merged_patches
from pyshardy.report.printing import Page, Printable
from pyshardy.source.places import SourcePlace

_SCREEN = 24
"""The lines of a screen."""
_LONGEST_CAUSE = 4
"""The most lines of a cause."""


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
    """

    kind: FindingKind
    what: str
    why: str
    place: SourcePlace | None
    cure: str
    before: Figures
    after: Figures | None
    patch: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON-ready data."""
        return {
            "kind": self.kind.value,
            "what": self.what,
            "why": self.why,
            "file": self.place and self.place[0],
            "line": self.place and self.place[1],
            "cure": self.cure,
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
        speaker: Whose program was priced, in words; empty for pyshardy's own.
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
    for most in range(_LONGEST_CAUSE, 0, -1):
        lines = list(_lines(found, width, most))
        if len(lines) <= _SCREEN:
            break
    return lines


def _lines(found: Diagnosis, width: int, most: int) -> Iterator[Text]:
    """The lines; of a cause at most so many."""
    if found.speaker:
        yield from paragraph(found.speaker, width)
    now, limit = found.now, format_bytes(round(found.limit))
    fits = "" if now.bytes <= found.limit else f", which does not fit in {limit}"
    head = f"a step takes {format_duration(now.seconds)} on {found.devices} x {found.hardware}"
    yield from paragraph(f"{head}, {format_bytes(now.bytes)} per device{fits} (estimated)", width, "bold")
    if not found.findings:
        tried = "1 other program was tried" if found.tries == 1 else f"{found.tries} other programs were tried"
        yield from paragraph(f"nothing found that costs 1% or more; {tried}", width)
    for number, one in enumerate(found.findings, 1):
        yield Text("")
        yield from paragraph(f"{number}. {one.what}", width, "bold", "   ")
        cause = paragraph(one.why, width - 5) if one.why else []
        if len(cause) > most:
            cause = [*cause[: most - 1], cause[most - 1].append(" …")]
        for text in (f"do: {one.cure}", worth_text(one, found.limit)):
            cause += paragraph(text, width - 3)
        yield from (Text("   ").append(line) for line in cause)


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
