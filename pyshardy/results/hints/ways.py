"""Finds what makes a partitioned program send less, by trying it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from pyshardy.costing.hardware import Hardware
from pyshardy.explain.collectives import CollectiveStory, ExplainedCollectives
from pyshardy.ir.source_values import source_values
from pyshardy.results.hints.code import CodeEdit, interleaved_pieces, shard_maps, strided_micro_batches
from pyshardy.results.hints.constraints import left_out_constraints
from pyshardy.results.hints.edits import is_forward_sum, ways_for
from pyshardy.results.hints.tries import Tries

if TYPE_CHECKING:
    from pyshardy.results.program_result import PerDevice

_MOST_CHANGES = 3
"""The most reshapes to stride, and constraints of values of one conflict to leave out."""


def hints(part: PerDevice, most: int = 3, hardware: Hardware | None = None) -> tuple[CollectiveStory, ...]:
    """The collectives that send most and can be avoided, each with a hint.

    Args:
        part: The program.
        most: The number of conflicts to look for hints for.
        hardware: The chip whose memory hints state; None for none in particular.
    """
    largest = _largest(part, most)
    if not largest:
        return ()
    tries, values = Tries(part, hardware), source_values(part.before.root)
    strided = list(islice(strided_micro_batches(part.why, part.before), _MOST_CHANGES))
    constraints = list(left_out_constraints(part.before))
    told: dict[str, CollectiveStory] = {}  # one hint may be for several conflicts
    for one, own in largest:
        changes = [*own, *strided, *islice(_of_shapes(part, one, constraints), _MOST_CHANGES)]
        story = one.story.with_ways(list(ways_for(part.why, one, part.before, tries.now, tries, values, changes)))
        if story.hint is not None:
            told.setdefault(story.hint, story)
    return tuple(told.values())


def _of_shapes(part: PerDevice, one: ExplainedCollectives, constraints: Iterable[CodeEdit]) -> Iterator[CodeEdit]:
    """The constraints of values that have the shape of a value of a conflict."""
    shapes = part.why.subject.program.shapes
    values = {value for cause in one.causes for value in (cause.operand, *(place[0] for place in cause.places))}
    values |= {cause.mismatch.value for cause in one.causes if cause.mismatch is not None}
    wanted = {shapes[value] for value in values if value is not None and value >= 0}
    return (edit for edit in constraints if edit.codes[0].shapes[0] in wanted)


def _largest(part: PerDevice, most: int) -> list[tuple[ExplainedCollectives, list[CodeEdit]]]:
    """The collectives that may be avoidable, one for each reason, with changes of code that concern it alone."""
    found = part.explained_collectives
    mesh = next(((name, mesh) for name, mesh in part.meshes.items() if mesh.axes), None)
    if not found or mesh is None:
        return []
    chosen: dict[str, tuple[ExplainedCollectives, list[CodeEdit]]] = {}
    for one in found:
        if len(chosen) == most:
            break
        cause = one.causes[0]
        own = [
            *(one.edit for one in shard_maps(part.why, cause, part.before, *mesh)),
            *interleaved_pieces(part.why, cause, part.before),
        ]
        if own or any(cause.mismatch for cause in one.causes):
            chosen.setdefault(one.story.reason, (one, own))
    if found[0].story.reason not in chosen and is_forward_sum(part.why, found[0]):  # a sum may have other axes, too
        chosen[found[0].story.reason] = (found[0], [])
    return list(chosen.values())
