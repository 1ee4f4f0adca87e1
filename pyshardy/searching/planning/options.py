"""The options of a search."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.plan import PlanRow
from pyshardy.results.cost import Cost, cost_of, view_for
from pyshardy.results.partition import Partition, partition_of
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.registry import AxesPerDim
from pyshardy.searching.planning.forbidding import Forbidden

Keep = bool | Iterable[str] | Mapping[str, AxesPerDim]
"""Whether to keep shardings, the names of those that are kept, or the shardings to keep by name."""
MOST_CANDIDATES = 500


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search.

    Attributes:
        hardware: The chip.
        networks: The networks of mesh axes.
        shape: The dimensions of the torus.
        collectives: The cost model of collectives.
        objective: What makes a plan better, with the bytes that a device may use.
        budget_s: The seconds that the search may take.
        candidates: The number of candidates that it may price.
        seed: The seed of random choices.
        constraints: Whether intermediate values may be constrained.
        compiler: The compiler that confirms the best plans; empty for none.
        forbidden: What inputs may not have.
    """

    hardware: Hardware
    networks: Mapping[str, str] | None
    shape: Sequence[int] | None
    collectives: CollectiveModel
    objective: Objective
    budget_s: float
    candidates: int
    seed: int
    constraints: bool = True
    compiler: str = ""
    forbidden: Forbidden = Forbidden()

    @property
    def limit(self) -> float:
        """The bytes that a device may use."""
        return self.objective.limit

    def cost(self, program: Module | Partition) -> Cost:
        """The estimate of `pyshardy.cost` for a module or a partitioned program.

        Raises:
            ShardyError: The module cannot be partitioned.
        """
        part = program if isinstance(program, Partition) else partition_of(program, PropagateOptions(compiler=""))
        return cost_of(part, self.hardware, networks=self.networks, shape=self.shape, collectives=self.collectives)

    def row(self, name: str, module: Module) -> PlanRow | None:
        """The estimate of `pyshardy.cost` for a module; None if the module cannot be partitioned."""
        try:
            found = self.cost(partition_of(module, PropagateOptions(compiler="", view=view_for(self.hardware))))
        except ShardyError:
            return None
        fits, unpriced = found.peak_bytes <= self.limit, found.estimate.unknown_ops
        sent = sum(row.sent_bytes_per_device for row in found.estimate.collectives)
        return PlanRow(
            name, found.step_seconds, found.peak_bytes, fits, True, unpriced, sent, found.estimate.communication_seconds
        )


def sayer(progress: bool | Callable[[str], None]) -> Callable[[str], None]:
    """A function that is told what is done: the given one, one that prints on standard error, or an idle one."""
    if callable(progress):
        return progress
    return (lambda text: print(text, file=sys.stderr, flush=True)) if progress else (lambda text: None)
