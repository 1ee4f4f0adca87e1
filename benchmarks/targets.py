"""What is to be reached: ratios of pyshardy to the reference, and what the test suite holds the code to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The largest wanted ratio of one row.

    Attributes:
        verified: To the reference as anyone runs it, with MLIR's verifier after every pass.
        unverified: To the reference with the verifier off.
        bound: What the ratio with the verifier off (with it, where there is no other) must stay below in the tests. It
            is twice the target where the target is near; where it is not reached yet, a little above what is.
    """

    verified: float | None
    unverified: float | None
    bound: float


TARGETS = {
    "pipeline": Target(0.25, 0.7, 3.6),
    "propagation": Target(0.4, 0.8, 2.7),
    "core": Target(None, 0.3, 0.6),
    "conflicts": Target(0.25, 0.7, 2.0),
    "memory": Target(1.5, None, 3.6),
    "help": Target(1 / 3, None, 2 / 3),
    "opt": Target(1.3, None, 2.6),
}
GROWTH = 1.2
"""How much longer an op may take in the largest program than in the smallest."""
