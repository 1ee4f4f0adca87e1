from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.ir.bytecode.numbers import NumberReader, NumberWriter, encode_numbers

EXAMPLES = [
    (b"\x01", 0),
    (b"\xff", 127),
    (b"\x02\x02", 128),
    (b"\xfe\xff", (1 << 14) - 1),
    (b"\x04\x00\x02", 1 << 14),
    (b"\xfc\xff\xff", (1 << 21) - 1),
    (b"\x08\x00\x00\x02", 1 << 21),
    (b"\x80" + b"\xff" * 7, (1 << 56) - 1),
    (b"\x00" + (1 << 62).to_bytes(8, "little"), 1 << 62),
]


@pytest.mark.parametrize(("data", "number"), EXAMPLES)
def test_numbers(data: bytes, number: int) -> None:
    reader = NumberReader(b"?" + data + b"rest", 1)
    assert reader.next() == number
    assert reader.position == 1 + len(data)
    assert encode_numbers([number]) == data


@pytest.mark.slow
@given(st.lists(st.integers(0, 70).flatmap(lambda bits: st.integers(0, (1 << min(bits, 62)) - 1 if bits else 0))))
def test_numbers_behind_each_other_are_read_as_they_were_written(numbers: list[int]) -> None:
    data = encode_numbers(numbers)
    reader = NumberReader(data)
    assert [reader.next() for _ in numbers] == numbers
    assert reader.position == len(data)


@pytest.mark.parametrize("data", [data for data, _ in EXAMPLES])
def test_a_number_that_is_cut_off(data: bytes) -> None:
    with pytest.raises(IndexError):
        NumberReader(data[:-1]).next()


def test_bytes() -> None:
    writer = NumberWriter()
    writer.byte(200)
    writer.put(200)
    reader = NumberReader(bytes(writer.out))
    assert (reader.byte(), reader.next(), reader.position) == (200, 200, 3)
