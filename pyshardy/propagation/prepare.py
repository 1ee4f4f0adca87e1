# cython: boundscheck=False, initializedcheck=False
"""Tables of a program that propagation builds before the first visit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from pyshardy.propagation.lists import Lists, zeros
from pyshardy.propagation.program import OpKind, Program
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import Shape
from pyshardy.rules.rule_builder import identity_rule

OWNER_AND_USERS, LISTED = 1, 2
"""Which ops to visit after a value gets a new sharding: its owner and users, or those that `notified` lists."""


def with_main_results(program: Program) -> tuple[list[OpKind], array[int], Lists]:
    """Kinds, kind numbers and tensors of every op, followed by the results of the main function, as identities."""
    numbers: dict[Shape, int] = {}
    kinds, kind_of, tensors = list(program.kinds), program.kind_of[:], program.tensors.copy()
    for returned, result in program.main_results:
        shape = program.shapes[returned]
        assert shape is not None
        if shape not in numbers:
            numbers[shape] = len(kinds)
            kinds.append(OpKind("func.return", identity_rule(shape), Priority.FIXED, ignores_conservative=True))
        kind_of.append(numbers[shape])
        tensors.extend([(program.holders[returned], result)])
    return kinds, kind_of, tensors


def find_other_readers(program: Program, lists: Lists) -> dict[int, list[int]]:
    """Per value, the ops whose step reads its sharding although they neither compute nor use the value.

    Args:
        program: The program.
        lists: The tensors of its ops, and of the results of its main function.
    """
    tensors, starts = lists.numbers, lists.starts
    operands, operand_starts = program.operands.numbers, program.operands.starts
    results, result_starts = program.results.numbers, program.results.starts
    count = len(program.kind_of)
    readers: dict[int, list[int]] = {}
    for number in range(len(starts) - 1):
        place, end = starts[number], starts[number + 1]
        if number < count and place < end:
            # the tensors are nearly always the operands and the results
            for other in range(operand_starts[number], operand_starts[number + 1]):
                if place == end or tensors[place] != operands[other]:
                    break
                place += 1
            else:
                for other in range(result_starts[number], result_starts[number + 1]):
                    if place == end or tensors[place] != results[other]:
                        break
                    place += 1
        if place < end:
            for index in range(place, end):
                value = tensors[index]
                if (
                    number >= count
                    or not _holds(operands, operand_starts[number], operand_starts[number + 1], value)
                    and not _holds(results, result_starts[number], result_starts[number + 1], value)
                ):
                    readers.setdefault(value, []).append(number)
    return readers


def _holds(numbers: array[int], start: int, end: int, number: int) -> bool:
    """Whether a part of an array holds a number."""
    for place in range(start, end):  # noqa: SIM110 (the compiled core takes a loop over numbers)
        if numbers[place] == number:
            return True
    return False


def count_uses(program: Program) -> array[int]:
    """Per value, the number of its uses."""
    starts = program.users.starts
    found = zeros(len(starts) - 1)
    counts = found
    for value in range(len(starts) - 1):
        counts[value] = starts[value + 1] - starts[value]
    return found


def find_without_single_use(program: Program) -> bytearray:
    """Per value, whether it is not a scalar and has no use or several."""
    starts = program.users.starts
    found = bytearray(len(program.shapes))
    for value, shape in enumerate(program.shapes):
        if starts[value + 1] - starts[value] != 1 and shape != ():
            found[value] = 1
    return found


def classify_readers(program: Program, apart: Iterable[int]) -> bytearray:
    """Per value, which ops read its sharding: `OWNER_AND_USERS`, `LISTED`, or 0 if others may read it too.

    Args:
        program: The program.
        apart: Values that other ops read, besides those with siblings.
    """
    found = bytearray([OWNER_AND_USERS]) * len(program.shapes)
    starts, holders = program.users.starts, program.holders
    for value, to_revisit in program.notified.items():
        users = starts[value + 1] - starts[value]
        found[value] = LISTED if holders[value] == value and len(to_revisit) == 1 + users else 0
    for value in (*program.siblings, *apart):
        found[value] = 0
    return found
