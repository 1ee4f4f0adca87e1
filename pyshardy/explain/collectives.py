"""Explains collectives: one sentence per collective, with the annotations on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from pyshardy.core.alike import common, general_text
from pyshardy.core.axes import Axes
from pyshardy.core.text import format_bytes
from pyshardy.explain.collective_causes import Cause, Matcher, Row
from pyshardy.explain.explanation import AxisCame
from pyshardy.explain.why import Why


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
        hint: An annotation that makes the program send less, which has been tried; None if none is known.
        windowed: The collective that a compiler cut into permutes beside a product, such as "all_gather".
        patch: The hint as a patch of the source, if it constrains a value there; else empty.
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
    hint: str | None = None
    windowed: str | None = None
    patch: str = ""

    @property
    def total_bytes(self) -> int:
        """The bytes that every device sends in all runs."""
        return self.times * self.sent_bytes_per_device

    def with_hint(self, hint: str | None, patch: str = "") -> CollectiveStory:
        """The explanation with a hint.

        Args:
            hint: The hint in words.
            patch: It as a patch of the source.
        """
        return replace(self, hint=hint, patch=patch)

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON-ready data; the keys are the names of the attributes."""
        return asdict(self)

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


def explain_collectives(why: Why, rows: Sequence[Row], of_compiler: bool = False) -> list[ExplainedCollectives]:
    """The explanations of collectives, those that send most bytes first; equal ones share an explanation.

    Args:
        why: Explains the values of the propagated program.
        rows: The collectives of the per-device program, in program order.
        of_compiler: Whether a compiler made them.
    """
    causes = Matcher(why, of_compiler).causes(rows)
    folded: dict[tuple[Any, ...], list[tuple[Row, Cause]]] = {}
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


def story_of(why: Why, alike: Sequence[tuple[Row, Cause]]) -> ExplainedCollectives:
    """One explanation of collectives that are alike, from their causes."""
    row, cause = alike[0]
    distinct = list({one.reason: one for _, one in alike}.values())
    reason = common(one.reason for one in distinct)
    times = sum(one.times for one, _ in alike)
    operands = [why.names.value(one.operand) for one in distinct if one.operand is not None]
    operand = common(operands) if len(operands) == len(distinct) else None
    sides = [tuple(_sides(why, places)) for places in dict.fromkeys(one.places for _, one in alike)]
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
    """Where the axes come from in one text; those of the first that have other origins stand for the others."""
    return common(one for one in origins if general_text(one) == general_text(origins[0]))


def _sides(why: Why, places: Iterable[tuple[int, int, Axes]]) -> Iterator[AxisCame]:
    for value, dim, axes in places:
        for axis in axes:
            yield from (why.came(chain) for chain in why.history.chains(why.subject.holder(value), dim, axis))
