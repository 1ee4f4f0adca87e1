"""Alpa's integer program, rebuilt: one strategy per op, collectives where strategies differ, memory as a limit.

After "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep Learning" (arXiv 2201.12023), within ops:
ops that compute little follow one of their operands; the others, and inputs, choose. HiGHS (`scipy.optimize.milp`)
solves it. What its costs are made of is what `pyshardy.cost` is made of too: rates of the chip, and times of collectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from search.evaluator import Evaluator, Spec

from pyshardy.autopartition.problem import Problem
from pyshardy.core.boxes import local_shape
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import CollectiveModel, collective_seconds
from pyshardy.costing.fusion import can_fuse
from pyshardy.costing.program import Traffic
from pyshardy.graph.program import OpKind
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.collectives import CollectiveKind
from pyshardy.results.search_problem import problem_of
from pyshardy.rules.properties import PRODUCTS
from pyshardy.rules.rule import FactorKind, Rule

Layout = tuple[int, ...]
"""Per mesh axis the dimension, or the factor, that it shards; -1 for none."""
_HEADS = PRODUCTS | {"stablehlo.convolution"}
_EDGES = {"sdy.data_flow_edge", "sdy.func_data_flow_edge"}
_IN_PART: dict[str, tuple[int, ...]] = {
    "stablehlo.dynamic_update_slice": (0, -1),
    "stablehlo.scatter": (0, -1),
    "stablehlo.dynamic_slice": (0,),
    "stablehlo.slice": (0,),
    "stablehlo.gather": (0,),
}
"""By op the tensors of which it reads or writes a part alone."""
_LEANING = 0.01
"""What a byte of an input counts beside one that is moved."""
_SPLIT = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)


class Answer(NamedTuple):
    """What the integer program says.

    Attributes:
        specs: The shardings by the names of inputs.
        objective: Seconds, by its own sum of costs.
        gap: How far it may be from the best of that sum, as a part of it.
        is_optimal: Whether it is the best of that sum.
        strategies: How many strategies there are to choose from.
    """

    specs: dict[str, Spec]
    objective: float
    gap: float
    is_optimal: bool
    strategies: int


@dataclass
class Cluster:
    """Ops that share a choice.

    Attributes:
        strategies: What the first of them may do.
        seconds: What each strategy costs inside.
    """

    strategies: list[Layout]
    seconds: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.seconds = np.zeros(len(self.strategies))


class _Value(NamedTuple):
    """A tensor: the cluster that makes it, and its layout by strategy."""

    cluster: int
    layouts: tuple[Layout, ...]


class Prices:
    """Seconds of collectives and kernels, by layouts.

    Args:
        problem: The program and the hardware.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.mesh = problem, problem.mesh
        self.axes = tuple(problem.mesh.axes)
        self.send = cache(self._send)

    def sharding(self, layout: Layout, rank: int) -> TensorSharding:
        dims = [[name for (name, _), place in zip(self.axes, layout) if place == dim] for dim in range(rank)]
        return TensorSharding(self.problem.mesh_name, dims)

    def local(self, shape: tuple[int, ...], layout: Layout) -> int:
        """Elements on a device."""
        return prod(shape) // prod(size for (_, size), place in zip(self.axes, layout) if place >= 0)

    def _send(self, before: Layout, after: Layout, shape: tuple[int, ...], size: float) -> float:
        """Seconds to bring a tensor from one layout to another."""
        if before == after:
            return 0.0
        one, other = self.sharding(before, len(shape)), self.sharding(after, len(shape))
        total = 0.0
        for step in plan_collectives(one, other, self.mesh, self.mesh, shape) or ():
            if step.kind is CollectiveKind.ALL_SLICE:
                continue
            axes = [axis for part in step.axes for axis in part] + [axis for part in step.params for axis in part.axes]
            group = 2 if step.kind is CollectiveKind.COLLECTIVE_PERMUTE else step.group_size(self.mesh)
            held = [int(prod(local_shape(of, self.mesh, shape)) * size) for of in (step.before, step.after)]
            sent = int(step.sent_bytes_per_device(1, shape, self.mesh) * size)
            names = tuple((axis.name, dict(self.axes)[axis.name]) for axis in axes) or None
            total += self.collective(step.kind.value, names, group, held, sent)
        return total

    def all_reduce(self, used: Sequence[tuple[str, int]], size: float) -> float:
        """Seconds to add up what devices along some axes hold."""
        group = prod(count for _, count in used)
        if group == 1:
            return 0.0
        sent = int(2 * (group - 1) * size / group)
        return self.collective("all_reduce", tuple(used), group, [int(size)] * 2, sent)

    def collective(self, kind: str, axes: Any, group: int, held: Sequence[int], sent: int) -> float:
        problem = self.problem
        traffic = Traffic(kind, problem.mesh_name, axes, group, held[0], held[1], sent)
        return collective_seconds(traffic, problem.topology, problem.collectives)

    def kernel(self, moved: float, flops: float, size: float) -> float:
        """Seconds of what reads and writes so many bytes, or computes that much."""
        chip = self.problem.topology.hardware
        dtype = {1.0: "i8", 2.0: "bf16", 8.0: "f64"}.get(size, "f32")
        rate = chip.matrix_flops_per_s(dtype) * chip.matrix_efficiency
        return max(moved / (chip.memory_bytes_per_s * chip.memory_efficiency), flops / rate)


class Graph:
    """The choices of a program, and what they cost alone and in pairs.

    Args:
        problem: The program and the hardware.
        ties: By the position of an output the position of the input whose place it takes.

    Attributes:
        clusters: The choices.
        pairs: By two clusters what each pair of their strategies costs.
        inputs: Per input its cluster.
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
            returned = next(one.returned for one in self.program.main_results if one.result == pair)
            self._need(returned, self.values[problem.inputs[tied].value], 1)
        self._find_live(ops)

    def _prefer_parts(self) -> None:
        """Let of two answers that cost the same that one win whose inputs are smaller: slices cost nothing."""
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
        """A cluster that chooses the layout of a value."""
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
            return  # of constants alone
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
        """Per factor whether it may be sharded: without exchange, and as the major part of every dimension it is in."""
        minor = {factor for tensor in rule.tensors for dim in tensor for factor in dim[1:]}
        kinds = rule.kinds or (FactorKind.PASS_THROUGH,) * len(rule.factor_sizes)
        return [
            kinds[factor] in _SPLIT and factor not in minor and factor not in rule.blocked
            for factor in range(len(rule.factor_sizes))
        ]

    def _head(self, rule: Rule) -> tuple[int, list[Layout]]:
        """A choice of its own: every axis on a factor, or on none."""
        allowed = [factor for factor, is_free in enumerate(self._can_split(rule)) if is_free]
        layouts = [
            one for one in product([-1, *allowed], repeat=len(self.prices.axes)) if self._fit(rule.factor_sizes, one)
        ]
        self.clusters.append(Cluster(layouts))
        return len(self.clusters) - 1, layouts

    def _follow(self, rule: Rule, tensors: Sequence[int], known: list[int]) -> tuple[int, list[Layout]]:
        """The choice of the largest operand."""
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
        """Let a value get the layouts that are wanted."""
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
        """What an op costs by strategy: its kernel, and sums over what is partial."""
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
        """Operations of a product on a device."""
        shards = prod(size for (_, size), factor in zip(self.prices.axes, factors) if factor >= 0)
        if kind.name in PRODUCTS:
            return 2.0 * prod(rule.factor_sizes) / shards
        result, kernel = (self.program.shapes[self.program.tensors[op][place]] or () for place in (2, 1))
        image = {factor for dim in rule.operands[0] for factor in dim}
        shared = {factor for dim in rule.operands[1] for factor in dim} & {f for dim in rule.results[0] for f in dim}
        features = prod(rule.factor_sizes[factor] for factor in shared - image)
        return 2.0 * prod(result) * prod(kernel) / features / shards

    def _find_stored(self) -> list[bool]:
        """Per value whether it is in memory: not what goes from one element-wise op to another."""
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
        """The values that are held when a product runs; inputs always are."""
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
        """Bytes of a value on a device, by the strategy of its cluster."""
        shape, size = self.program.shapes[value] or (), self.problem.bytes[value]
        return np.array([self.prices.local(shape, layout) * size for layout in self.values[value].layouts])


def _layout(mapping: Sequence[Sequence[int]], factors: Layout) -> Layout:
    """Which dimension every axis shards, when it shards a factor."""
    places = {dim[0]: place for place, dim in enumerate(mapping)}
    return tuple(places.get(factor, -1) if factor >= 0 else -1 for factor in factors)


class _Rows:
    """Linear constraints, row by row."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def add(self, entries: Iterator[tuple[int, float]], low: float, high: float) -> None:
        self.entries += [(len(self.low), column, value) for column, value in entries]
        self.low.append(low)
        self.high.append(high)


def solve(graph: Graph, limit: float, seconds: float) -> tuple[list[int], Any]:
    """The strategy of every cluster, and what HiGHS says.

    Args:
        graph: The choices.
        limit: Bytes that a device may hold.
        seconds: How long HiGHS may take.

    Raises:
        ValueError: It finds no answer.
    """
    starts = np.cumsum([0, *(len(cluster.strategies) for cluster in graph.clusters)])
    costs = [float(cost) for cluster in graph.clusters for cost in cluster.seconds]
    rows = _Rows()
    for place, cluster in enumerate(graph.clusters):
        rows.add(((starts[place] + number, 1.0) for number in range(len(cluster.strategies))), 1.0, 1.0)
    for (left, right), matrix in graph.pairs.items():
        _add_pair(rows, costs, matrix, starts[left], starts[right])
    for values in dict.fromkeys(graph.live):
        held: dict[int, float] = {}
        for value in values:
            start = starts[graph.values[value].cluster]
            for number, size in enumerate(graph.held(value)):
                held[start + number] = held.get(start + number, 0.0) + size / 2**20
        rows.add(iter(held.items()), -np.inf, limit / 2**20)
    at, columns, values_ = zip(*rows.entries)
    matrix = coo_array((values_, (at, columns)), shape=(len(rows.low), len(costs))).tocsr()
    is_integer = np.arange(len(costs)) < starts[-1]
    found = milp(
        np.array(costs) * 1e6,
        integrality=is_integer,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        options={"time_limit": seconds},
    )
    if found.x is None:
        raise ValueError(found.message)
    return [int(np.argmax(found.x[start:end])) for start, end in zip(starts, starts[1:])], found


def _add_pair(rows: _Rows, costs: list[float], matrix: np.ndarray[Any, Any], left: int, right: int) -> None:
    """A variable for every pair of strategies that costs differently, which is one where both are chosen."""
    _, first, row_of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    _, second, column_of = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
    small = matrix[np.ix_(first, second)]
    start = len(costs)
    costs += [float(cost) for cost in small.ravel()]
    height, width = small.shape
    for row in range(height):
        chosen = [(left + number, -1.0) for number, one in enumerate(row_of.ravel()) if one == row]
        rows.add(iter([*((start + row * width + column, 1.0) for column in range(width)), *chosen]), 0.0, 0.0)
    for column in range(width):
        chosen = [(right + number, -1.0) for number, one in enumerate(column_of.ravel()) if one == column]
        rows.add(iter([*((start + row * width + column, 1.0) for row in range(height)), *chosen]), 0.0, 0.0)


def alpa(evaluator: Evaluator, seconds: float = 60.0) -> Answer:
    """The shardings of inputs that the integer program finds.

    Args:
        evaluator: The program, the mesh and the chip.
        seconds: How long HiGHS may take.

    Raises:
        ValueError: It finds no answer.
    """
    model = CollectiveModel(evaluator.model)
    problem = problem_of(evaluator.module, evaluator.topology, model, evaluator.memory)
    names = {fact.name: place for place, fact in enumerate(problem.inputs)}
    ties = {
        place: names[evaluator.ties[fact.name]]
        for place, fact in enumerate(problem.outputs)
        if fact.name in evaluator.ties
    }
    graph = Graph(problem, ties)
    chosen, found = solve(graph, evaluator.memory, seconds)
    specs = {}
    for fact, cluster in zip(problem.inputs, graph.inputs):
        layout = graph.clusters[cluster].strategies[chosen[cluster]]
        specs[fact.name] = tuple(
            tuple(name for (name, _), place in zip(graph.prices.axes, layout) if place == dim)
            for dim in range(len(fact.shape))
        )
    count = sum(len(cluster.strategies) for cluster in graph.clusters)
    return Answer(specs, found.fun / 1e6, found.mip_gap or 0.0, found.status == 0, count)
