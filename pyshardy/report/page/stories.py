"""Tables that explain the sharding of every value: annotations, propagated axes, and reasons for whole dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.history import GIVEN_STEP, MANUAL_STEP, AxisPlacement, Chain, Link
from pyshardy.explain.lost import all_reasons
from pyshardy.explain.origins import origin_of
from pyshardy.explain.why import Why
from pyshardy.explain.words import stayed_whole
from pyshardy.propagation.program import NO_VALUE
from pyshardy.propagation.trace import Step
from pyshardy.report.page.interned import ItemTable
from pyshardy.report.page.linked import Sentence, parse
from pyshardy.report.page.tables import Tables

MOST_REASONS = 4
"""The most reasons per dimension."""
_OWN = ("argument", "output", "annotation")


class Stories:
    """The stories of a program.

    Args:
        why: Explains the program in sentences with marks.
        tables: The tables of texts and axes.
    """

    def __init__(self, why: Why, tables: Tables) -> None:
        self._why = why
        self._tables = tables
        self._rounds = _rounds(why.subject.steps)

    def sentence(self, text: str) -> list[int]:
        """A sentence with marks: the number of its template, and the numbers in it."""
        template, numbers = parse(text)
        return [self._tables.text(template), *numbers]

    def to_json(self) -> dict[str, Any]:
        """All tables."""
        given, moves = [], []
        for value, placements in self._why.history.placements.items():
            mesh = self._mesh(value)
            for one in placements:
                if one.step < 0:
                    given.append(self._given(value, one, mesh))
                elif (move := self._move(value, one, mesh)) is not None:
                    moves.append(move)
        rounds = ItemTable[tuple[int, int, int, str]]()
        for found in self._rounds:
            rounds.number(found)
        return {
            "given": given,
            "moves": sorted(moves, key=lambda move: move[3]),
            "rounds": [list(found[1:]) for found in rounds.items],
            "whole": list(self._whole()),
            "dropped": list(self._dropped()),
        }

    def _mesh(self, value: int) -> Mesh:
        subject = self._why.subject
        sharding = subject.shardings[value] or subject.program.shardings[value]
        assert sharding is not None
        return mesh_of(sharding, subject.program.meshes)

    def _given(self, value: int, one: AxisPlacement, mesh: Mesh) -> list[int]:
        """Value, dimension, axis, whether it is manual, whether the annotation is on the value itself, sentence."""
        why = self._why
        is_manual = one.step == MANUAL_STEP
        origin = origin_of(Chain(one.axis, value, one.dim, is_manual, ()), why.subject, why.names)
        sentence = self.sentence(origin.text(why.names))
        is_own = origin.kind.value in _OWN
        assert is_manual or one.step == GIVEN_STEP
        return [value, one.dim, self._tables.axis(one.axis, mesh), int(is_manual), int(is_own), *sentence]

    def _move(self, value: int, one: AxisPlacement, mesh: Mesh) -> list[int] | None:
        """Target, its dimension, axis, step, first step of the visit, source, its dimension, op, texts, round.

        The first text is for the beginning of a chain, the second for later steps.
        """
        step = self._why.subject.steps[one.step]
        if step.source is None:
            return None
        source_dim = self._why.history.source_dim(step)
        link = Link(one.step, step.source, source_dim, value, one.dim)
        roles = {("v", step.source): "s", ("v", value): "t", ("o", step.op): "p"}
        texts = [self._role_text(self._why.step_text(link, is_first), roles) for is_first in (True, False)]
        return [
            value, one.dim, self._tables.axis(one.axis, mesh), one.step, self._why.history.start_of(one.step),
            step.source, source_dim, step.op, *texts, self._rounds[one.step][0],
        ]  # fmt: skip

    def _role_text(self, text: str, roles: dict[tuple[str, int], str]) -> int:
        found: Sentence = parse(text, roles)
        assert not found.numbers, text
        return self._tables.text(found.template)

    def _whole(self) -> Iterator[list[int]]:
        """Value, dimension, and the reasons, each as the number of its template and its arguments."""
        subject, names = self._why.subject, self._why.names
        for value, shape in enumerate(subject.program.shapes):
            if subject.holder(value) != value or value == NO_VALUE:
                continue
            sharding = subject.sharding(value)
            for dim in range(len(shape or ())):
                if sharding is not None and (sharding.rank != len(shape or ()) or sharding.dims[dim].axes):
                    continue
                reasons = all_reasons(self._why.history, value, dim)[:MOST_REASONS]
                texts = dict.fromkeys(stayed_whole(reason, value, dim, names).text for reason in reasons)
                yield [value, dim, *[number for text in texts for number in self.sentence(text)]]

    def _dropped(self) -> Iterator[list[int]]:
        """Value, dimension, and the axes that the result drops, in words."""
        subject = self._why.subject
        for value in subject.final:
            found, final = subject.sharding(value), subject.final_sharding(value)
            if found is None or final is None or found is final or found.rank != final.rank:
                continue
            for dim in range(final.rank):
                text = self._why.dropped_text(value, dim)
                if text is not None:
                    yield [value, dim, self._tables.text(text)]


def _rounds(steps: Sequence[Step]) -> list[tuple[int, int, int, str]]:
    """The round of every step: number, user priority, op priority and strategy."""
    found: list[tuple[int, int, int, str]] = []
    for step in steps:
        kind = step.user_priority, step.op_priority, step.strategy.value
        if not found:
            found.append((0, *kind))
        elif found[-1][1:] == kind:
            found.append(found[-1])
        else:
            found.append((found[-1][0] + 1, *kind))
    return found
