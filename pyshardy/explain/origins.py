"""The annotation that an axis comes from."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.explain.history import Chain
from pyshardy.explain.names import Names, place_text
from pyshardy.explain.subject import Subject
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.rules.properties import EDGE


class OriginKind(Enum):
    """The kind of an annotation."""

    ARGUMENT = "argument"
    OUTPUT = "output"
    CONSTRAINT = "constraint"
    GROUP = "group"
    MANUAL = "manual computation"
    ANNOTATION = "annotation"


class Origin(NamedTuple):
    """The annotation that an axis comes from.

    Attributes:
        kind: Its kind.
        value: The number of the annotated value.
        dim: The dimension there.
        name: The value in words.
        op: The constraint or manual computation with the annotation; None for other kinds.
        priority: The user priority of the dimension; None if there is none.
    """

    kind: OriginKind
    value: int
    dim: int
    name: str
    op: int | None
    priority: int | None

    def text(self, names: Names) -> str:
        """The annotation in words, to follow "given"."""
        of = f"dimension {self.dim} of {self.name}"
        if self.kind is OriginKind.CONSTRAINT and self.op is not None:
            return f"by the sharding constraint{place_text(names.label(self.op))} on dimension {self.dim}"
        if self.kind is OriginKind.MANUAL and self.op is not None:
            return f"by the manual computation{place_text(names.label(self.op))} on {of}"
        if self.kind is OriginKind.GROUP:
            return f"to the sharding group of {self.name} on dimension {self.dim}"
        what = {OriginKind.ARGUMENT: "the input ", OriginKind.OUTPUT: "the output "}.get(self.kind, "")
        turn = f", with priority {self.priority}" if self.priority else ""
        return f"to {what}{self.name} on dimension {self.dim}{turn}"


def origin_of(chain: Chain, subject: Subject, names: Names) -> Origin:
    """The annotation at the beginning of a chain."""
    return annotation_of(chain.origin, chain.origin_dim, subject, names, chain.is_manual)


def annotation_of(value: int, dim: int, subject: Subject, names: Names, is_manual: bool = False) -> Origin:
    """The annotation that gave a value its sharding before propagation."""
    program = subject.program
    sharding = program.shardings[value]
    priority = None if sharding is None or is_manual else sharding.dims[dim].priority

    def made(kind: OriginKind, op: int | None = None, at: int = value) -> Origin:
        return Origin(kind, at, dim, names.value(at), op, priority)

    result = subject.main_result(value)
    if result is not None:
        returned = subject.holder(program.main_results[result].returned)
        if value in subject.given or not _has(program.shardings[returned], dim, sharding):
            return made(OriginKind.OUTPUT)
        return annotation_of(returned, dim, subject, names)  # XLA annotates an output like the value that is returned
    owner = program.owners[value]
    label = subject.labels[owner].name if owner >= 0 else ""
    if label == CONSTRAINT:
        return made(OriginKind.CONSTRAINT, owner)
    if label == EDGE and (is_manual or owner in program.views):
        return made(OriginKind.MANUAL, program.owners[program.operands[owner][0]])
    if value in subject.given:
        return made(OriginKind.ARGUMENT)
    constraint = _constraint_on(value, subject)
    if constraint is not None:
        return made(OriginKind.CONSTRAINT, constraint)
    group = next((group for group in program.groups if value in group), ())
    if group and value not in subject.grouped:
        giver = next((member for member in group if member in subject.grouped), None)
        if giver is not None:
            return made(OriginKind.GROUP, at=giver)
    is_argument = value in subject.names and label == "func.func"
    return made(OriginKind.ARGUMENT if is_argument else OriginKind.ANNOTATION)


def _constraint_on(value: int, subject: Subject) -> int | None:
    """The constraint that wrote its sharding onto a value before propagation; None if there is none."""
    program = subject.program
    for op in program.users[value]:
        if program.kind(op).name == CONSTRAINT:
            (result,) = program.results[op]
            given = program.shardings[result]
            if given is not None and given is program.shardings[value]:
                return op
    return None


def _has(sharding: TensorSharding | None, dim: int, other: TensorSharding | None) -> bool:
    """Whether two shardings have the same axes on a dimension."""
    return sharding is not None and other is not None and sharding.dims[dim].axes == other.dims[dim].axes
