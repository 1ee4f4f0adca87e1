"""Explains collectives: one sentence per collective, with the annotations on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from pyshardy.core.alike import common, general_text
from pyshardy.core.axes import Axes
from pyshardy.core.text import format_bytes
from pyshardy.explain.collective_causes import Cause, CauseFinder, CollectiveFacts
from pyshardy.explain.explanation import AxisCame
from pyshardy.explain.why import Why


@dataclass(frozen=True, slots=True)
class Way:
    """A way to make a program send less, which has been tried.

    Attributes:
        text: The way in words, with what it saves.
        sent_bytes: The bytes that every device sends with it.
        held_bytes: The estimated peak memory of a device with it.
        patch: It as a patch of the source, if it constrains a value there; else empty.
    """

    text: str
    sent_bytes: int
    held_bytes: int
    patch: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class CollectiveStory:
    """The explanation of a collective, or of several equal ones; `str` is the sentence.

    Attributes:
        text: The collective and its reason in words.
        reason: The reason alone.
        kind: Its kind, such as "all_gather".
        axes: The mesh axes along which devices communicate; None if the groups do not follow mesh axes.
        sent_bytes_per_device: The bytes that every device sends per run.
        times: The number of runs.
        is_lower_bound: Whether that may be more, because the trip count of a loop is unknown.
        operand: The value that is resharded or summed, in words; None if unknown.
        file: The file of the user's program; None if unknown.
        line: The line there.
        sides: The annotations of the conflicting axes, and how these axes propagated.
        ways: The ways that make the program send less, the best first.
        windowed: The collective that a compiler cut into permutes beside a product, such as "all_gather".
    """

    text: str
    reason: str
    kind: str
    axes: tuple[str, ...] | None
    sent_bytes_per_device: int
    times: int
    is_lower_bound: bool
    operand: str | None
    file: str | None
    line: int
    sides: tuple[AxisCame, ...] = ()
    ways: tuple[Way, ...] = ()
    windowed: str | None = None

    @property
    def total_bytes(self) -> int:
        """The bytes that every device sends in all runs."""
        return self.times * self.sent_bytes_per_device

    @property
    def hint(self) -> str | None:
        """What makes the program send less, in words; None if nothing is known."""
        return " ".join(way.text for way in self.ways) or None

    @property
    def patch(self) -> str:
        """The first way as a patch of the source, if it constrains a value there; else empty."""
        return self.ways[0].patch if self.ways else ""

    def with_ways(self, ways: Sequence[Way]) -> CollectiveStory:
        """The explanation with ways that make the program send less."""
        return replace(self, ways=tuple(ways))

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON-ready data; the keys are the names of the attributes."""
        return {**asdict(self), "hint": self.hint, "patch": self.patch}

    def __str__(self) -> str:
        return self.text if self.hint is None else f"{self.text} Hint: {self.hint}"

    def __repr__(self) -> str:
        return f"<{self}>"


class ExplainedCollectives(NamedTuple):
    """An explanation with its causes, one per collective.

    Attributes:
        story: The explanation.
        causes: The causes.
        head: The collectives in words, without a reason.
        said: The reason, and where the conflicting axes come from.
    """

    story: CollectiveStory
    causes: tuple[Cause, ...]
    head: str
    said: str


def explain_collectives(
    why: Why, rows: Sequence[CollectiveFacts], of_compiler: bool = False
) -> list[ExplainedCollectives]:
    """The explanations of collectives, those that send most bytes first; equal ones share an explanation.

    Args:
        why: Explains the values of the propagated program.
        rows: The collectives of the per-device program, in program order.
        of_compiler: Whether a compiler made them.
    """
    causes = CauseFinder(why, of_compiler).causes(rows)
    folded: dict[tuple[Any, ...], list[tuple[CollectiveFacts, Cause]]] = {}
    for row, cause in zip(rows, causes):
        key = (
            row.kind,
            row.axes,
            row.sent_bytes_per_device,
            row.is_lower_bound,
            row.windowed,
            general_text(cause.reason),
        )
        folded.setdefault(key, []).append((row, cause))
    found = [story_of(why, alike) for alike in folded.values()]
    return sorted(found, key=lambda one: -one.story.total_bytes)


def story_of(why: Why, alike: Sequence[tuple[CollectiveFacts, Cause]]) -> ExplainedCollectives:
    """One explanation of collectives that are alike, from their causes."""
    row, cause = alike[0]
    distinct = list({one.reason: one for _, one in alike}.values())
    reason = common(one.reason for one in distinct)
    times = sum(one.times for one, _ in alike)
    operands = [why.names.value(one.operand) for one in distinct if one.operand is not None]
    operand = common(operands) if len(operands) == len(distinct) else None
    alike_places = dict.fromkeys(one.places for _, one in alike)
    sides = [tuple(_sides(why, places, not number)) for number, places in enumerate(alike_places)]
    origins = [dict.fromkeys(f"{one.axis} was given {one.origin}" for one in found) for found in sides]
    origin = _common_origin(["; ".join(found) for found in origins])
    axes = "" if row.axes is None else f" along {', '.join(row.axes)}"
    often = "" if times == 1 else f", {'at least ' if row.is_lower_bound else ''}{times} times"
    head = f"{row.kind.replace('_', '-')} of {format_bytes(row.sent_bytes_per_device)} per device{axes}{often}"
    if row.windowed is not None:
        whole = row.windowed.replace("_", "-")
        head += f", in a windowed product (its {whole} travels in parts during the product)"
    said = f"{reason}." + (f" There {origin}." if origin else "")
    file, line, _ = row.user_source or row.source or (None, 0, 0)
    story = CollectiveStory(
        f"{head}: {said}",
        reason,
        row.kind,
        row.axes,
        row.sent_bytes_per_device,
        times,
        row.is_lower_bound,
        operand,
        file,
        line,
        sides[0],
        windowed=row.windowed,
    )
    return ExplainedCollectives(story, tuple(one for _, one in alike), head, said)


def _common_origin(origins: Sequence[str]) -> str:
    """Where the axes come from, in one text. Where collectives differ in that, the first one is told."""
    return common(one for one in origins if general_text(one) == general_text(origins[0]))


def _sides(why: Why, places: Iterable[tuple[int, int, Axes]], with_steps: bool) -> Iterator[AxisCame]:
    for value, dim, axes in places:
        for axis in axes:
            chains = why.history.chains(why.subject.holder(value), dim, axis)
            yield from (why.came(chain, with_steps) for chain in chains)
