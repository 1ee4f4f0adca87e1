# cython: boundscheck=False, initializedcheck=False
"""Ops that nobody uses: propagation removes them when its sweep reaches them.

Source: docs/semantics/propagation.md#dead-ops
"""

from __future__ import annotations

from pyshardy.propagation.prepare import count_uses, find_without_single_use
from pyshardy.propagation.program import Program

LIVE, DEAD, ERASED = 0, 1, 2
"""States of an op; a dead one is not erased yet."""


class DeadOps:
    """Which ops of a program are dead, and which were erased.

    Args:
        program: The program.

    Attributes:
        state: The state of every op.
        lacks_single_use: Per value, whether it is not a scalar and has no use or several, erased ops left out.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._uses_left = count_uses(program)
        self.lacks_single_use = find_without_single_use(program)
        self.state = self._find_dead()

    def _find_dead(self) -> bytearray:
        """The initial state of every op."""
        program = self.program
        count = len(program.kind_of)
        found = bytearray([LIVE]) * count
        owners, uses_left, starts = program.owners, self._uses_left, program.results.starts
        unused = {owners[value] for value in range(len(uses_left)) if not uses_left[value]}
        unused.update([number for number in range(count) if starts[number] == starts[number + 1]])
        for number in unused:
            if number >= 0 and self._is_dead(number):
                found[number] = DEAD
        return found

    @property
    def erased(self) -> list[int]:
        """The ops that were erased, in program order."""
        found = []
        number = self.state.find(ERASED)
        while number >= 0:
            found.append(number)
            number = self.state.find(ERASED, number + 1)
        return found

    def erase(self, number: int) -> list[tuple[set[int], int]]:
        """Erase a dead op, with the ops inside it first.

        Returns:
            Per operand of each erased op, in this order: the ops that still use it, and the op that computes it if at
            most one op uses it, else -1.
        """
        program, state = self.program, self.state
        changes: list[tuple[set[int], int]] = []
        for inner in range(len(state) - 1, number, -1) if self._holds_ops(number) else ():
            if program.parents[inner] == number and state[inner] != ERASED:
                changes += self.erase(inner)
        state[number] = ERASED
        for value in program.operands[number]:
            self._uses_left[value] -= 1
            self.lacks_single_use[value] = self._uses_left[value] != 1 and program.shapes[value] != ()
            users = {user for user in program.users[value] if state[user] != ERASED}
            owner = program.owners[value]
            is_result = owner >= 0 and value in program.results[owner]
            if is_result and state[owner] == LIVE and self._is_dead(owner):
                state[owner] = DEAD
            changes.append((users, owner if is_result and len(users) <= 1 else -1))
        return changes

    def _is_dead(self, number: int) -> bool:
        """Whether nobody uses an op that may be erased."""
        program, uses_left = self.program, self._uses_left
        if not program.kind(number).is_erasable:
            return False
        results, starts = program.results.numbers, program.results.starts
        for place in range(starts[number], starts[number + 1]):  # noqa: SIM110 (faster)
            if uses_left[results[place]]:
                return False
        return True

    def _holds_ops(self, number: int) -> bool:
        following = number + 1
        return following < len(self.state) and self.program.parents[following] == number
