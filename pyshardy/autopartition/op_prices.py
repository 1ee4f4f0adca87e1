"""The cost of one op with given shardings: the collectives around it, and its kernel."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Final, NamedTuple

from pyshardy.autopartition.problem import Problem
from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import collective_seconds, network_of
from pyshardy.costing.program import Traffic
from pyshardy.errors import ShardyError
from pyshardy.graph.program import OpKind
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.collectives import Collective, CollectiveKind, sent_by_device
from pyshardy.reshard.plan import OpInput, plan_op
from pyshardy.rules.properties import PRODUCTS

EDGES: Final = frozenset(("sdy.data_flow_edge", "sdy.func_data_flow_edge"))
_FREE: Final = frozenset(
    ("stablehlo.reshape", "stablehlo.constant", "sdy.constant", "sdy.sharding_constraint", "stablehlo.while",
     "stablehlo.optimization_barrier", "sdy.propagation_barrier", "func.return", "stablehlo.return")
) | EDGES  # fmt: skip
_SLICING: Final = frozenset(("stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.gather"))
_UPDATING: Final = frozenset(("stablehlo.dynamic_update_slice", "stablehlo.scatter"))
ALIASES: Final = EDGES | {"stablehlo.while", "stablehlo.optimization_barrier", "sdy.sharding_constraint"}
_CONVOLUTION: Final = "stablehlo.convolution"

COMBINING: Final = frozenset(
    ("stablehlo.reduce", "stablehlo.scatter", "stablehlo.sort", "stablehlo.reduce_window", "stablehlo.map",
     "stablehlo.select_and_scatter", "stablehlo.all_reduce", "stablehlo.reduce_scatter")
)  # fmt: skip
UNIFORM: Final = frozenset(("stablehlo.constant", "sdy.constant", "stablehlo.iota"))
_FREE_OF_RESHARDS: Final = frozenset(("stablehlo.constant", "sdy.constant", "stablehlo.iota"))
_COMPUTED_AGAIN: Final = frozenset(("stablehlo.broadcast_in_dim",))


Shardings = tuple[TensorSharding | None, ...]


class Sent(NamedTuple):
    """Collectives in sequence: their seconds, the slowest network, and the size of the largest group of devices."""

    seconds: float
    network: int
    group: int


class Send(NamedTuple):
    """The collectives that bring one tensor of an op to a target sharding; None for an unsharded one."""

    tensor: int
    target: TensorSharding | None
    sent: Sent


_NOTHING: Final = Sent(0.0, 0, 1)


class OpPrice(NamedTuple):
    """The cost of one run of an op: the collectives before it, its kernel, the collectives after it."""

    before: tuple[Send, ...]
    seconds: float
    behind: tuple[Send, ...]
    extra: float
    """Bytes of copies that it needs: operands after the collectives before it, results before those after it."""


class StaticOp(NamedTuple):
    """The facts about an op that do not depend on shardings.

    Attributes:
        op: The number of the op.
        kind: The kind of the op.
        number: A number that ops of equal cost share.
        tensors: The values that hold the shardings of its tensors, operands first; -1 for none.
        operands: The number of operands.
        shapes: The shape of each tensor.
        sizes: The bytes of an element of each tensor.
        stored: Whether each tensor is in memory; others are computed within the kernels that use them.
        times: How often the op runs.
    """

    op: int
    kind: OpKind
    number: int
    tensors: tuple[int, ...]
    operands: int
    shapes: tuple[tuple[int, ...], ...]
    sizes: tuple[float, ...]
    stored: tuple[bool, ...]
    times: int


class OpPricer:
    """Prices the ops of one problem, and computes the price of a reshard once.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.mesh, self.topology = problem, problem.mesh, problem.topology
        self.meshes = problem.program.meshes
        hardware = self.topology.hardware
        self._floor = hardware.kernel_floor_s
        self._bandwidth = hardware.memory_bytes_per_s * hardware.memory_efficiency
        self._rates: dict[float, float] = {}
        self._sends: dict[Hashable, Sent] = {}

    def elements(self, shape: tuple[int, ...], sharding: TensorSharding | None) -> float:
        """The number of elements of a shard, with padding."""
        if sharding is None:
            return float(prod(shape))
        sizes = [-(-size // self.shards(dim.axes)) if dim.axes else size for size, dim in zip(shape, sharding.dims)]
        return float(prod(sizes))

    def shards(self, axes: Axes) -> int:
        """The number of shards that axes make."""
        return axes_size(axes, self.mesh)

    def shard_count(self, sharding: TensorSharding | None) -> int:
        """The number of different shards of a tensor."""
        return 1 if sharding is None else prod(self.shards(dim.axes) for dim in sharding.dims)

    def price(self, static: StaticOp, current: Shardings) -> OpPrice:
        """The cost of one run of an op whose tensors have these shardings."""
        kind = static.kind
        before: list[Send] = []
        behind: list[Send] = []
        used: list[TensorSharding | None] = list(current)
        if kind.rule is not None and kind.name not in _FREE_OF_RESHARDS and any(current):
            plan = plan_op(
                OpInput(kind.name, kind.rule, static.shapes, current, True), self.meshes
            ) if len(static.shapes) == len(kind.rule.tensors) else None  # fmt: skip
            if plan is not None:
                for index, target in enumerate(plan.targets):
                    if target is None:
                        continue
                    used[index] = target
                    if index < static.operands and kind.name not in _COMPUTED_AGAIN:
                        sent = self.send(current[index], target, static.shapes[index], static.sizes[index], False)
                        if sent.seconds:
                            before.append(Send(index, target, sent))
                for index in range(static.operands, len(current)):
                    sent = self._completed(plan.reduced, used[index], current[index], static, index)
                    if sent.seconds:
                        behind.append(Send(index, current[index] or used[index], sent))
        extra = sum(
            self.elements(shape, one) * size
            for shape, size, one, own in zip(static.shapes, static.sizes, used, current)
            if one is not own
        )
        return OpPrice(tuple(before), self._kernel(static, tuple(used)), tuple(behind), extra)

    def _completed(
        self, reduced: Axes, target: TensorSharding | None, wanted: TensorSharding | None, static: StaticOp, index: int
    ) -> Sent:
        """The reduction of partial results and the reshard after an op; a slice after a sum is one reduce-scatter."""
        if target is None and not reduced:
            return _NOTHING
        return self.send(target, wanted, static.shapes[index], static.sizes[index], reduced or False)

    def send(
        self,
        before: TensorSharding | None,
        after: TensorSharding | None,
        shape: tuple[int, ...],
        size: float,
        reduced: Axes | bool,
    ) -> Sent:
        """The collectives that bring a tensor from one sharding to another, and reduce its partial sums.

        Args:
            before: The sharding of the tensor.
            after: The wanted sharding.
            shape: The shape of the tensor.
            size: The bytes of an element.
            reduced: The axes along which the tensor holds partial sums; False for none.
        """
        key = (before, after, shape, size, reduced)
        found = self._sends.get(key)
        if found is None:
            sent = self._send_anew(before, after, shape, size, reduced or ())
            found = self._sends[key] = Sent(
                sum(one.seconds for one in sent),
                max((one.network for one in sent), default=0),
                max((one.group for one in sent), default=1),
            )
        return found

    def _send_anew(
        self,
        before: TensorSharding | None,
        after: TensorSharding | None,
        shape: tuple[int, ...],
        size: float,
        reduced: Axes | bool,
    ) -> list[Sent]:
        steps: tuple[Collective, ...] = ()
        if after is not None and before is not None and before is not after:
            try:
                steps = plan_collectives(before, after, self.mesh, self.mesh, shape) or ()
            except ShardyError:
                steps = ()
        found = []
        left: Axes = reduced if isinstance(reduced, tuple) else ()
        if left:
            scattered: tuple[str, ...] = ()
            if steps and steps[0].kind is CollectiveKind.ALL_SLICE:
                scattered = tuple(axis.name for axes in steps[0].axes for axis in axes)
            held = self.elements(shape, before)
            both = tuple(axis for axis in left if axis.name in scattered)
            rest = tuple(axis for axis in left if axis.name not in scattered)
            for kind, axes in (("reduce_scatter", both), ("all_reduce", rest)):
                if axes:
                    found.append(self._collective(kind, axes, held * size))
                    if kind == "reduce_scatter":
                        held /= axes_size(axes, self.mesh)
        return found + [self._step(step, shape, size) for step in steps if step.kind is not CollectiveKind.ALL_SLICE]

    def _step(self, step: Collective, shape: tuple[int, ...], size: float) -> Sent:
        axes = [axis for axes in step.axes for axis in axes] + [axis for one in step.params for axis in one.axes]
        held = self.elements(shape, step.before) * size
        after = self.elements(shape, step.after) * size
        group = step.group_size(self.mesh)
        if step.kind is CollectiveKind.COLLECTIVE_PERMUTE:
            group = 2
        sent = sent_by_device(step.kind, int(held), int(after), group)
        names = tuple((axis.name, axes_size((axis,), self.mesh)) for axis in axes) or None
        traffic = Traffic(step.kind.value, self.problem.mesh_name, names, group, int(held), int(after), int(sent))
        return self._seconds(traffic)

    def _collective(self, kind: str, axes: Axes, held: float) -> Sent:
        group = axes_size(axes, self.mesh)
        after = held / group if kind == "reduce_scatter" else held
        sent = (2 if kind == "all_reduce" else 1) * (group - 1) * held / group
        names = tuple((axis.name, axes_size((axis,), self.mesh)) for axis in axes)
        return self._seconds(
            Traffic(kind, self.problem.mesh_name, names, group, int(held), max(1, int(after)), max(1, int(sent)))
        )

    def _seconds(self, traffic: Traffic) -> Sent:
        seconds = collective_seconds(traffic, self.topology, self.problem.collectives)
        return Sent(seconds, network_of(traffic, self.topology), traffic.group_size)

    def _kernel(self, static: StaticOp, used: Shardings) -> float:
        name = static.kind.name
        if name in _FREE:
            return 0.0
        flops = self._flops(static, used)
        moved = 0.0
        own = slice(static.operands, None)
        parts = zip(static.shapes[own], used[own], static.sizes[own])
        result = [self.elements(shape, one) * size for shape, one, size in parts]
        for index in range(static.operands):
            if static.stored[index]:
                whole = self.elements(static.shapes[index], used[index]) * static.sizes[index]
                if index == 0 and name in _UPDATING:
                    whole = 0.0
                elif index == 0 and name in _SLICING and result:
                    whole = min(whole, result[0])
                moved += whole
        is_root = False
        for index, size in enumerate(result):
            if static.stored[static.operands + index]:
                is_root = True
                if name in _UPDATING:
                    last = static.operands - 1 if name == "stablehlo.scatter" else 1
                    size = min(size, self.elements(static.shapes[last], used[last]) * static.sizes[last])
                moved += size
        seconds = max(moved / self._bandwidth, flops)
        return max(seconds, self._floor) if is_root else seconds

    def _flops(self, static: StaticOp, used: Shardings) -> float:
        """The seconds of the arithmetic of a product or convolution; 0 for other ops."""
        kind = static.kind
        rule = kind.rule
        if rule is None or kind.name not in PRODUCTS and kind.name != _CONVOLUTION:
            return 0.0
        shards = [1] * len(rule.factor_sizes)
        for mapping, sharding in zip(rule.tensors, used):
            if sharding is None:
                continue
            for factors, dim in zip(mapping, sharding.dims):
                if dim.axes:
                    factor = factors[0]
                    shards[factor] = max(shards[factor], self.shards(dim.axes))
        if kind.name == _CONVOLUTION:
            local = [-(-size // count) for size, count in zip(rule.factor_sizes, shards)]
            count = prod(static.shapes[2]) * prod(static.shapes[1]) / max(1, self._out_features(static))
            count *= prod(local) / max(1, prod(rule.factor_sizes))
        else:
            count = prod(-(-size // count) for size, count in zip(rule.factor_sizes, shards))
        size = static.sizes[0]
        rate = self._rates.get(size)
        if rate is None:
            hardware = self.topology.hardware
            dtype = {1.0: "i8", 2.0: "bf16", 8.0: "f64"}.get(size, "f32")
            rate = self._rates[size] = hardware.matrix_flops_per_s(dtype) * hardware.matrix_efficiency
        return 2.0 * count / rate

    @staticmethod
    def _out_features(static: StaticOp) -> int:
        rule = static.kind.rule
        assert rule is not None
        image = {factor for dim in rule.operands[0] for factor in dim}
        result = {factor for dim in rule.results[0] for factor in dim}
        kernel = {factor for dim in rule.operands[1] for factor in dim}
        return prod(rule.factor_sizes[factor] for factor in (kernel & result) - image)
