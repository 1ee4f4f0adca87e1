from __future__ import annotations

import pytest

from pyshardy.ir.bytecode.locations import LINE_AND_COLUMN, RANGE, has_lost_range, line_as_place
from pyshardy.ir.bytecode.numbers import encode_numbers
from pyshardy.ir.module import Module


@pytest.mark.parametrize("text", ['"a":8:0 to :5', '"a":80:0 to :50'])
def test_locations_that_get_lost(text: str) -> None:
    for location in (text, text.replace(":0 ", ":1 "), text.replace(" to :", " to 9:")):
        module = Module.parse(f"func.func @main() {{ return loc({location}) }}")
        again = Module.parse(module.bytecode())
        is_lost = again.text(debug_info=True) != module.text(debug_info=True)
        assert has_lost_range(location) == has_lost_range(location.encode()) == is_lost == (location == text)


def test_a_line_alone_becomes_a_place() -> None:
    assert line_as_place(encode_numbers([RANGE, 300, 1, 8])) == encode_numbers([LINE_AND_COLUMN, 300, 8, 0])


@pytest.mark.parametrize("numbers", [[RANGE, 300, 2, 8, 1], [LINE_AND_COLUMN, 300, 8, 0]])
def test_others_stay(numbers: list[int]) -> None:
    assert line_as_place(encode_numbers(numbers)) is None
