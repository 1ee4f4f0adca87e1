"""Numbers on command lines."""

from __future__ import annotations

import pytest

from pyshardy.cli.numbers import whole_number
from pyshardy.errors import UsageError


@pytest.mark.parametrize("text", ["5", "05", "9"])
def test_numbers_in_range(text: str) -> None:
    assert whole_number(text, "counting", 5, 9) == int(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4", "got '4', needed a whole number from 5"),
        ("10", "got '10', needed a whole number from 5 to 9"),
        ("-7", "got '-7', needed a whole number from 5"),
        ("", "got '', needed a whole number from 5"),
        ("²", "got '²', needed a whole number from 5"),
        ("٧", "got '٧', needed a whole number from 5"),
        ("1" * 31, f"got '{'1' * 30}...', needed a whole number from 5 to 9"),
        ("0" * 5000, f"got '{'0' * 30}...', needed a whole number from 5"),
    ],
)
def test_others_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        whole_number(text, "counting", 5, 9)
    assert str(caught.value) == f"counting: {message}"
