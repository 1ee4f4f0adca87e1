"""Explains the sharding of a value: the origin of every axis, and the reasons for dimensions without axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.explanation import (
    AxisCame,
    DimensionStory,
    Explanation,
    Opening,
    StepTaken,
    ValueStory,
)
from pyshardy.explain.find import find_values
from pyshardy.explain.history import Chain, History, Link
from pyshardy.explain.lost import all_reasons
from pyshardy.explain.names import Names
from pyshardy.explain.opening import opening
from pyshardy.explain.origins import Origin, OriginKind, annotation_of, origin_of
from pyshardy.explain.reason import ReasonKind
from pyshardy.explain.subject import Subject
from pyshardy.explain.words import axes_text, dims_text, stayed_whole
from pyshardy.propagation.program import NO_VALUE
from pyshardy.propagation.trace import GROUP_STEP, MAIN_RESULT
from pyshardy.rules.rule import factor_symbol


class Place(NamedTuple):
    """Where values are in the program.

    Attributes:
        name: A text as for `Why.explain`.
        shape: Their shape; None for any.
        lines: Files and lines, one of which must be the line of the op that computes the value; empty if any line will
            do.
    """

    name: str
    shape: tuple[int, ...] | None = None
    lines: tuple[tuple[str, int], ...] = ()


class Why:
    """Explains the values of one program.

    Args:
        subject: The program.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.names = Names(subject)
        self.history = History(subject)

    def explain(self, wanted: str, details: bool = False, places: Iterable[Place] = ()) -> Explanation:
        """The explanation of the values that a text names.

        Args:
            wanted: The path of an argument, a result, `FILE:LINE`, a name scope or an op.
            details: Whether sentences name rules, factors, strategies and priorities.
            places: What to explain instead; the text is then only what was asked.

        Raises:
            UsageError: Nothing has that name.
        """
        values = [
            value
            for place in (*places,) or (Place(wanted),)
            for value in find_values(self.subject, place.name)
            if self._is_at(value, place)
        ]
        stories = tuple(map(self.story, values))
        return Explanation(wanted, stories, details, self._openings(values, stories))

    def lacking(self, wanted: str, shape: tuple[int, ...]) -> list[ValueStory]:
        """Why dimensions of the values of a shape that a text names lack axes; without where the others came from.

        Args:
            wanted: A text as for `explain`.
            shape: The shape.

        Raises:
            UsageError: Nothing has that name.
        """
        values = find_values(self.subject, wanted)
        return [self.story(one, False) for one in values if self._is_at(one, Place(wanted, shape))]

    def _is_at(self, value: int, place: Place) -> bool:
        if place.shape is not None and self.subject.program.shapes[value] != place.shape:
            return False
        label = self.names.label(self.subject.program.owners[value]) if place.lines else None
        return label is None or (label.file, label.line) in place.lines

    def _openings(self, values: Sequence[int], stories: Sequence[ValueStory]) -> tuple[Opening, ...]:
        """What opens the closed dimensions of some values, once per annotation."""
        found: dict[tuple[OriginKind, int], tuple[list[Origin], list[int]]] = {}
        for number, (value, story) in enumerate(zip(values, stories, strict=True)):
            for dim in story.dims:
                if any(reason.kind == ReasonKind.CLOSED.value for reason in dim.reasons):
                    origin = annotation_of(self.subject.holder(value), dim.dim, self.subject, self.names)
                    origins, keeps = found.setdefault((origin.kind, origin.value), ([], []))
                    origins.append(origin)
                    keeps.append(number)
        return tuple(opening(*one, self.names) for one in found.values())

    def story(self, value: int, with_chains: bool = True) -> ValueStory:
        """The explanation of a value.

        Args:
            value: Its number.
            with_chains: Whether to tell where its axes came from; else only why it lacks others.
        """
        subject = self.subject
        shape = subject.program.shapes[value] if value < len(subject.program.shapes) else None
        holder, final = subject.holder(value), subject.final_sharding(value)
        mesh = None if final is None else str(mesh_of(final, subject.program.meshes))
        rank = len(shape or ())
        has_dims = holder != NO_VALUE and all(
            one is None or one.rank == rank for one in (final, subject.sharding(value))
        )
        dims = [self._dim(holder, dim, final, with_chains) for dim in range(rank if has_dims else 0)]
        returned = tuple(subject.names[result] for result in subject.returned.get(value, ()))
        return ValueStory(
            self.names.value(value), tuple(shape or ()), dims_text(final, rank), mesh, tuple(dims), returned
        )

    def _dim(self, value: int, dim: int, final: TensorSharding | None, with_chains: bool) -> DimensionStory:
        subject = self.subject
        shape = subject.program.shapes[value] or ()
        found = subject.sharding(value)
        axes = () if found is None else found.dims[dim].axes
        kept = () if final is None else final.dims[dim].axes
        told = axes if with_chains else ()
        came = [self.came(chain) for axis in told for chain in self.history.chains(value, dim, axis)]
        reasons = (
            []
            if axes
            else [stayed_whole(reason, value, dim, self.names) for reason in all_reasons(self.history, value, dim)]
        )
        dropped = None if found is None or final is None else self._dropped(shape[dim], found, final, dim)
        return DimensionStory(dim, shape[dim], axes_text(kept) or "whole", tuple(came), tuple(reasons), dropped)

    def dropped_text(self, value: int, dim: int) -> str | None:
        """The axes of a dimension that propagation gave and the result drops, in words; None if there are none.

        Args:
            value: The value, whose rank in the result is the same.
            dim: The dimension.
        """
        found, final = self.subject.sharding(value), self.subject.final_sharding(value)
        if found is None or final is None:
            return None
        return self._dropped((self.subject.program.shapes[value] or ())[dim], found, final, dim)

    def _dropped(self, size: int, found: TensorSharding, final: TensorSharding, dim: int) -> str | None:
        axes, kept = found.dims[dim].axes, final.dims[dim].axes
        if not axes or kept == axes:
            return None
        return _dropped(size, axes, kept, mesh_of(found, self.subject.program.meshes))

    # The origin of an axis

    def came(self, chain: Chain, with_steps: bool = True) -> AxisCame:
        """A chain in words.

        Args:
            chain: The chain.
            with_steps: Whether to tell its steps; else only its origin.
        """
        origin = origin_of(chain, self.subject, self.names)
        told = chain.links if with_steps else ()
        steps = tuple(self._step(link, index == 0) for index, link in enumerate(told))
        return AxisCame(
            str(chain.axis), origin.kind.value, origin.text(self.names), origin.name, chain.origin_dim, steps
        )

    def _step(self, link: Link, is_first: bool) -> StepTaken:
        step = self.subject.steps[link.step]
        label, names = self.names.label(step.op), self.names
        rule = None if step.op in (GROUP_STEP, MAIN_RESULT) else self.subject.rule(step.op)
        source, target = names.value(link.source), names.value(link.target)
        return StepTaken(
            text=self.step_text(link, is_first),
            op=label.name,
            scope=label.scope,
            file=label.file,
            line=label.line,
            source=source,
            source_dim=link.source_dim,
            target=target,
            target_dim=link.target_dim,
            rule=None if rule is None else str(rule),
            factor=factor_symbol(step.factor),
            direction=step.direction.name.lower() + (" directions" if step.direction.name == "BOTH" else ""),
            strategy=step.strategy.value,
            user_priority=step.user_priority,
            op_priority=step.op_priority,
        )

    def step_text(self, link: Link, is_first: bool) -> str:
        """A step of a chain in words.

        Args:
            link: The step.
            is_first: Whether it is the first step of its chain, which names the start.
        """
        step, names = self.subject.steps[link.step], self.names
        source, target = names.value(link.source), names.value(link.target)
        if step.op == GROUP_STEP:
            return f"{target} is in one sharding group with {source}"
        if step.op == MAIN_RESULT:
            forth = link.source not in self.subject.names or link.target in self.subject.names
            return f"{source} is returned as {target}" if forth else f"{target} is returned as {source}"
        through = names.op(step.op)
        rule, from_result = self.subject.rule(step.op), False
        if rule is not None:
            from_result = step.source_tensor is not None and step.source_tensor >= len(rule.operands)
        of = f", from dimension {link.source_dim} of {source}" if is_first else ""
        if self._is_only_result(step.op, link.target):
            return f"through {through}{of} to dimension {link.target_dim} of its result"
        way = "back" if from_result else "across"
        return f"{way} through {through}{of} to dimension {link.target_dim} of {target}"

    def _is_only_result(self, op: int, value: int) -> bool:
        return tuple(self.subject.program.results[op]) == (value,)


def _dropped(size: int, axes: Axes, kept: Axes, mesh: Mesh) -> str:
    left, text = axes_text(kept) or "whole", axes_text(axes)
    if size % axes_size(axes, mesh):
        why = f"its {size} elements do not divide evenly by {text}, and inputs and outputs have even shards"
    else:
        why = f"{text} is not made of whole axes, and inputs and outputs have no parts of axes"
    return f"in the result it is {left}, because {why}"
