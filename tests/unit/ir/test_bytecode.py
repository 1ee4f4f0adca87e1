from __future__ import annotations

from io import BytesIO

import pytest

from pyshardy.ir.bytecode import (
    VERSION,
    bytecode_of,
    encode_number,
    encode_numbers,
    has_lost_range,
    number_at,
    parse_bytecode,
    section_at,
)
from pyshardy.ir.module import Module


@pytest.mark.parametrize(
    ("data", "expected", "length"),
    [
        (b"\x01", 0, 1),
        (b"\xff", 127, 1),
        (b"\x02\x02", 128, 2),
        (b"\xfe\xff", (1 << 14) - 1, 2),
        (b"\x04\x00\x02", 1 << 14, 3),
        (b"\x80" + b"\xff" * 7, (1 << 56) - 1, 8),
        (b"\x00" + (1 << 63).to_bytes(8, "little"), 1 << 63, 9),
    ],
)
def test_numbers(data: bytes, expected: int, length: int) -> None:
    assert number_at(b"?" + data + b"rest", 1) == (expected, 1 + length)
    assert encode_number(expected) == data


def test_numbers_behind_each_other() -> None:
    numbers = [0, 127, 128, (1 << 14) - 1, 1 << 14, (1 << 56) - 1]
    assert encode_numbers(numbers) == b"".join(map(encode_number, numbers))


def test_sections_may_be_aligned() -> None:
    assert section_at(b"\x04\x07abc", 0) == (4, 2, 5)
    assert section_at(b"\x84\x07\x09\xcbabc", 0) == (4, 4, 7)  # three bytes from the next multiple of 4 on


def test_names() -> None:
    module = Module.parse(
        'func.func @main(%a: tensor<i1>) { %0 = stablehlo.not %a : tensor<i1> "foo"() : () -> () "x.y.z"() : () -> () return }',
        allow_unregistered_dialects=True,
    )
    code = bytecode_of(module.mlir)
    known = dict(zip(code.names, code.is_registered))
    assert known == {
        "builtin.module": True,
        "func.func": True,
        "func.return": True,
        "stablehlo.not": True,
        "foo": False,
        "x.y.z": False,
    }


def test_other_versions_are_not_read() -> None:
    stream = BytesIO()
    Module.parse("func.func @main() { return }").mlir.operation.write_bytecode(stream, VERSION - 1)
    with pytest.raises(AssertionError, match="another version"):
        parse_bytecode(stream.getvalue())


@pytest.mark.parametrize("text", ['"a":8:0 to :5', '"a":80:0 to :50'])
def test_locations_that_get_lost(text: str) -> None:
    for location in (text, text.replace(":0 ", ":1 "), text.replace(" to :", " to 9:")):
        module = Module.parse(f"func.func @main() {{ return loc({location}) }}")
        again = Module.parse(module.bytecode())
        is_lost = again.text(debug_info=True) != module.text(debug_info=True)
        assert has_lost_range(location) == has_lost_range(location.encode()) == is_lost == (location == text)
