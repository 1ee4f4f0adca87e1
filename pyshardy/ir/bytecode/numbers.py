"""Numbers in bytecode: one to nine bytes; the first byte tells how many.

Source: docs/bytecode.md#numbers
"""

from __future__ import annotations

from collections.abc import Iterable

_LENGTH = bytes([(first & -first).bit_length() or 9 for first in range(256)])
"""Per first byte of a number, the bytes that the number takes."""


class NumberReader:
    """Reads numbers from bytes, one after the other.

    Args:
        data: The bytes.
        position: Where the first number starts.

    Attributes:
        position: Where the next number starts.

    >>> reader = NumberReader(bytes([7, 0b10, 1]))
    >>> reader.next(), reader.next(), reader.position
    (3, 64, 3)
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def next(self) -> int:
        """The number at the position, which moves past it.

        Raises:
            IndexError: The data ends inside the number.
        """
        data, position = self.data, self.position
        first = data[position]
        if first & 1:
            self.position = position + 1
            return first >> 1
        if first & 2:
            self.position = position + 2
            return (first | data[position + 1] << 8) >> 2
        if first & 4:
            self.position = position + 3
            return (first | data[position + 1] << 8 | data[position + 2] << 16) >> 3
        length = _LENGTH[first]
        self.position = position + length
        if position + length > len(data):
            raise IndexError("a number continues past the end of the data")
        if length == 9:
            return int.from_bytes(data[position + 1 : position + 9], "little")
        return int.from_bytes(data[position : position + length], "little") >> length

    def move_to(self, position: int) -> None:
        """Continue at another position."""
        self.position = position

    def byte(self) -> int:
        """The byte at the position, which moves past it."""
        position = self.position
        self.position = position + 1
        return self.data[position]


class NumberWriter:
    """Writes numbers, one after the other.

    Attributes:
        out: The bytes written so far.

    >>> writer = NumberWriter()
    >>> writer.put(3), writer.put(64), writer.put(128)
    (None, None, None)
    >>> bytes(writer.out)
    b'\\x07\\x81\\x02\\x02'
    """

    def __init__(self) -> None:
        self.out = bytearray()

    def put(self, number: int) -> None:
        """Write a number below 2**64."""
        out = self.out
        if number < 128:
            out.append(number << 1 | 1)
        elif number < 16384:
            out.append(number << 2 & 255 | 2)
            out.append(number >> 6)
        elif number < 2097152:
            out.append(number << 3 & 255 | 4)
            out.append(number >> 5 & 255)
            out.append(number >> 13)
        else:
            out += _long(number)

    def byte(self, value: int) -> None:
        """Write a byte as it is."""
        self.out.append(value)


def _long(number: int) -> bytes:
    """The bytes of a number that takes more than three."""
    length = -(-number.bit_length() // 7)
    if length > 8:
        return b"\0" + number.to_bytes(8, "little")
    return (number << length | 1 << length - 1).to_bytes(length, "little")


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Numbers, one after the other.

    >>> encode_numbers([3, 64, 128])
    b'\\x07\\x81\\x02\\x02'
    """
    writer = NumberWriter()
    for number in numbers:
        writer.put(number)
    return bytes(writer.out)
