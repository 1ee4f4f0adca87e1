"""What is to be reached: ratios of pyshardy to the reference, and what the test suite holds the code to."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measure import is_compiled


@dataclass(frozen=True)
class Target:
    """The largest wanted ratio of one row.

    Attributes:
        verified: To the reference as anyone runs it, with MLIR's verifier after every pass.
        unverified: To the reference with the verifier off.
        compiled: What the tests hold the ratio to at their small sizes with the compiled core and the verifier off (on,
            where there is no other): twice the target where that is reached, else some half above what is measured.
        interpreted: The same without the compiled core.
    """

    verified: float | None
    unverified: float | None
    compiled: float
    interpreted: float

    @property
    def bound(self) -> float:
        """What the ratio is held to here."""
        return self.compiled if is_compiled() else self.interpreted


TARGETS = {
    "pipeline": Target(0.25, 0.7, 1.4, 2.6),
    "view": Target(0.25, 0.85, 1.7, 4.2),
    "propagation": Target(0.65, 0.8, 1.6, 3.6),
    "core": Target(None, 0.3, 0.6, 0.9),
    "chain": Target(0.5, 1.0, 2.0, 2.8),
    "chain of one layer": Target(None, 1.2, 2.9, 4.7),
    "chain of four layers": Target(None, 1.0, 1.8, 3.3),
    "conflicts": Target(0.25, 0.7, 1.4, 2.6),
    "memory": Target(1.5, None, 3.0, 3.0),
    "help": Target(1 / 3, None, 2 / 3, 2 / 3),
    "opt": Target(1.3, None, 1.3, 1.3),
}
GROWTH = 1.2
"""How much longer an op may take in the largest program than in the smallest."""
