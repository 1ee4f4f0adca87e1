"""Which originals the splitter keeps, and how uses are ordered afterwards; what it writes is in the file-checks."""

from __future__ import annotations

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.importing.constant_or_scalar_splitter import ConstantOrScalarSplitter
from pyshardy.passes.pipeline import run_on_root

T = "tensor<4x4xf32>"
BROADCAST = "stablehlo.broadcast_in_dim"


class Split:
    """A function that was split, and the broadcasts that were there before."""

    def __init__(self, body: str) -> None:
        text = f"func.func @main(%x: {T}, %s: tensor<f32>, %t: tensor<f32>) {{\n{body}\n  return\n}}\n"
        module = Module.parse(text.replace("BROADCAST %s", f"{BROADCAST} %s, dims = [] : (tensor<f32>) -> {T}"))
        self.root = module.copy_root()
        self.before = self.ops(BROADCAST)
        run_on_root(module, self.root, [ConstantOrScalarSplitter()])

    def ops(self, *names: str) -> list[Op]:
        return ops_named(self.root, names)

    @property
    def scalar_users(self) -> list[Op]:
        """The users of `%s`, the last use first."""
        return self.ops("func.func")[0].region.block.args[1].users()


def test_an_original_stands_for_the_copy_of_its_last_use() -> None:
    found = Split(f"  %b = BROADCAST %s\n  %0 = stablehlo.add %x, %b : {T}\n  %1 = stablehlo.multiply %b, %b : {T}")
    copies = found.ops(BROADCAST)
    assert len(copies) == 3
    assert copies[-1] is found.before[0]
    assert [copy.results[0].users() for copy in copies] == [[op] for op in found.ops("stablehlo.add")] + [
        [op] for op in found.ops("stablehlo.multiply") * 2
    ]


def test_an_original_is_used_like_a_new_copy() -> None:
    found = Split(
        f"  %b = BROADCAST %s\n  %c = BROADCAST %s\n  %0 = stablehlo.add %x, %c : {T}\n"
        f"  %1 = stablehlo.multiply %x, %b : {T}\n"
    )
    first, second = found.before
    assert found.ops(BROADCAST) == [first, second]
    assert found.scalar_users == [first, second]  # copied in the order in which they are used: the second one first


def test_what_an_expression_uses_alone_stays_with_it() -> None:
    found = Split(
        f"  %i = stablehlo.iota dim = 0 : {T}\n  %c = stablehlo.constant dense<1.0> : {T}\n"
        f"  %e = stablehlo.add %i, %c : {T}\n  %f = stablehlo.negate %c : {T}\n"
        f"  %0 = stablehlo.multiply %x, %e : {T}\n  %1 = stablehlo.multiply %x, %f : {T}"
    )
    iota, one, other = found.ops("stablehlo.iota", "sdy.constant")
    added, negated = found.ops("stablehlo.add", "stablehlo.negate")
    assert (added.operands, negated.operands) == ((iota.results[0], one.results[0]), (other.results[0],))


def test_a_dead_original_is_erased_with_what_it_uses() -> None:
    found = Split(f"  %c = stablehlo.constant dense<1.0> : {T}\n  %d = stablehlo.negate %c : {T}")
    assert found.ops("sdy.constant", "stablehlo.negate") == []
