"""What is to be reached: ratios of pyshardy to the reference, and what the test suite holds the code to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The largest wanted ratio of one row.

    Attributes:
        verified: To the reference as anyone runs it, with MLIR's verifier after every pass.
        unverified: To the reference with the verifier off.
        bound: What the tests hold the ratio to at their small sizes, with the verifier off (with it, where there is no
            other): twice the target where that is reached, else some half above what is measured.
    """

    verified: float | None
    unverified: float | None
    bound: float


TARGETS = {
    "pipeline": Target(0.25, 0.7, 4.0),
    "propagation": Target(0.4, 0.8, 4.0),
    "core": Target(None, 0.3, 0.9),
    "chain": Target(0.5, 1.0, 3.3),
    "conflicts": Target(0.25, 0.7, 3.0),
    "memory": Target(1.5, None, 6.5),
    "help": Target(1 / 3, None, 2 / 3),
    "opt": Target(1.3, None, 2.0),
}
GROWTH = 1.2
"""How much longer an op may take in the largest program than in the smallest."""
