"""A change of a program that may make it faster or smaller, and how much better a program is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from math import log

from pyshardy.explain.collectives import CollectiveStory
from pyshardy.ir.module import Module
from pyshardy.report.diagnosis import Figures, Finding, FindingKind
from pyshardy.results.partition import Partition
from pyshardy.source.places import SourcePlace

LEAST_GAIN = 0.01
"""The share of time or memory from which on something is a finding."""
_FREE_MEMORY = 0.5
"""What a share of a program's memory counts beside a share of its time, if nothing is lost by saving it."""
SAME = 0.005
"""The share of a step that counts as none, as far as estimates can tell."""
_FROM_BYTES = 1 << 20
"""Memory below this does not count by itself."""


def _no_patch() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Cure:
    """A change that may make a program faster or smaller.

    Attributes:
        kind: What it mends.
        what: What is wrong, in words.
        why: The cause, in words; may be empty.
        place: The line of the user's program.
        text: What to write.
        apply: The program with it.
        make_patch: The change as a diff of the user's source; empty if it cannot be written as one.
        subject: What it changes; by default its text.
        is_exact: Whether the program computes the same with it.
        inputs: The numbers of the inputs whose annotations it changes.
        is_design: Whether it is another way to share the work rather than a mended fault: nothing in the program asks
            for it.
        frees: Whether memory that it saves is held for nothing, if that is so of its kind.
    """

    kind: FindingKind
    what: str
    why: str
    place: SourcePlace | None
    text: str
    apply: Callable[[Module], Module]
    make_patch: Callable[[], str] = _no_patch
    subject: Hashable = None
    is_exact: bool = True
    inputs: frozenset[int] = frozenset()
    is_design: bool = False
    frees: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "make_patch", cache(self.make_patch))  # the source is read once

    @property
    def key(self) -> Hashable:
        """What it changes: of several cures for one value, one is chosen."""
        return self.subject or self.text

    def finding(self, before: Figures, after: Figures) -> Finding:
        """It as a finding, with what it saves."""
        return Finding(
            self.kind, self.what, self.why, self.place, self.text, before, after, self.make_patch(), self.is_design
        )


def gain(before: Figures, after: Figures, limit: float, is_free: bool = False, unsure: float = SAME) -> float:
    """How much better a program is: about the share of its time that it saves, plus memory; negative if it is worse.

    Memory counts as a share of what a device has, and of what the program needs where it does not fit.

    Args:
        before: The cost of a program.
        after: The cost of another.
        limit: The bytes of memory of a device.
        is_free: Whether the memory is held for nothing, as without donation. Then it counts although there is enough
            of it, unless the program without it takes longer.
        unsure: The share of a step by which it may seem longer without being so.

    >>> gain(Figures(1.0, 100), Figures(0.9, 100), 200.0) > gain(Figures(1.0, 100), Figures(1.0, 90), 200.0) > 0
    True
    """
    seconds = _shrunk(before.seconds, after.seconds)
    if before.bytes > limit:
        return seconds + _shrunk(before.bytes, after.bytes)
    if is_free and seconds > -unsure and before.bytes - after.bytes >= _FROM_BYTES:
        return seconds + _FREE_MEMORY * _shrunk(before.bytes, after.bytes)
    return seconds + (before.bytes - after.bytes) / limit


def _shrunk(before: float, after: float) -> float:
    return log(before / after) if before > 0 and after > 0 else 0.0


def avoided(before: Partition, after: Partition) -> str:
    """The largest collective that a cure avoids, in words; empty if it avoids none.

    Args:
        before: The program.
        after: The program with the cure.
    """
    was, now = (_sent(part) for part in (before, after))
    gone = {key: size - now[key] for key, size in was.items() if 2 * now[key] < size}
    if not gone:
        return ""
    key = max(gone, key=lambda one: gone[one])
    story = next(one for one in before.collectives if _key(one) == key)
    text, _, _ = story.text.partition(" There ")
    return f"what it avoids: {text}"


def _key(story: CollectiveStory) -> tuple[object, ...]:
    return story.kind, story.axes, story.file, story.line


def _sent(part: Partition) -> Counter[tuple[object, ...]]:
    """The bytes of each kind of collective, by its line."""
    sent: Counter[tuple[object, ...]] = Counter()
    for story in part.collectives:
        sent[_key(story)] += story.total_bytes
    return sent
