"""The choices of Alpa's integer program: a strategy per cluster of ops, and what strategies cost alone and in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from search.alpa_prices import Layout, Prices

from pyshardy.costing.fusion import can_fuse
from pyshardy.propagation.program import OpKind
from pyshardy.rules.properties import PRODUCTS
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.searching.autopartition.problem import Problem

_HEADS = PRODUCTS | {"stablehlo.convolution"}
_EDGES = {"sdy.data_flow_edge", "sdy.func_data_flow_edge"}
_IN_PART: dict[str, tuple[int, ...]] = {
    "stablehlo.dynamic_update_slice": (0, -1),
    "stablehlo.scatter": (0, -1),
    "stablehlo.dynamic_slice": (0,),
    "stablehlo.slice": (0,),
    "stablehlo.gather": (0,),
}
"""The tensors of each op of which it reads or writes only a part."""
_LEANING = 0.01
"""The weight of a byte of an input, relative to a byte that is moved."""
_SPLIT = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)


@dataclass
class Cluster:
    """Ops that share a choice of strategy.

    Attributes:
        strategies: The strategies of the first op.
        seconds: The cost of each strategy within the cluster.
    """

    strategies: list[Layout]
    seconds: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.seconds = np.zeros(len(self.strategies))


class _Value(NamedTuple):
    """A tensor: the cluster that computes it, and its layout by strategy."""

    cluster: int
    layouts: tuple[Layout, ...]


class Graph:
    """The choices of a program, with their costs alone and in pairs.

    Args:
        problem: The program and the hardware.
        ties: The position of the input that an output replaces, by position of the output.

    Attributes:
        clusters: The choices.
        pairs: The cost of each pair of strategies, by pair of clusters.
        inputs: The cluster of each input.
    """

    def __init__(self, problem: Problem, ties: dict[int, int]) -> None:
        self.problem, self.program, self.prices = problem, problem.program, Prices(problem)
        self.clusters: list[Cluster] = []
        self.pairs: dict[tuple[int, int], np.ndarray[Any, Any]] = {}
        self.values: dict[int, _Value] = {}
        self.live: list[tuple[int, ...]] = []
        self._stored = self._find_stored()
        self.inputs = [self._free_value(fact.value) for fact in problem.inputs]
        ops = [op for op in range(len(self.program.kind_of)) if self._counts(op)]
        for op in ops:
            if self.program.kind(op).name in _EDGES:
                self._free_value(self.program.tensors[op][-1])
        for op in ops:
            self._add(op)
        self._prefer_parts()
        for place, tied in ties.items():
            pair = problem.outputs[place].value
            if pair < 0:  # of a layer that is left out
                continue
            returned = next(one.returned for one in self.program.main_results if one.result == pair)
            self._need(returned, self.values[problem.inputs[tied].value], 1)
        self._find_live(ops)

    def _prefer_parts(self) -> None:
        """Add a small cost per byte of inputs: slices are free, so smaller inputs must win among equal costs."""
        for fact, cluster in zip(self.problem.inputs, self.inputs):
            self.clusters[cluster].seconds += _LEANING * self.prices.kernel(1.0, 0.0, 1.0) * self.held(fact.value)

    def _counts(self, op: int) -> bool:
        """Whether an op has a rule and tensors that depend on inputs."""
        program = self.program
        rule, tensors = program.kind(op).rule, program.tensors[op]
        if rule is None or not self.problem.times[op] or len(tensors) != len(rule.tensors):
            return False
        return any(value >= 0 and program.shapes[value] for value in tensors)

    def _free_value(self, value: int) -> int:
        """Add a cluster that chooses the layout of a value."""
        shape = self.program.shapes[value] or ()
        layouts = [one for one in product(range(-1, len(shape)), repeat=len(self.prices.axes)) if self._fit(shape, one)]
        self.clusters.append(Cluster(layouts))
        self.values[value] = _Value(len(self.clusters) - 1, tuple(layouts))
        return len(self.clusters) - 1

    def _fit(self, sizes: Sequence[int], layout: Layout) -> bool:
        axes = self.prices.axes
        return all(
            size % prod(count for (_, count), place in zip(axes, layout) if place == dim) == 0
            for dim, size in enumerate(sizes)
        )

    def _add(self, op: int) -> None:
        kind, tensors = self.program.kind(op), self.program.tensors[op]
        rule = kind.rule
        assert rule is not None
        count = len(tensors) - 1 if kind.name in _EDGES else len(rule.operands)
        if kind.name in _EDGES:
            for source in tensors[:count]:
                self._need(source, self.values[tensors[-1]], self.problem.times[op])
            return
        known = [place for place in range(count) if tensors[place] in self.values]
        if not known:
            return  # its operands are constants
        if kind.name in _HEADS:
            cluster, factors = self._head(rule)
        else:
            cluster, factors = self._follow(rule, tensors, known)
        self._price(op, kind, rule, cluster, factors)
        for place in known:
            wanted = _Value(cluster, tuple(_layout(rule.operands[place], one) for one in factors))
            self._need(tensors[place], wanted, self.problem.times[op])
        for place in range(count, len(tensors)):
            if tensors[place] >= 0 and tensors[place] not in self.values:
                layouts = tuple(_layout(rule.tensors[place], one) for one in factors)
                self.values[tensors[place]] = _Value(cluster, layouts)

    def _can_split(self, rule: Rule) -> list[bool]:
        """Whether each factor may be sharded: without halo exchange, and only as the major part of all dimensions."""
        minor = {factor for tensor in rule.tensors for dim in tensor for factor in dim[1:]}
        kinds = rule.kinds or (FactorKind.PASS_THROUGH,) * len(rule.factor_sizes)
        return [
            kinds[factor] in _SPLIT and factor not in minor and factor not in rule.blocked
            for factor in range(len(rule.factor_sizes))
        ]

    def _head(self, rule: Rule) -> tuple[int, list[Layout]]:
        """Add a cluster for an op with a choice: every axis on a factor, or on none."""
        allowed = [factor for factor, is_free in enumerate(self._can_split(rule)) if is_free]
        layouts = [
            one for one in product([-1, *allowed], repeat=len(self.prices.axes)) if self._fit(rule.factor_sizes, one)
        ]
        self.clusters.append(Cluster(layouts))
        return len(self.clusters) - 1, layouts

    def _follow(self, rule: Rule, tensors: Sequence[int], known: list[int]) -> tuple[int, list[Layout]]:
        """The cluster of the largest operand, which the op follows."""
        sizes = [prod(self.program.shapes[tensors[place]] or ()) for place in known]
        leader = known[sizes.index(max(sizes))]
        value, can_split = self.values[tensors[leader]], self._can_split(rule)
        factors = []
        for layout in value.layouts:
            found = tuple(rule.operands[leader][dim][0] if dim >= 0 else -1 for dim in layout)
            found = tuple(factor if factor >= 0 and can_split[factor] else -1 for factor in found)
            factors.append(found if self._fit(rule.factor_sizes, found) else (-1,) * len(found))
        return value.cluster, factors

    def _need(self, value: int, wanted: _Value, times: int) -> None:
        """Add the cost of resharding a value to the wanted layouts."""
        if value not in self.values or not (shape := self.program.shapes[value]):
            return
        found, size = self.values[value], self.problem.bytes[value]
        send = self.prices.send
        if found.cluster == wanted.cluster:
            costs = [send(one, other, shape, size) for one, other in zip(found.layouts, wanted.layouts)]
            self.clusters[found.cluster].seconds += times * np.array(costs)
            return
        key = min(found.cluster, wanted.cluster), max(found.cluster, wanted.cluster)
        matrix = np.array([[send(one, other, shape, size) for other in wanted.layouts] for one in found.layouts])
        matrix = times * (matrix if key[0] == found.cluster else matrix.T)
        self.pairs[key] = self.pairs.get(key, 0.0) + matrix

    def _price(self, op: int, kind: OpKind, rule: Rule, cluster: int, factors: list[Layout]) -> None:
        """Add the cost of an op by strategy: its kernel, and all-reduces of partial sums."""
        problem, prices = self.problem, self.prices
        tensors, count = self.program.tensors[op], len(rule.operands)
        in_part = {place % len(tensors) for place in _IN_PART.get(kind.name, ())}
        is_reduction = [one is FactorKind.REDUCTION for one in rule.kinds] or [False] * len(rule.factor_sizes)
        costs = []
        for one in factors:
            moved = results = 0.0
            for place, (value, mapping) in enumerate(zip(tensors, rule.tensors)):
                shape = self.program.shapes[value] if value >= 0 else None
                if shape is None:
                    continue
                size = prices.local(shape, _layout(mapping, one)) * problem.bytes[value]
                moved += size if self._stored[value] and place not in in_part else 0.0
                results += size if place >= count else 0.0
            flops = 0.0
            if kind.name in _HEADS:
                flops = self._flops(op, kind, rule, one)
            used = [axis for axis, factor in zip(prices.axes, one) if factor >= 0 and is_reduction[factor]]
            costs.append(prices.kernel(moved, flops, problem.bytes[tensors[0]]) + prices.all_reduce(used, results))
        self.clusters[cluster].seconds += problem.times[op] * np.array(costs)

    def _flops(self, op: int, kind: OpKind, rule: Rule, factors: Layout) -> float:
        """The operations of a product on a device."""
        shards = prod(size for (_, size), factor in zip(self.prices.axes, factors) if factor >= 0)
        if kind.name in PRODUCTS:
            return 2.0 * prod(rule.factor_sizes) / shards
        result, kernel = (self.program.shapes[self.program.tensors[op][place]] or () for place in (2, 1))
        image = {factor for dim in rule.operands[0] for factor in dim}
        shared = {factor for dim in rule.operands[1] for factor in dim} & {f for dim in rule.results[0] for f in dim}
        features = prod(rule.factor_sizes[factor] for factor in shared - image)
        return 2.0 * prod(result) * prod(kernel) / features / shards

    def _find_stored(self) -> list[bool]:
        """Whether each value is in memory; values between elementwise ops are not."""
        program = self.program
        names = [program.kind(op).name for op in range(len(program.kind_of))]
        inputs = {fact.value for fact in self.problem.inputs}
        returned = {one.returned for one in program.main_results}
        found = []
        for value in range(len(program.shapes)):
            users = program.users[value]
            owner = program.owners[value]
            is_inside = 0 <= owner < len(names) and can_fuse(names[owner]) and users
            fuses = is_inside and all(can_fuse(names[user]) for user in users)
            found.append(not fuses or value in inputs or value in returned)
        return found

    def _find_live(self, ops: list[int]) -> None:
        """Find the values in memory when a product runs; inputs always are."""
        inputs = {fact.value for fact in self.problem.inputs}
        last: dict[int, int] = {}
        for place, op in enumerate(ops):
            last.update(dict.fromkeys(self.program.tensors[op], place))
        end = {one.returned for one in self.program.main_results}
        born: set[int] = set()
        for place, op in enumerate(ops):
            born.update(self.program.tensors[op])
            if self.program.kind(op).name in _HEADS:
                alive = {value for value in born if value in end or last[value] >= place} | inputs
                self.live.append(tuple(sorted(v for v in alive if v in self.values and self._stored[v])))

    def held(self, value: int) -> np.ndarray[Any, Any]:
        """The bytes of a value on a device, by the strategy of its cluster."""
        shape, size = self.program.shapes[value] or (), self.problem.bytes[value]
        return np.array([self.prices.local(shape, layout) * size for layout in self.values[value].layouts])


def _layout(mapping: Sequence[Sequence[int]], factors: Layout) -> Layout:
    """The dimension that every axis shards, from the factor that it shards."""
    places = {dim[0]: place for place, dim in enumerate(mapping)}
    return tuple(places.get(factor, -1) if factor >= 0 else -1 for factor in factors)
