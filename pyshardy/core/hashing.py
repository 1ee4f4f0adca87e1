"""A hash that spreads small numbers over all bits."""

from __future__ import annotations

_STEPS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_MASK = 2**64 - 1


def mixed(number: int, bits: int) -> int:
    """The low half of the 64-bit finaliser of MurmurHash3; for 64 bits, that half twice.

    >>> hex(mixed(0, 32)), hex(mixed(1, 32)), hex(mixed(1, 64))
    ('0x0', '0x34c2cb2c', '0x34c2cb2c34c2cb2c')
    """
    for step in _STEPS:
        number ^= number >> 33
        number = number * step & _MASK
    number = (number ^ number >> 33) & 0xFFFFFFFF
    return number if bits == 32 else number << 32 | number
