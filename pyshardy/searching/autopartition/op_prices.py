"""The cost of one op with given shardings: the collectives around it, and its kernel."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Final, NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.collectives import Collective, CollectiveKind, sent_by_device
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import collective_seconds, network_of
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.program import CostKind, CostOp, CostTensor, OpTraffic
from pyshardy.costing.roofline import Bound, Roofline
from pyshardy.errors import ShardyError
from pyshardy.propagation.program import OpKind
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.plan import OpInput, Shardings, plan_op
from pyshardy.rules.properties import EDGES
from pyshardy.searching.autopartition.problem import Problem

_FREE: Final = frozenset(
    ("stablehlo.reshape", "stablehlo.constant", "sdy.constant", "sdy.sharding_constraint", "stablehlo.while",
     "stablehlo.optimization_barrier", "sdy.propagation_barrier", "func.return", "stablehlo.return")
) | EDGES  # fmt: skip
ALIASES: Final = EDGES | {"stablehlo.while", "stablehlo.optimization_barrier", "sdy.sharding_constraint"}
COMBINING: Final = frozenset(
    ("stablehlo.reduce", "stablehlo.scatter", "stablehlo.sort", "stablehlo.reduce_window", "stablehlo.map",
     "stablehlo.select_and_scatter", "stablehlo.all_reduce", "stablehlo.reduce_scatter")
)  # fmt: skip
UNIFORM: Final = frozenset(("stablehlo.constant", "sdy.constant", "stablehlo.iota"))
_FREE_OF_RESHARDS: Final = frozenset(("stablehlo.constant", "sdy.constant", "stablehlo.iota"))
_COMPUTED_AGAIN: Final = frozenset(("stablehlo.broadcast_in_dim",))


class Sent(NamedTuple):
    """Collectives in sequence: their seconds, the slowest network, and the size of the largest group of devices."""

    seconds: float
    network: int
    group: int


class Send(NamedTuple):
    """The collectives that bring one tensor of an op to a target sharding; None for an unsharded one.

    Attributes:
        tensor: The number of the tensor.
        target: The target.
        sent: Their cost.
        is_sum: Whether they only sum partial results. A loop that adds up the results may then sum over devices once.
    """

    tensor: int
    target: TensorSharding | None
    sent: Sent
    is_sum: bool = False


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
        cost: What its cost depends on besides the shards.
        number: A number that ops of equal cost share.
        tensors: The values that hold the shardings of its tensors, operands first; -1 for none.
        operands: The number of operands.
        shapes: The shape of each tensor.
        sizes: The bytes of an element of each tensor.
        stored: Whether each tensor is in memory; others are computed within the kernels that use them.
        times: How often the op runs.
        sum_times: How often its partial results are summed over devices: once for a loop that only adds them up.
    """

    op: int
    kind: OpKind
    cost: CostKind
    number: int
    tensors: tuple[int, ...]
    operands: int
    shapes: tuple[tuple[int, ...], ...]
    sizes: tuple[float, ...]
    stored: tuple[bool, ...]
    times: int
    sum_times: int


class OpPricer:
    """Prices the ops of one problem, and computes the price of a reshard once.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.mesh, self.topology = problem, problem.mesh, problem.topology
        self.meshes = problem.program.meshes
        self._tensors: list[CostTensor] = []
        self._roofline = Roofline(self.topology.hardware, self._tensors)
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
                        is_sum = used[index] is current[index] or used[index] == current[index]
                        behind.append(Send(index, current[index] or used[index], sent, is_sum))
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
            for kind, axes in ((CollectiveKind.REDUCE_SCATTER, both), (CollectiveKind.ALL_REDUCE, rest)):
                if axes:
                    found.append(self._collective(kind, axes, held * size))
                    if kind is CollectiveKind.REDUCE_SCATTER:
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
        traffic = OpTraffic(step.kind.value, self.problem.mesh_name, names, group, int(held), int(after), int(sent))
        return self._seconds(traffic)

    def _collective(self, kind: CollectiveKind, axes: Axes, held: float) -> Sent:
        group = axes_size(axes, self.mesh)
        before, after = int(held), max(1, int(held / group if kind is CollectiveKind.REDUCE_SCATTER else held))
        sent = max(1, sent_by_device(kind, before, after, group))
        names = tuple((axis.name, axes_size((axis,), self.mesh)) for axis in axes)
        return self._seconds(OpTraffic(kind.value, self.problem.mesh_name, names, group, before, after, sent))

    def _seconds(self, traffic: OpTraffic) -> Sent:
        seconds = collective_seconds(traffic, self.topology, self.problem.collectives)
        return Sent(seconds, network_of(traffic, self.topology), traffic.group_size)

    def _kernel(self, static: StaticOp, used: Shardings) -> float:
        """The seconds of an op on shards: its arithmetic or the memory traffic of its tensors that are in memory."""
        if static.kind.name in _FREE:
            return 0.0
        kind, count = static.cost, static.operands
        given = (*kind.operands, *kind.results)
        held = self._tensors[:] = [self._shard(tensor, sharding) for tensor, sharding in zip(given, used)]
        reads, writes = (
            tuple(place for place in places if static.stored[place])
            for places in (range(count), range(count, len(held)))
        )
        local = CostKind(kind.name, tuple(held[:count]), tuple(held[count:]), kind.facts)
        op = CostOp(local, tuple(range(count)), tuple(range(count, len(held))))
        price = self._roofline.price(Kernel((op,), reads, writes, frozenset()))
        if price.bound is Bound.FLOOR and not writes:  # a part of the kernels that use it
            return price.bytes / self.topology.hardware.bytes_per_s(is_product=False)
        return price.seconds

    def _shard(self, tensor: CostTensor, sharding: TensorSharding | None) -> CostTensor:
        """The shard of a tensor, with padding."""
        if sharding is None or not tensor.shape:
            return tensor
        sizes = [
            -(-size // self.shards(dim.axes)) if dim.axes else size for size, dim in zip(tensor.shape, sharding.dims)
        ]
        return CostTensor(tuple(sizes), tensor.dtype, -(-tensor.bytes * prod(sizes) // max(1, tensor.elements)))
