"""The errors of estimated peak memory: by compiler, for our partitioned program and for the compiler's own.

The figures are those of `tests/cost/compiled.py`, whose table is in `docs/cost.md`: training and serving steps of many
kinds on eight devices, compiled to the end by XLA for H100 and for v5e.

Compilers rewrite a program before they propagate. So they may resolve conflicting shardings otherwise than `pyshardy`,
and the memory differs. Many all-to-alls, by their part of all that is sent, are a sign of such conflicts. Steps with
that sign have a known error of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pyshardy.costing.hardware import Hardware


class KnownError(NamedTuple):
    """What compiled steps needed, as a factor of the estimate.

    Attributes:
        low: At least this much in nine of ten steps.
        high: At most this much in the same steps.
        steps: The number of steps.
        compiler: Whose compiled steps they were, in words.
    """

    low: float
    high: float
    steps: int
    compiler: str

    def range(self, estimated: int) -> tuple[int, int]:
        """The bytes between which nine of ten steps with this estimate are.

        >>> KnownError(0.5, 2.0, 10, "XLA for H100").range(100)
        (50, 200)
        """
        return round(self.low * estimated), round(self.high * estimated)


MOST_EXCHANGED: Final = 0.1
"""If all-to-alls send a larger share of all bytes, shardings conflict."""
_GPU, _TPU = "XLA for H100", "XLA for v5e"
OWN: Final = {_GPU: KnownError(0.88, 1.11, 44, _GPU), _TPU: KnownError(0.78, 1.5, 44, _TPU)}
"""Of estimates of pyshardy's partitioned program."""
_OF_CONFLICTS = "{} with conflicting shardings"
CONFLICTING: Final = {
    _GPU: KnownError(1.04, 1.5, 4, _OF_CONFLICTS.format(_GPU)),
    _TPU: KnownError(0.96, 3.19, 4, _OF_CONFLICTS.format(_TPU)),
}
"""The same where shardings conflict."""
COMPILERS: Final = {_GPU: KnownError(0.9, 1.11, 48, _GPU), _TPU: KnownError(0.82, 1.52, 48, _TPU)}
"""Of estimates of the program that the compiler partitioned."""


def is_conflicting(sent: Iterable[tuple[str, int]]) -> bool:
    """Whether so much is exchanged between dimensions that it is a sign of conflicting shardings.

    Args:
        sent: Kinds of collectives, and the bytes that a device sends for them.

    >>> is_conflicting([("all_gather", 90), ("all_to_all", 10)]), is_conflicting([("all_to_all", 10)])
    (False, True)
    """
    pairs = list(sent)
    exchanged = sum(size for kind, size in pairs if kind == "all_to_all")
    return exchanged > MOST_EXCHANGED * sum(size for _, size in pairs)


def known_error(hardware: Hardware, is_compilers: bool, conflicts: bool) -> KnownError:
    """The known error of estimates for a chip, from the steps of the compiler that is nearest.

    Args:
        hardware: The chip.
        is_compilers: Whether a compiler partitioned the program.
        conflicts: Whether shardings conflict in pyshardy's program.
    """
    known = COMPILERS if is_compilers else CONFLICTING if conflicts else OWN
    return known[_GPU if hardware.merges_kernels else _TPU]
