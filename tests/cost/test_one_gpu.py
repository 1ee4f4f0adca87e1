"""Estimates beside times on one H100; the table is in docs/cost.md."""

from __future__ import annotations

import pytest

from support.reference import jaxlib_version

from .one_gpu import PROGRAMS, Measured, estimates, line, table
from .published import PAGE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        jaxlib_version() < (0, 12), reason="the page is written with the newest JAX; programs differ slightly"
    ),
]


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    return {one.name: seconds for one, seconds in estimates()}


@pytest.mark.parametrize("one", PROGRAMS, ids=lambda one: one.name)
def test_estimates_are_near_the_measured_times(found: dict[str, float], one: Measured) -> None:
    assert abs(found[one.name] / one.seconds - 1) <= 0.2


def test_the_page_has_the_table(found: dict[str, float]) -> None:
    assert table([(one, found[one.name]) for one in PROGRAMS]) in PAGE.read_text()


def test_a_wrong_estimate_shows() -> None:
    (one, *_) = PROGRAMS
    assert "+100%" in line(one, 2 * one.seconds)
    assert "0 of the 1 programs" in table([(one, 2 * one.seconds)])
