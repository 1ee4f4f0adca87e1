"""Tells permutes around a ring from those that go back."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.costing.program import BACKWARD

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=1 << 10)
def goes_back(pairs: Hashable) -> bool:
    """Whether a permute sends around a ring to the device before, by the fact `PAIRS`.

    >>> goes_back("dense<[[0, 3], [1, 0], [2, 1], [3, 2]]>"), goes_back("dense<[[0, 1], [1, 2], [2, 3], [3, 0]]>")
    (True, False)
    """
    if pairs == BACKWARD[1]:
        return True
    numbers = [int(one) for one in _NUMBER.findall(str(pairs).partition(":")[0])]
    to = dict(zip(numbers[::2], numbers[1::2]))
    source = {after: before for before, after in to.items()}
    first = next(iter(to), None)
    return first is not None and first in source and to[first] > source[first]


register_cache(goes_back.cache_clear)
