"""The annotated values that axes originate from.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.propagation.origins import Origins

from ..core.short import ref, refs


def test_the_first_origin_stays() -> None:
    origins = Origins()
    origins.add(1, refs("p"), 10)
    origins.add(1, refs("p q"), 11)
    assert origins.of(1) == {AxisRef("p"): 10, AxisRef("q"): 11}
    assert origins.of(2) == {}


@pytest.mark.parametrize(
    ("known", "axis", "expected"),
    [
        ("p", "p", 10),
        ("p", "p:(2)2", 10),
        ("p:(2)2", "p", 10),
        ("p:(1)2", "p:(2)2", None),
        ("q", "p", None),
    ],
)
def test_origins_are_inherited_from_axes_that_overlap(known: str, axis: str, expected: int | None) -> None:
    origins = Origins()
    origins.add(1, refs(known), 10)
    origins.inherit(2, ref(axis), 1)
    assert origins.of(2).get(ref(axis)) == expected
