"""Sizes of a program that follow from versions with a few of its layers."""

from __future__ import annotations

from pyshardy.costing.traffic import AxesTotal, KindTotal
from pyshardy.report.extrapolation import ShortenedProgram, memory_without_one, whole_kinds, whole_memory, whole_rows


def version(*layers: int, noise: int = 0) -> ShortenedProgram:
    """A version whose temporary values take 100 bytes and 10 for each layer, with a reduction in each layer."""
    count = sum(layers)
    return ShortenedProgram(
        layers,
        {"argument": 8 * count, "temp": 100 + 10 * layers[0] + 30 * sum(layers[1:]) + noise},
        (KindTotal("all_gather", 1, 64), KindTotal("all_reduce", count, 16 * count)),
        (AxesTotal("all_gather", "x", 1, 64), AxesTotal("all_reduce", "x", count, 16 * count)),
    )


def test_what_follows_a_line_is_exact() -> None:
    versions = [version(count) for count in (2, 3, 5)]
    assert whole_memory(versions, [32]) == {"argument": 8 * 32, "temp": 100 + 10 * 32}
    assert whole_kinds(versions, [32]) == version(32).kinds
    assert whole_rows(versions, [32]) == version(32).rows
    assert memory_without_one(versions, [32]) == [version(32).memory] * 3


def test_groups_of_layers_count_apart() -> None:
    versions = [version(*layers) for layers in ((2, 2), (3, 3), (5, 3), (3, 5))]
    assert whole_memory(versions, [20, 9]) == {"argument": 8 * 29, "temp": 100 + 10 * 20 + 30 * 9}


def test_what_does_not_follow_a_line_shows_in_the_range() -> None:
    versions = [version(2), version(3, noise=20), version(5)]
    found = [memory["temp"] for memory in memory_without_one(versions, [12])]
    assert min(found) < 220 < max(found)
    assert min(found) < whole_memory(versions, [12])["temp"] < max(found)


def test_two_versions_leave_no_doubt_and_no_certainty() -> None:
    assert memory_without_one([version(2), version(3)], [12]) == []


def test_a_collective_that_fewer_layers_lack_is_counted() -> None:
    none = ShortenedProgram((2,), {}, (), ())
    more = ShortenedProgram(
        (5,), {}, (KindTotal("all_gather", 3, 30, True),), (AxesTotal("all_gather", "x", 3, 30, True),)
    )
    assert whole_kinds([none, more], [8]) == (KindTotal("all_gather", 6, 60, True),)
    assert whole_rows([more, none], [8]) == (AxesTotal("all_gather", "x", 6, 60, True),)


def test_a_size_is_never_negative() -> None:
    assert whole_memory(
        [ShortenedProgram((2,), {"temp": 50}, (), ()), ShortenedProgram((3,), {"temp": 20}, (), ())], [30]
    ) == {"temp": 0}
