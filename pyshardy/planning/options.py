"""The options of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.errors import ShardyError
from pyshardy.estimating import cost
from pyshardy.ir.module import Module
from pyshardy.report.plan import PlanRow

DOING = "searching for shardings"
MOST_CANDIDATES = 2000


@dataclass(frozen=True)
class Options:
    """The options of a search.

    Attributes:
        hardware: The chip.
        networks: The networks of mesh axes.
        shape: The dimensions of the torus.
        collectives: How collectives are priced.
        limit: Bytes that a device may use.
        budget_s: How long the search may take.
        candidates: How many candidates it may look at.
        seed: The seed of random choices.
        constraints: Whether values in between may be constrained.
    """

    hardware: Hardware
    networks: Mapping[str, str] | None
    shape: Sequence[int] | None
    collectives: CollectiveModel
    limit: float
    budget_s: float
    candidates: int
    seed: int
    constraints: bool = True

    def row(self, name: str, module: Module) -> PlanRow | None:
        """What `pyshardy.cost` says of a module; None if it cannot be partitioned."""
        try:
            found = cost(
                module, self.hardware, networks=self.networks, shape=self.shape, collectives=self.collectives
            )  # fmt: skip
        except ShardyError:
            return None
        return PlanRow(name, found.step_seconds, found.peak_bytes, found.peak_bytes <= self.limit, True)


def rank(row: PlanRow) -> tuple[bool, float, float]:
    """A sort key: plans that fit come first, by time; then the others, by how close they come."""
    return (not row.fits, row.seconds if row.fits else row.bytes, row.bytes)
