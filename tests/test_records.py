"""Every data class is of a kind that CONTRIBUTING explains: with slots, unless it keeps what it has computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pyshardy"
OTHERS = {"Values": "a sequence, whose base class has no slots"}
"""Data classes without slots that cache nothing."""


def without_slots(source: str) -> Iterator[str]:
    """The data classes of a file without slots that cache nothing on their values."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and "cached_property" not in ast.unparse(node):
            decorators = [ast.unparse(one) for one in node.decorator_list]
            if any(one.startswith("dataclass") and "slots=True" not in one for one in decorators):
                yield node.name


def test_data_classes_have_slots() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "record.py"]
    found = [name for path in files for name in without_slots(path.read_text())]
    assert set(found) == set(OTHERS) and len(files) > 600


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("@dataclass(frozen=True)\nclass A:\n    x: int", ["A"]),
        ("@dataclass\nclass A:\n    x: int", ["A"]),
        ("@dataclass(slots=True)\nclass A:\n    x: int", []),
        ("@dataclass\nclass A:\n    @cached_property\n    def x(self): ...", []),
    ],
)
def test_the_check_finds_them(source: str, expected: list[str]) -> None:
    assert list(without_slots(source)) == expected
