"""A program with repeated layers, as one in which each stands for all that are like it.

Layers are stretches of the list of ops that repeat: the same kinds of ops on the same shapes, several times in a row.
Of every stretch three rounds stay: the first, the second, which stands for all in the middle, and the last, which
takes what it took from the round before it from the second. As inputs of repeated layers are sharded alike, shardings
propagate as in the whole program, but for what depends on the number of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from pyshardy.autopartition.problem import Problem
from pyshardy.graph.program import NO_VALUE, FunctionResult, OpNode, Program, ValueInfo

_LEAST_ROUNDS: Final = 4
_LEAST_SHARE: Final = 0.02
_MOST_STRETCHES: Final = 12
_MOST_PERIOD: Final = 3000


class Stretch(NamedTuple):
    """Ops that repeat.

    Attributes:
        start: The first op.
        period: How many ops a round has.
        rounds: How many rounds there are.
    """

    start: int
    period: int
    rounds: int

    @property
    def end(self) -> int:
        """The op behind the last."""
        return self.start + self.period * self.rounds


def find_stretches(signatures: Sequence[int]) -> list[Stretch]:
    """The stretches of a list that repeat, those that save most first chosen, in order of their start.

    >>> find_stretches([9, 1, 2, 1, 2, 1, 2, 1, 2, 7])
    [Stretch(start=1, period=2, rounds=4)]
    >>> find_stretches([1, 2, 3])
    []
    """
    marks = np.asarray(signatures, dtype=np.int64).copy()
    fresh = -1
    found: list[Stretch] = []
    for _ in range(_MOST_STRETCHES):
        best = _best_stretch(marks)
        if best is None or (best.rounds - 3) * best.period < _LEAST_SHARE * len(marks) - 1:
            break
        found.append(best)
        for place in range(best.start, best.end):
            marks[place] = fresh
            fresh -= 1
    return sorted(found)


def _best_stretch(marks: np.ndarray) -> Stretch | None:
    best, saved = None, 0
    for period in range(1, min(len(marks) // _LEAST_ROUNDS, _MOST_PERIOD) + 1):
        same = marks[:-period] == marks[period:]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
        if not len(edges):
            continue
        lengths = edges[1::2] - edges[::2]
        longest = int(lengths.argmax())
        rounds = int(lengths[longest]) // period + 1
        if rounds >= _LEAST_ROUNDS and (rounds - 3) * period > saved:
            best, saved = Stretch(int(edges[::2][longest]), period, rounds), (rounds - 3) * period
    return best


def fold_layers(problem: Problem) -> Problem:
    """The problem with repeated layers folded; the same one if nothing repeats."""
    program = problem.program
    signatures, children = _signatures(program)
    stretches = [_whole_ops(stretch, children) for stretch in find_stretches(signatures)]
    stretches = [stretch for stretch in stretches if stretch.rounds >= _LEAST_ROUNDS]
    return _Folder(problem, stretches).folded() if stretches else problem


def _signatures(program: Program) -> tuple[list[int], list[bool]]:
    """Per op a number that is equal where ops are alike, and whether it is inside of an op that repeats."""
    known: dict[object, int] = {}
    found, inside = [], []
    top = {number for number, parent in enumerate(program.parents) if parent < 0 or program.parents[parent] < 0}
    for number, kind in enumerate(program.kind_of):
        parent = program.parents[number]
        shapes = tuple([program.shapes[value] for value in program.results[number]])
        operands = tuple([program.shapes[value] for value in program.operands[number]])
        within = number - parent if number not in top else None
        key = (program.kinds[kind].name, id(program.kinds[kind].rule), shapes, operands, within)
        found.append(known.setdefault(key, len(known)))
        inside.append(within is not None)
    return found, inside


def _whole_ops(stretch: Stretch, inside: Sequence[bool]) -> Stretch:
    """The stretch from the first round on that begins with an op that is in no other, up to the last that ends so."""
    start, period, rounds = stretch
    shift = next((shift for shift in range(period) if not inside[start + shift]), None)
    if shift is None:
        return Stretch(start, period, 0)
    rounds -= shift > 0
    end = start + shift + period * rounds
    return Stretch(start + shift, period, rounds - (end < len(inside) and inside[end]))


class _Folder:
    """One folding: which ops stay, and what stands for the others."""

    def __init__(self, problem: Problem, stretches: Sequence[Stretch]) -> None:
        self.problem, self.program = problem, problem.program
        count = len(self.program.kind_of)
        self.stand_in = list(range(count))
        self.weight = [1] * count
        self.layers = [(-1, 1)] * count
        for place, (start, period, rounds) in enumerate(stretches):
            for number in range(start, start + period * rounds):
                self.layers[number] = place, 1
            middle = start + period
            for round_ in range(1, rounds - 1):
                for offset in range(period):
                    self.stand_in[start + period * round_ + offset] = middle + offset
            for offset in range(period):
                self.weight[middle + offset] = rounds - 2
                self.layers[middle + offset] = place, rounds - 2
        self.kept = [number for number in range(count) if self.stand_in[number] == number]
        self.main = self.program.owners[problem.inputs[0].value] if problem.inputs else 0
        self.owned: dict[int, list[int]] = {}
        for value, owner in enumerate(self.program.owners):
            self.owned.setdefault(owner, []).append(value)

    def folded(self) -> Problem:
        """The problem with fewer ops."""
        program, problem = self.program, self.problem
        value_of = self._stand_ins_of_values()
        self.kept = self._without_dead(value_of)
        op_number = {number: place for place, number in enumerate(self.kept)}
        results = [pair for pair in program.main_results if value_of[pair.returned] == pair.returned]
        values = sorted(self._values_used(value_of, results))
        number_of = {value: place for place, value in enumerate(values)}
        number_of[NO_VALUE] = NO_VALUE

        def renumber(items: Sequence[int]) -> tuple[int, ...]:
            return tuple([number_of[value_of[item] if item >= 0 else item] for item in items])

        ops = [
            OpNode(
                program.kind(number),
                renumber(program.operands[number]),
                renumber(program.results[number]),
                renumber(program.tensors[number]),
                op_number.get(program.parents[number], -1),
                program.views.get(number),
            )
            for number in self.kept
        ]
        users: list[list[int]] = [[] for _ in values]
        for place, op in enumerate(ops):
            for value in op.operands:
                users[value].append(place)
        infos = [self._info(value, number_of, value_of, op_number, users[place]) for place, value in enumerate(values)]
        pairs = tuple(FunctionResult(number_of[pair.returned], number_of[pair.result]) for pair in results)
        groups = [tuple(dict.fromkeys(renumber([value for value in group if value_of[value] in number_of])))
                  for group in program.groups]  # fmt: skip
        shardings = [program.shardings[value] for value in values]
        folded = Program.of(program.meshes, infos, ops, shardings, pairs, tuple(filter(None, groups)))
        return replace(
            problem,
            program=folded,
            inputs=tuple(one._replace(value=number_of.get(one.value, NO_VALUE)) for one in problem.inputs),
            outputs=tuple(one._replace(value=number_of.get(one.value, NO_VALUE)) for one in problem.outputs),
            times=[problem.times[number] * self.weight[number] for number in self.kept],
            bytes=[problem.bytes[value] for value in values],
            layers=[self.layers[number] for number in self.kept],
        )

    def _stand_ins_of_values(self) -> list[int]:
        found = list(range(len(self.program.shapes)))
        for owner, values in self.owned.items():
            if owner >= 0 and self.stand_in[owner] != owner:
                for value, other in zip(values, self.owned[self.stand_in[owner]]):
                    found[value] = other
        return found

    def _without_dead(self, value_of: Sequence[int]) -> list[int]:
        """The ops that stay without those whose results only ops use that do not stay."""
        program = self.program
        used: set[int] = set()
        parents = {program.parents[number] for number in self.kept}
        found = []
        for number in reversed(self.kept):
            results = program.results[number]
            if program.kind(number).is_erasable and number not in parents and used.isdisjoint(results):
                continue
            used.update(value_of[value] for value in program.operands[number])
            found.append(number)
        return found[::-1]

    def _values_used(self, value_of: Sequence[int], results: Sequence[FunctionResult]) -> set[int]:
        program = self.program
        found: set[int] = set()
        for number in self.kept:
            for items in (program.operands[number], program.results[number], program.tensors[number]):
                found.update(value_of[item] for item in items if item >= 0)
            if number != self.main:
                found.update(self.owned.get(number, ()))
        found.update(pair.result for pair in results)
        found.update(value_of[pair.returned] for pair in results)
        holders = {value_of[program.holders[value]] for value in found if program.holders[value] >= 0}
        return found | holders

    def _info(
        self,
        value: int,
        number_of: dict[int, int],
        value_of: Sequence[int],
        op_number: dict[int, int],
        users: Sequence[int],
    ) -> ValueInfo:
        program = self.program
        holder, owner = program.holders[value], program.owners[value]
        told = program.notified.get(value)
        place = op_number.get(owner, -1)
        notified = (place, *users) if told is None else tuple(
            dict.fromkeys(op_number[self.stand_in[one]] for one in told if self.stand_in[one] in op_number)
        )  # fmt: skip
        siblings = program.siblings.get(value, ())
        return ValueInfo(
            program.shapes[value],
            NO_VALUE if holder < 0 else number_of[value_of[holder]],
            place,
            tuple(users),
            notified,
            tuple(number_of[other] for other in siblings if other in number_of),
        )
