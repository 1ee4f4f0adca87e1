"""Records from plain data: values of the declared types, or an error that says where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pytest

from pyshardy.core.plain_data import from_plain
from pyshardy.errors import UsageError


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, ...]
    pair: tuple[str, float]
    is_new: bool = False


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    seed: int


WHOLE = Whole((Part("a", (1, 2), ("x", 0.5)), Part("b", (), ("y", 2), True)), 3)
PART: dict[str, Any] = {"name": "a", "sizes": [1], "pair": ["x", 1.5]}


def test_plain_data_gives_the_same_record() -> None:
    data = asdict(WHOLE)
    assert from_plain(Whole, data, "reading", "it") == WHOLE
    assert from_plain(Part, PART, "reading", "it") == Part("a", (1,), ("x", 1.5))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"name": 3}, r"got 3, needed text\n  at it.name$"),
        ({"sizes": 3}, r"got 3, needed a list\n  at it.sizes$"),
        ({"sizes": [1, "2"]}, r"got '2', needed a whole number\n  at it.sizes\[1\]$"),
        ({"sizes": [True]}, r"got True, needed a whole number\n  at it.sizes\[0\]$"),
        ({"pair": ["x"]}, r"got \['x'\], needed 2 entries"),
        ({"pair": ["x", float("nan")]}, "got nan, needed a number"),
        ({"is_new": 1}, "got 1, needed true or false"),
        ({"other": 1}, "got the unknown field 'other', needed the fields name, sizes, pair, is_new"),
    ],
)
def test_other_data_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_plain(Part, PART | changes, "reading", "it")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(UsageError, match="got no seed, needed the fields parts, seed"):
        from_plain(Whole, {"parts": []}, "reading", "it")
    with pytest.raises(UsageError, match="got 5, needed the fields"):
        from_plain(Whole, 5, "reading", "it")
