"""Changes of a training step, each of which its lock finds and names."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pyshardy
from pyshardy.report.lock_difference import LockDifference
from tests.support.locked_step import Step, lowered

BEFORE = Step()


@cache
def lock() -> pyshardy.Lock:
    return pyshardy.lock(lowered(BEFORE))


def compared(**change: object) -> LockDifference:
    return pyshardy.check(lowered(replace(BEFORE, **change)), lock(), name="step.mlir")  # type: ignore[arg-type]
