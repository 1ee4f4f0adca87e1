"""The phase in which a run erases each dead op.

An op is dead when its results have no use left, whatever the shardings are. So every run over a program erases the same
ops in the same phases, and visits the same other ops because of that.

Source: docs/semantics/propagation.md#dead-ops
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Visit
from pyshardy.propagation.trace import ERASED


class Erasures:
    """The dead ops of a program. All are erased in the first sweep.

    Args:
        program: The program.
        visits: The record of a run over it.

    Attributes:
        turns: Per erased op, the op in whose turn it is erased.
        woken: Some ops are visited because another one was erased. Per such op, the ops in whose turns it is visited.
    """

    def __init__(self, program: Program, visits: Sequence[Visit]) -> None:
        self.program = program
        self.turns = _turns(program, [visit[1] for visit in visits if visit[0] == ERASED])
        self.woken: dict[int, list[int]] = {}
        for op in sorted(self.turns):
            turn = self.turns[op]
            for owner in self.visited_after(op, self._erased_by(turn)):
                self.woken.setdefault(owner, []).append(turn)

    def _erased_by(self, turn: int) -> Callable[[int], bool]:
        return lambda op: self.turns.get(op, turn + 1) <= turn

    def visited_after(self, op: int, is_erased: Callable[[int], bool]) -> Iterator[int]:
        """The ops that are visited, or erased, next because an op was erased: those that compute its operands.

        Args:
            op: The erased op.
            is_erased: Whether an op is erased by now.
        """
        program = self.program
        for value in program.operands[op]:
            owner = program.owners[value]
            if owner >= 0 and value in program.results[owner]:
                users = {user for user in program.users[value] if not is_erased(user)}
                if len(users) <= 1:
                    yield owner

    def inner(self, op: int) -> Iterator[int]:
        """The ops directly in the regions of an op, the last one first."""
        parents = self.program.parents
        end = op + 1
        while end < len(parents) and parents[end] >= op:
            end += 1
        return (inner for inner in range(end - 1, op, -1) if parents[inner] == op)


def _turns(program: Program, erased: Sequence[int]) -> Mapping[int, int]:
    """Per erased op, the op in whose turn it is erased.

    Args:
        program: The program.
        erased: The erased ops in order, without those that are erased with the op around them.
    """
    found: dict[int, int] = {}
    latest = -1
    for op in erased:
        latest = found[op] = max(latest, op)
    parents = program.parents
    for op in sorted(found):
        inner = op + 1
        while inner < len(parents) and parents[inner] >= op:
            if inner not in found and parents[inner] in found:
                found[inner] = found[parents[inner]]
            inner += 1
    return found
