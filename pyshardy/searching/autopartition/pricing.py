"""The rough estimate of a candidate: time and memory from propagated shardings, without partitioning the program.

It follows `pyshardy.costing` where that is cheap. Rooflines, prices of collectives and the overlap on streams are the
same. Two things are rough, as there is no per-device program yet. Fusion is decided op by op, on unsharded tensors. And
memory is that of values from their op to their last use, in program order: costing plans the memory of kernels, in the
order of a compiler. The search ranks candidates by rough estimates. The figures of a plan come from exact ones.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import replace
from typing import Final

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.fusion import can_fuse, is_expensive
from pyshardy.costing.step_cost import StepCost
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.run import propagate_program
from pyshardy.reshard.plan import Shardings
from pyshardy.rules.properties import EDGES
from pyshardy.searching.autopartition.op_prices import (
    ALIASES,
    COMBINING,
    UNIFORM,
    OpPrice,
    OpPricer,
    StaticOp,
)
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.streams import CandidateTasks

_ADD: Final = "stablehlo.add"
_LOOP: Final = "stablehlo.while"
_RESHAPED: Final = frozenset(("stablehlo.reshape", "stablehlo.transpose"))


class RoughPricer:
    """Prices candidates of one problem.

    Args:
        problem: The problem; if layers repeat, the one with three of them.
        tied: The positions of the outputs that replace inputs in the next step.
    """

    def __init__(self, problem: Problem, tied: Collection[int] = ()) -> None:
        self.problem, self.tied = problem, tied
        self.program = problem.program
        self.ops, self.topology = OpPricer(problem), problem.topology
        self._prices: dict[Hashable, OpPrice] = {}
        self._sizes: dict[Hashable, float] = {}
        self._stored = self._find_stored()
        self._statics = self._find_statics()
        self._last = self._find_last_uses()
        self._size_keys: dict[Hashable, int] = {}
        self._size_key = [
            self._size_keys.setdefault((shape, size), len(self._size_keys))
            for shape, size in zip(self.program.shapes, problem.bytes)
        ]

    def propagate(self, shardings: dict[int, TensorSharding]) -> Shardings:
        """The propagated sharding of every value.

        Args:
            shardings: The shardings of inputs and outputs, by the number of the value.

        Raises:
            ShardyError: The shardings do not fit their values.
        """
        given = list(self.program.shardings)
        for value, sharding in shardings.items():
            given[value] = sharding
        return propagate_program(replace(self.program, shardings=tuple(given)), PropagateOptions()).shardings

    def price(self, shardings: dict[int, TensorSharding], base_bytes: float) -> StepCost:
        """The rough estimate for inputs and outputs with these shardings.

        Args:
            shardings: The shardings of inputs and outputs, by the number of the value.
            base_bytes: The bytes per device of the inputs, and of the outputs that replace them in the next step.

        Raises:
            ShardyError: The shardings do not fit their values.
        """
        return self._price_all(self.propagate(shardings), base_bytes)

    def _price_all(self, shardings: Shardings, base_bytes: float) -> StepCost:
        streams = CandidateTasks(self.topology.hardware.overlaps_products)
        prices = self._prices
        extras = []
        for static in self._statics:
            current = tuple([shardings[value] if value >= 0 else None for value in static.tensors])
            key = (static.number, current)
            price = prices.get(key)
            if price is None:
                price = prices[key] = self.ops.price(static, current)
            extras.append(price.extra)
            streams.add(static, price)
        for returned, result in self.program.main_results:
            after = shardings[result]
            before = shardings[returned]
            if after is not None and before is not after:
                shape = self.program.shapes[returned] or ()
                sent = self.ops.send(before, after, shape, self.problem.bytes[returned], False)
                if sent.seconds:
                    streams.send(streams.makers.get(returned, ()), sent, 1)
        peak = self._peak(shardings, base_bytes, extras)
        return StepCost(streams.end(), peak, streams.communication)

    def _peak(self, shardings: Shardings, base_bytes: float, extras: list[float]) -> float:
        """The peak memory of a device that runs the ops in program order, in bytes."""
        keys, sizes = self._size_key, self._sizes
        peak = held = base_bytes + sum(size / self.ops.shard_count(shardings[value]) for value, size in self._outputs)
        for extra, (born, dying) in zip(extras, self._last):
            for value, count in born:
                key = (keys[value], shardings[value])
                size = sizes.get(key)
                if size is None:
                    size = sizes[key] = self._local_bytes(value, shardings[value])
                held += size * count
            if held + extra > peak:
                peak = held + extra
            for value, count in dying:
                key = (keys[value], shardings[value])
                held -= sizes.get(key, 0.0) * count
        return peak

    def _local_bytes(self, value: int, sharding: TensorSharding | None) -> float:
        return self.ops.elements(self.program.shapes[value] or (), sharding) * self.problem.bytes[value]

    # Facts that do not depend on the candidate

    def _find_stored(self) -> list[bool]:
        """Per value, whether it is in memory: a result of an element-wise op that fuses into all its users is not."""
        program = self.program
        stored = [True] * len(program.shapes)
        names = [kind.name for kind in program.kinds]
        returned = {pair.returned for pair in program.main_results}
        loops = [can_fuse(name) for name in names]
        for number, kind in enumerate(program.kind_of):
            if not loops[kind]:
                continue
            name = names[kind]
            is_uniform = name in UNIFORM or all(not program.shapes[value] for value in program.operands[number])
            for value in program.results[number]:
                users = program.users[value]
                fuses = all(loops[program.kind_of[user]] for user in users)
                if not users or value in returned:
                    continue
                if is_uniform or (fuses and (len(users) == 1 or not is_expensive(name))):
                    stored[value] = False
        return stored

    def _find_statics(self) -> list[StaticOp]:
        """The ops that are priced, without those in bodies of reductions and the like."""
        program = self.program
        known: dict[Hashable, int] = {}
        found = []
        added_up = self._find_added_up()
        for number in range(len(program.kind_of)):
            kind = program.kind(number)
            if not self.problem.times[number]:
                continue
            tensors = program.tensors[number]
            operands = len(tensors) - 1 if kind.name in EDGES else len(program.operands[number])
            if not tensors:
                tensors = (*program.operands[number], *program.results[number])
                operands = len(program.operands[number])
            if not tensors:
                continue
            shapes = tuple([program.shapes[value] or () if value >= 0 else () for value in tensors])
            sizes = tuple([self.problem.bytes[value] if value >= 0 else 0.0 for value in tensors])
            stored = tuple([self._stored[value] if value >= 0 else False for value in tensors])
            parent = program.parents[number]
            if parent >= 0 and program.kind(parent).name in COMBINING:
                continue
            cost = self.problem.kinds[number]
            key = (program.kind_of[number], cost, shapes, sizes, stored)
            same = known.setdefault(key, len(known))
            times = self.problem.times[number]
            sums = added_up.get(number, times)
            found.append(StaticOp(number, kind, cost, same, tensors, operands, shapes, sizes, stored, times, sums))
        return found

    def _find_added_up(self) -> dict[int, int]:
        """The ops whose results a loop only adds up, with how often the loop runs: see `costing.moved_sums`."""
        program, found = self.program, {}
        for number, parent in enumerate(program.parents):
            if parent < 0 or program.kind(number).name != _ADD or program.kind(parent).name != _LOOP:
                continue
            (result,), (first, second) = program.results[number], program.operands[number]
            for state, added in ((first, second), (second, first)):
                is_state = program.owners[state] == parent and state not in program.results[parent]
                if is_state and self._is_only_in(state, number) and self._is_returned(result, parent):
                    maker = self._maker_of_sum(added)
                    if maker >= 0 and program.parents[maker] == parent:
                        found[maker] = self.problem.times[parent]
        return found

    def _is_only_in(self, value: int, op: int) -> bool:
        return tuple(self.program.users[value]) == (op,)

    def _is_returned(self, value: int, parent: int) -> bool:
        users, program = tuple(self.program.users[value]), self.program
        return (
            len(users) == 1
            and program.kind(users[0]).name == "stablehlo.return"
            and program.parents[users[0]] == parent
        )

    def _maker_of_sum(self, value: int) -> int:
        """The op that computes a value, before changes of its shape that nothing else reads."""
        maker = self.program.owners[value]
        while self.program.kind(maker).name in _RESHAPED and len(self.program.users[value]) == 1:
            value = self.program.operands[maker][0]
            maker = self.program.owners[value]
        return maker if len(self.program.users[value]) == 1 else -1

    def _find_last_uses(self) -> list[tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]]:
        """Per priced op, the stored values that it produces, and those that no later op uses.

        Every value comes with the number of copies alive at a time. A middle layer stands for several. A value that it
        makes for another stretch, such as the backward pass, is alive once per layer.
        """
        program = self.program
        self._is_output = {pair.returned for pair in program.main_results}
        order = {static.op: place for place, static in enumerate(self._statics)}
        last = self._find_ends()
        end = len(self._statics)
        self._outputs = [
            (fact.value, fact.bytes)
            for place, fact in enumerate(self.problem.outputs)
            if fact.value >= 0 and place not in self.tied
        ]
        made: list[list[tuple[int, int]]] = [[] for _ in self._statics]
        dead: list[list[tuple[int, int]]] = [[] for _ in range(end + 1)]
        inputs = {one.value for one in self.problem.inputs}
        for place, static in enumerate(self._statics):
            if static.kind.name in ALIASES:
                continue
            for value in program.results[static.op]:
                if (
                    value in inputs
                    or value in self._is_output
                    or not self._stored[value]
                    or place != order.get(program.owners[value], place)
                ):
                    continue
                at = last.get(value, place)
                count = self._alive_together(static, at, end)
                made[place].append((value, count))
                dead[at].append((value, count))
        return [(tuple(one), tuple(other)) for one, other in zip(made, dead)]

    def _find_ends(self) -> dict[int, int]:
        """By value the last op that reads it, directly or through values that fuse into their users."""
        found: dict[int, int] = {}
        for place in reversed(range(len(self._statics))):
            static = self._statics[place]
            results = static.tensors[static.operands :]
            is_alias = static.kind.name in ALIASES
            ends = [found.get(value, place) for value in results if is_alias or not self._stored[value]]
            end = max(ends, default=place)
            for value in static.tensors[: static.operands]:
                found[value] = max(end, found.get(value, end))
        return found

    def _alive_together(self, static: StaticOp, last: int, end: int) -> int:
        """The number of copies of an op's result that are alive at a time: one, or one per layer."""
        repeats = self._repeats(static)
        if repeats == 1:
            return 1
        user = self._statics[last] if last < end else None
        if user is None or user.times < static.times or self._stretch(user) != self._stretch(static):
            return repeats
        return 1

    def _repeats(self, static: StaticOp) -> int:
        layers = self.problem.layers
        return layers[static.op][1] if layers else 1

    def _stretch(self, static: StaticOp) -> int:
        layers = self.problem.layers
        return layers[static.op][0] if layers else -1
