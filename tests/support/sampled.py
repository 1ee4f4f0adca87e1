"""Fewer cases of tests that take long."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")


def sampled(cases: Iterable[_T], one_of: int = 2) -> list[_T]:
    """The first of every so many cases; all if the environment has PYSHARDY_ALL_TESTS, as in `make campaign`.

    >>> sampled("abcde") if "PYSHARDY_ALL_TESTS" not in os.environ else ["a", "c", "e"]
    ['a', 'c', 'e']
    """
    return list(cases)[:: 1 if os.environ.get("PYSHARDY_ALL_TESTS") else one_of]
