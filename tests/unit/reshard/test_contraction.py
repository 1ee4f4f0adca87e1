from __future__ import annotations

import pytest

from pyshardy.reshard.contraction import better_product_axes

from .setting import DOT, counts, short, states

BETTER = ('{"a"}, {"b"}', '{"b"}, {"c"}', '{"b"}, {"c"}')


def better(*texts: str | None, sizes: list[int] | None = None) -> tuple[int, list[str]] | None:
    found = better_product_axes(DOT, states(DOT, *texts), sizes or counts(DOT))
    return None if found is None else (found[0], short([found[1]]))


def test_the_result_takes_the_axes_of_the_operand() -> None:
    assert better(*BETTER) == (0, ["a"])


@pytest.mark.parametrize(
    "texts",
    [
        ('{"a"}, {"b"}', '{"c"}, {}', '{"b"}, {}'),
        ('{}, {"b"}', '{"b"}, {"c"}', '{"b"}, {"c"}'),
        ('{"a"}, {"b"}', '{"b"}, {"c"}', '{}, {"c"}'),
        ('{"a"}, {"b"}', '{"b"}, {"c"}', '{"c"}, {"b"}'),
        ('{"a"}, {"b"}', '{"b"}, {"a"}', '{"b"}, {"a"}'),
        ('{"a"}, {"b"}', '{"b"}, {"c"}', '{"a"}, {"c"}'),
    ],
    ids=[
        "operands disagree", "operand not sharded", "result not sharded", "two factors differ", "operands overlap",
        "all agree",
    ],
)  # fmt: skip
def test_otherwise_nothing_changes(texts: tuple[str, ...]) -> None:
    assert better(*texts) is None


def test_a_larger_result_stays() -> None:
    assert better(*BETTER, sizes=[256, 256, 257]) is None
