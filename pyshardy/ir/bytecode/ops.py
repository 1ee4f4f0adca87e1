"""Ops, regions, blocks and the order of uses in bytecode: numbers, one after the other.

Source: docs/bytecode.md#ops
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.ir.bytecode.numbers import NumberReader, NumberWriter
from pyshardy.ir.bytecode.sections import IR, Bytecode, section_at

HAS_ATTRS = 1
HAS_RESULTS = 2
HAS_OPERANDS = 4
HAS_SUCCESSORS = 8
HAS_REGIONS = 16
HAS_USE_ORDERS = 32
HAS_PROPERTIES = 64
SHORTEST_OP = 3
"""The fewest bytes of an op: its name, its mask and its location."""
ABSENT = -1
"""The number that stands for an absent item."""


_ATTRS, _PROPERTIES, _NONE = HAS_ATTRS, HAS_PROPERTIES, ABSENT  # C variables in the compiled core, which exports none


class UseOrder(NamedTuple):
    """The order of the uses of a value, if it is not the order of the ops.

    Attributes:
        value: The number of the result of the op, or of the argument of the block.
        by_pairs: Whether `numbers` are pairs of a position and the use at that position, only for the uses that moved.
        numbers: Otherwise, the position of every use. Uses are counted from the use by the last op.
    """

    value: int
    by_pairs: bool
    numbers: list[int]


class OpReader(NumberReader):
    """Reads ops. `read_op` reads the start of an op; its mask says which of these parts follow, in order.

    Results: their count and their types. Operands: their count and their values. Successors: their count and their
    blocks. Use orders: `use_orders`. Regions: `region_header`, then per region two numbers from `next`, the count of
    its blocks and the count of all its values, and per block `block_header`, `arg` for each argument, `use_orders`,
    and the ops.

    Args:
        code: The module. The reader starts before the count of the ops, and of the arguments, of the block that holds
            the module op.

    Attributes:
        name: The number of the name of the last op read.
        mask: The parts that it has, as a sum of `HAS_...`.
        location: The number of its location.
        attributes: The number of its discardable attributes; -1 if it has none.
        properties: The number of its inherent attributes; -1 if it has none.
    """

    def __init__(self, code: Bytecode) -> None:
        super().__init__(code.data, code.sections[IR][0])
        self.name = self.location = self.attributes = self.properties = _NONE
        self.mask = 0

    def read_op(self) -> int:
        """Read the start of the next op into this reader's name, location and attributes; return its mask."""
        self.name = self.next()
        mask = self.mask = self.byte()
        self.location = self.next()
        self.attributes = self.next() if mask & _ATTRS else _NONE
        self.properties = self.next() if mask & _PROPERTIES else _NONE
        return mask

    def use_orders(self, count: int) -> list[UseOrder]:
        """The use orders of those among `count` values that have one."""
        found = []
        for _ in range(self.next() if count > 1 else 1):
            value = self.next() if count > 1 else 0
            length = self.next()
            found.append(UseOrder(value, bool(length & 1), [self.next() for _ in range(length >> 1)]))
        return found

    def region_header(self) -> tuple[int, bool]:
        """The number of regions of the op, and whether ops in them see and number only values inside."""
        count = self.next()
        is_isolated = bool(count & 1)
        if is_isolated:  # isolated regions are in a section, which a reader may skip
            self.move_to(section_at(self.data, self.position)[1])
        return count >> 1, is_isolated

    def block_header(self) -> tuple[int, int]:
        """The number of ops in a block, and the number of its arguments."""
        count = self.next()
        return count >> 1, self.next() if count & 1 else 0

    def arg(self) -> tuple[int, int]:
        """The numbers of the type and the location of an argument; -1 for an unknown location."""
        type_and_flag = self.next()
        return type_and_flag >> 1, self.next() if type_and_flag & 1 else _NONE


class OpWriter(NumberWriter):
    """Writes ops: the inverse of `OpReader`."""

    def write_op(self, name: int, mask: int, location: int, attributes: int, properties: int) -> None:
        """Write the start of an op.

        Args:
            name: The number of its name.
            mask: The other parts that it has: results, operands, successors and regions, as a sum of `HAS_...`.
            location: The number of its location.
            attributes: The number of its discardable attributes; -1 if it has none.
            properties: The number of its inherent attributes; -1 if it has none.
        """
        self.put(name)
        if attributes >= 0:
            mask |= _ATTRS
        if properties >= 0:
            mask |= _PROPERTIES
        self.out.append(mask)
        self.put(location)
        if attributes >= 0:
            self.put(attributes)
        if properties >= 0:
            self.put(properties)

    def region_header(self, count: int) -> None:
        """Write the number of regions of an op that is not isolated: their values continue the numbering outside."""
        self.put(count << 1)

    def block_header(self, ops: int, args: int) -> None:
        """Write the number of ops in a block, and the number of its arguments."""
        self.put(ops << 1 | (args > 0))
        if args:
            self.put(args)

    def arg(self, type: int, location: int) -> None:
        """Write an argument by the numbers of its type and its location, -1 for an unknown one."""
        if location < 0:
            self.put(type << 1)
        else:
            self.put(type << 1 | 1)
            self.put(location)

    def end_args(self) -> None:
        """End the arguments of a block whose uses are in the order of the ops."""
        self.out.append(0)
