"""The annotations that the axes of values come from, by the names that users know."""

from __future__ import annotations

from pyshardy.explain.subject import Subject
from pyshardy.propagation.debug import propagation_edges
from pyshardy.propagation.origins import Origins, function_returns, plain_axis
from pyshardy.propagation.program import NO_VALUE
from pyshardy.source.places import format_place


class OriginNames:
    """Names the annotations that the axes of a value come from, without those of the value itself.

    Inputs and outputs have their usual names; a constraint or `shard_map` is named by its line. In a program with
    several functions nothing is named, because such names would be ambiguous.

    Args:
        subject: The propagated program.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._names: dict[int, str | None] = {}
        self._origins = Origins()
        if len(function_returns(subject.program)) <= 1:
            self._origins = Origins.given(subject.program)
            self._origins.follow(propagation_edges(subject.steps, subject.shardings, subject.program.meshes))

    def of(self, value: int) -> tuple[str, ...]:
        """The names for a value, or for a result of the main function."""
        subject, result = self._subject, self._subject.main_result(value)
        holder = subject.holder(value if result is None else subject.program.main_results[result].returned)
        found = {} if holder == NO_VALUE else self._origins.of(holder)
        names = [self._name(found[axis]) for axis in sorted(found, key=plain_axis) if found[axis] != value]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def _name(self, annotated: int) -> str | None:
        """The name of an annotated value; None for one of an op that is dead, or without a line."""
        if annotated not in self._names:
            self._names[annotated] = self._subject.names.get(annotated) or self._place(annotated)
        return self._names[annotated]

    def _place(self, annotated: int) -> str | None:
        subject = self._subject
        op = around = subject.program.owners[annotated]
        while around >= 0:
            if around in subject.erased:
                return None
            around = subject.program.parents[around]
        label = subject.labels[op]
        return None if label.file is None else format_place((label.file, label.line, label.column))
