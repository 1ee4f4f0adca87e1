"""The ops of a module, read by their numbers and written again."""

from __future__ import annotations

import pytest

from pyshardy.ir.bytecode.ops import (
    HAS_OPERANDS,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_ORDERS,
    OpReader,
    OpWriter,
    UseOrder,
)
from pyshardy.ir.bytecode.sections import IR, Bytecode
from pyshardy.ir.bytecode.tables import BytecodeTables
from pyshardy.ir.module import Module
from pyshardy.ir.read import bytecode_of

PROGRAM = """module attributes {my.note = 7 : i32} {
  func.func @main(%a: tensor<i1> loc(unknown), %b: i32 loc("b")) {
    %0 = stablehlo.not %a : tensor<i1>
    cf.br ^bb1(%0, %0 : tensor<i1>, tensor<i1>)
  ^bb1(%c: tensor<i1>, %d: tensor<i1>):
    "t.region"() ({ "t.a"(%c) : (tensor<i1>) -> () }, {}) : () -> ()
    return
  }
}"""


class Copier:
    """Reads the ops of a module and writes what it reads, as if all regions saw the values around them.

    Attributes:
        found: The names of the ops, each before those inside it, with how many operands and results each has.
        orders: The orders of uses that were read, which are not written.
    """

    def __init__(self, code: Bytecode) -> None:
        self.names = code.names
        self.reader = OpReader(code)
        self.writer = OpWriter()
        self.found: list[tuple[str, int, int]] = []
        self.orders: list[UseOrder] = []
        self.block(0)

    def numbers(self) -> list[int]:
        found = [self.reader.next() for _ in range(self.reader.next())]
        self.writer.put(len(found))
        for number in found:
            self.writer.put(number)
        return found

    def block(self, outside: int) -> None:
        ops, args = self.reader.block_header()
        self.writer.block_header(ops, args)
        for _ in range(args):
            self.writer.arg(*self.reader.arg())
        if args:
            if self.reader.byte():
                self.orders += self.reader.use_orders(args)
            self.writer.end_args()
        for _ in range(ops):
            self.op(outside)

    def op(self, outside: int) -> None:
        reader, place = self.reader, len(self.found)
        mask = reader.read_op()
        self.writer.write_op(
            reader.name, mask & ~HAS_USE_ORDERS & 63 & ~1, reader.location, reader.attributes, reader.properties
        )
        self.found.append((self.names[reader.name], 0, 0))
        name = self.names[reader.name]
        results = self.numbers() if mask & HAS_RESULTS else []
        operands = self.numbers() if mask & HAS_OPERANDS else []
        if mask & HAS_SUCCESSORS:
            self.numbers()
        if mask & HAS_USE_ORDERS:
            self.orders += reader.use_orders(len(results))
        self.found[place] = name, len(operands), len(results)
        if mask & HAS_REGIONS:
            count, is_isolated = reader.region_header()
            assert not (is_isolated and outside), "only regions that nothing is defined outside of are copied"
            self.writer.region_header(count)
            for _ in range(count):
                blocks = reader.next()
                self.writer.put(blocks)
                if not blocks:
                    continue
                values = reader.next()
                self.writer.put(values)
                for _ in range(blocks):
                    self.block(outside + values)


def test_ops_are_read_and_written() -> None:
    module = Module.parse(PROGRAM, allow_unregistered_dialects=True)
    code = bytecode_of(module.mlir)
    copier = Copier(code)
    assert copier.reader.position == code.sections[IR][1]
    assert copier.found == [
        ("builtin.module", 0, 0),
        ("func.func", 0, 0),
        ("stablehlo.not", 1, 1),
        ("cf.br", 2, 0),
        ("t.region", 0, 0),
        ("t.a", 1, 0),
        ("func.return", 0, 0),
    ]
    written = BytecodeTables(code).module(bytes(copier.writer.out))
    assert Module.parse(written, allow_unregistered_dialects=True).text(debug_info=True) == module.text(debug_info=True)


@pytest.mark.parametrize("uses", [2, 4])
def test_orders_of_uses(uses: int) -> None:
    """A use that was set later stands first, behind the ops that come after it."""
    lines = "\n".join(f"%{number} = stablehlo.sine %a : tensor<8xf32>" for number in range(uses))
    module = Module.parse(f"func.func @main(%a: tensor<8xf32>) {{ {lines} return }}")
    assert Copier(bytecode_of(module.mlir)).orders == []
    first = module.mlir.body.operations[0].regions[0].blocks[0].operations[0].operation
    with module.context:
        first.operands[0] = first.operands[0]
    (order,) = Copier(bytecode_of(module.mlir)).orders
    assert order.value == 0
    assert not order.by_pairs
    assert order.numbers == [*range(1, uses), 0]


def test_locations_of_arguments() -> None:
    code = bytecode_of(Module.parse("func.func @main(%a: i32 loc(unknown)) { return }").mlir)
    reader = OpReader(code)
    for _ in range(2):
        assert reader.block_header()[0] == 1
        reader.read_op()
        assert reader.region_header() == (1, True)
        reader.next(), reader.next()
    assert reader.block_header() == (1, 1)
    assert reader.arg()[1] == -1
