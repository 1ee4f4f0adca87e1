"""How often ops run per run of the main function, through calls, loops and conditionals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from pyshardy.ir.functions import CALL, calls, main_function
from pyshardy.ir.nodes import Block, Op, Value, walk
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbols import post_order
from pyshardy.ir.trip_counts import LOOP, TripCounts
from pyshardy.rules.properties import CONDITIONALS

Known = tuple[tuple[int, int], ...]
"""The arguments of a function that are known numbers: pairs of index and number."""


class Runs(NamedTuple):
    """How often an op runs.

    Attributes:
        times: The number of runs; a loop with an unknown number of rounds counts as one round.
        is_exact: Whether every loop around it makes a known number of rounds.
        is_in_loop: Whether it is in a loop.
        is_counted: Whether it is on the most expensive path through all conditionals; if not, `times` counts its runs
            on the path that contains it.
    """

    times: int = 1
    is_exact: bool = True
    is_in_loop: bool = False
    is_counted: bool = True

    def plus(self, other: Runs) -> Runs:
        """The sum over two places; a place that is not counted adds nothing to one that is."""
        is_in_loop = self.is_in_loop or other.is_in_loop
        if self.is_counted != other.is_counted:
            return (self if self.is_counted else other)._replace(is_in_loop=is_in_loop)
        return Runs(self.times + other.times, self.is_exact and other.is_exact, is_in_loop, self.is_counted)

    def in_loop(self, rounds: int | None) -> Runs:
        """The runs in all rounds of a loop; `rounds` is None if unknown."""
        times = self.times * (1 if rounds is None else rounds)
        return Runs(times, self.is_exact and rounds is not None, True, self.is_counted)


Counts = dict[Op, Runs]


def run_counts(root: Op, counts: Callable[[Op], bool], cost: Callable[[Op], int]) -> Counts:
    """How often some ops run; ops that never run are left out.

    At most one branch of a conditional runs. The branch in which these ops cost most is counted, the first if several.

    Args:
        root: The module.
        counts: Whether an op counts.
        cost: The cost of one run of such an op.
    """
    return _Counter(root, counts, cost).count()


class _Counter:
    """Counts function by function, once for all calls with the same known numbers."""

    def __init__(self, root: Op, counts: Callable[[Op], bool], cost: Callable[[Op], int]) -> None:
        self.counts, self.cost = counts, cost
        self.main = main_function(root)
        self.trips = TripCounts(root)
        self.order = post_order(root)
        self.functions: dict[str, Op] = {function.attrs["sym_name"]: function for function in self.order}
        self.with_loops: set[str] = set()
        for name, function in self.functions.items():
            if ops_named(function, (LOOP,)) or any(call.attrs["callee"] in self.with_loops for call in calls(function)):
                self.with_loops.add(name)
        self.found: dict[tuple[str, Known], Counts] = {}

    def count(self) -> Counts:
        """The counts of the main function."""
        ways = self._ways_to_call()
        for function in self.order:
            for known in ways.get(function.attrs["sym_name"], ()):
                self.found[function.attrs["sym_name"], known] = self._in_function(function, known)
        found = self.found.get((self.main.attrs["sym_name"], ()), {})
        return {op: runs for op, runs in found.items() if runs.times}

    def _ways_to_call(self) -> dict[str, dict[Known, None]]:
        """The sets of known numbers with which every function is called."""
        ways: dict[str, dict[Known, None]] = {self.main.attrs["sym_name"]: {(): None}}
        for function in reversed(self.order):
            for known in ways.get(function.attrs["sym_name"], ()):
                for call in calls(function):
                    if call.attrs["callee"] in self.functions:
                        way = self._known_at(call, _by_argument(function, known))
                        ways.setdefault(call.attrs["callee"], {})[way] = None
        return ways

    def _known_at(self, call: Op, known: Mapping[Value, int]) -> Known:
        """The known numbers that a call passes, if they matter."""
        if call.attrs["callee"] not in self.with_loops:
            return ()
        numbers = [self.trips.constant(operand, known) for operand in call.operands]
        return tuple((index, number) for index, number in enumerate(numbers) if number is not None)

    def _in_function(self, function: Op, known: Known) -> Counts:
        arguments = _by_argument(function, known)
        return _sum(self._in_block(block, arguments) for block in function.region.blocks)

    def _in_block(self, block: Block, known: Mapping[Value, int]) -> Counts:
        return _sum(self._of(op, known) for op in block if op.regions or op.name == CALL or self.counts(op))

    def _of(self, op: Op, known: Mapping[Value, int]) -> Counts:
        """How often ops run per run of this op."""
        if self.counts(op):
            return {op: Runs()}
        if op.name == CALL:
            return self.found.get((op.attrs["callee"], self._known_at(op, known)), {})
        inside = [_sum(self._in_block(block, known) for block in region.blocks) for region in op.regions]
        if not any(inside):
            return {}
        if op.name == LOOP:
            rounds = self.trips.trip_count(op, known)
            checks = None if rounds is None else rounds + 1
            return _sum((_in_loop(inside[0], checks), _in_loop(inside[1], rounds)))
        return self._dearest(inside) if op.name in CONDITIONALS else _sum(inside)

    def _dearest(self, branches: list[Counts]) -> Counts:
        costs = [
            sum(runs.times * self.cost(op) for op, runs in branch.items() if runs.is_counted) for branch in branches
        ]
        best = costs.index(max(costs))
        others = ({op: runs._replace(is_counted=False) for op, runs in branch.items()} for branch in branches)
        return _sum(branch if index == best else other for index, (branch, other) in enumerate(zip(branches, others)))


def _by_argument(function: Op, known: Known) -> dict[Value, int]:
    arguments = function.region.blocks[0].args
    return {arguments[index]: number for index, number in known}


def _in_loop(counts: Counts, rounds: int | None) -> Counts:
    return {op: runs.in_loop(rounds) for op, runs in counts.items()}


def _sum(parts: Iterable[Counts]) -> Counts:
    found: Counts = {}
    for part in parts:
        for op, runs in part.items():
            found[op] = found[op].plus(runs) if op in found else runs
    return found


def counted_ops(root: Op, counts: Counts) -> list[Op]:
    """The counted ops, in program order."""
    return [op for function in root.region.block for op in walk(function) if op in counts]
