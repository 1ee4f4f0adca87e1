"""How far estimates of peak memory were from what compilers needed, by compiler and by whose program is estimated.

The figures are those of `tests/cost/compiled.py`, whose table is in `docs/cost.md`: training and serving steps of many
kinds on eight devices, compiled to the end by XLA for H100 and for v5e.
"""

from __future__ import annotations

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


_GPU, _TPU = "XLA for H100", "XLA for v5e"
OWN: Final = {_GPU: KnownError(0.92, 1.51, 48, _GPU), _TPU: KnownError(0.73, 2.82, 48, _TPU)}
"""Of estimates of pyshardy's partitioned program."""
COMPILERS: Final = {_GPU: KnownError(0.92, 1.24, 48, _GPU), _TPU: KnownError(0.8, 1.67, 48, _TPU)}
"""Of estimates of the program that the compiler partitioned."""


def known_error(hardware: Hardware, is_compilers: bool) -> KnownError:
    """The known error of estimates for a chip, from the steps of the compiler that is nearest.

    Args:
        hardware: The chip.
        is_compilers: Whether a compiler partitioned the program.
    """
    return (COMPILERS if is_compilers else OWN)[_GPU if hardware.merges_kernels else _TPU]
