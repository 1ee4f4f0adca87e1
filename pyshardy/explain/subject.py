"""The input of explanations: a program, the steps of propagation, and readable names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.lists import Lists
from pyshardy.propagation.prepare import with_main_results
from pyshardy.propagation.program import NO_VALUE, OpKind, Program
from pyshardy.propagation.trace import Step
from pyshardy.rules.rule import Rule


class Label(NamedTuple):
    """The names and source line of an op.

    Attributes:
        name: Its full name, such as "stablehlo.dot_general".
        scope: The name that JAX gave it, such as "jit(step)/mlp/dot_general"; None if it has none.
        function: The function of the user's program around it; None if unknown.
        file: The file of the user's program; None if unknown.
        line: The line there, from 1.
        column: The column there.
        library_place: File, line and column in the library that the user's line calls, if that makes the op.
    """

    name: str
    scope: str | None = None
    function: str | None = None
    file: str | None = None
    line: int = 0
    column: int = 0
    library_place: tuple[str, int, int] | None = None

    @property
    def places(self) -> tuple[tuple[str | None, int, int], ...]:
        """The place in the user's program, and behind it that in a library if there is one."""
        own = self.file, self.line, self.column
        return (own,) if self.library_place is None else (own, self.library_place)


@dataclass(frozen=True)
class Subject:
    """A propagated program with the names that its user knows.

    Attributes:
        program: The program that was propagated: values and ops by number.
        shardings: The propagated shardings, by value.
        steps: The steps of propagation, in order.
        labels: The label of every op.
        names: Names of arguments and results of the main function, by value.
        given: The arguments and results that the user gave a sharding.
        element_bytes: The bytes of an element, by value; 0 if unknown.
        dtypes: The element type, by value, such as "f32"; empty if there is none.
        final: The shardings of the result, by value, where they differ from the propagated ones.
        grouped: The shardings of members of sharding groups before they were made equal.
        erased: The ops that were removed as dead code.
    """

    program: Program
    shardings: Sequence[TensorSharding | None]
    steps: Sequence[Step]
    labels: Sequence[Label]
    names: Mapping[int, str] = field(default_factory=dict)
    given: frozenset[int] = frozenset()
    element_bytes: Sequence[int] = ()
    dtypes: Sequence[str] = ()
    final: Mapping[int, TensorSharding | None] = field(default_factory=dict)
    grouped: Mapping[int, TensorSharding] = field(default_factory=dict)
    erased: frozenset[int] = frozenset()

    @cached_property
    def _all_ops(self) -> tuple[list[OpKind], Sequence[int], Lists]:
        return with_main_results(self.program)

    @property
    def op_count(self) -> int:
        """The number of ops. Numbers from this one on stand for the results of the main function."""
        return len(self.program.kind_of)

    def kind(self, op: int) -> OpKind:
        """The kind of an op, or of a result of the main function."""
        kinds, kind_of, _ = self._all_ops
        return kinds[kind_of[op]]

    def tensors(self, op: int) -> tuple[int, ...]:
        """The values of the tensors of an op's rule."""
        return self._all_ops[2][op]

    def rule(self, op: int) -> Rule | None:
        """The rule of an op, or of a result of the main function."""
        return self.kind(op).rule

    def holder(self, value: int) -> int:
        """The value that holds the sharding of a value; `NO_VALUE` if none does."""
        holders = self.program.holders
        return holders[value] if value < len(holders) else value

    def sharding(self, value: int) -> TensorSharding | None:
        """The sharding that propagation found for a value."""
        holder = self.holder(value)
        return None if holder == NO_VALUE else self.shardings[holder]

    def final_sharding(self, value: int) -> TensorSharding | None:
        """The sharding that a value has in the result."""
        return self.final[value] if value in self.final else self.sharding(value)

    @cached_property
    def readers(self) -> Mapping[int, list[tuple[int, int]]]:
        """For each holder, the ops whose rule has it among its tensors, and the number of that tensor."""
        tensors = self._all_ops[2]
        numbers, starts = tensors.numbers, tensors.starts
        found: dict[int, list[tuple[int, int]]] = {}
        for op in range(len(starts) - 1):
            if op in self.erased:
                continue
            for place in range(starts[op], starts[op + 1]):
                found.setdefault(numbers[place], []).append((op, place - starts[op]))
        return found

    def size_in_bytes(self, value: int) -> int:
        """The bytes of an element of a value; 0 if unknown."""
        return self.element_bytes[value] if value < len(self.element_bytes) else 0

    def main_result(self, value: int) -> int | None:
        """The number of the result of the main function whose sharding a pseudo-value holds."""
        return self._main_results.get(value)

    @cached_property
    def returned(self) -> dict[int, list[int]]:
        """The outputs that a value is returned as, by the value; not those of inputs and outputs themselves."""
        found: dict[int, list[int]] = {}
        for value, result in self.program.main_results:
            if result in self.names and value not in self.names:
                found.setdefault(value, []).append(result)
        return found

    @cached_property
    def _main_results(self) -> dict[int, int]:
        return {result: index for index, (_, result) in enumerate(self.program.main_results)}
