"""The costs of Alpa's integer program: seconds of collectives and kernels under a layout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

from pyshardy.core.boxes import local_shape
from pyshardy.core.collectives import CollectiveKind
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import collective_seconds
from pyshardy.costing.program import OpTraffic
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.searching.autopartition.problem import Problem

Layout = tuple[int, ...]
"""The dimension, or the factor, that each mesh axis shards; -1 for none."""


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
        """The number of elements on a device."""
        return prod(shape) // prod(size for (_, size), place in zip(self.axes, layout) if place >= 0)

    def _send(self, before: Layout, after: Layout, shape: tuple[int, ...], size: float) -> float:
        """Seconds to reshard a tensor from one layout to another."""
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
        """Seconds of an all-reduce along some axes."""
        group = prod(count for _, count in used)
        if group == 1:
            return 0.0
        sent = int(2 * (group - 1) * size / group)
        return self.collective("all_reduce", tuple(used), group, [int(size)] * 2, sent)

    def collective(self, kind: str, axes: Any, group: int, held: Sequence[int], sent: int) -> float:
        problem = self.problem
        traffic = OpTraffic(kind, problem.mesh_name, axes, group, held[0], held[1], sent)
        return collective_seconds(traffic, problem.topology, problem.collectives)

    def kernel(self, moved: float, flops: float, size: float) -> float:
        """Seconds of a kernel that moves so many bytes and does so many operations."""
        chip = self.problem.topology.hardware
        dtype = {1.0: "i8", 2.0: "bf16", 8.0: "f64"}.get(size, "f32")
        rate = chip.matrix_flops_per_s(dtype) * chip.matrix_efficiency
        return max(moved / (chip.memory_bytes_per_s * chip.memory_efficiency), flops / rate)
