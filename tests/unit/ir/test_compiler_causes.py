"""What collectives of a compiler's program are for: windowed products, and the op that they serve."""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.ir.compiler_causes import CompilerCauses, windowed_permutes
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.traffic import collectives_of

T = "tensor<4x4xf32>"
DOT = "jit(f)/transpose(jvp(mlp))/dot_general"


def permute(value: str, name: str) -> str:
    return f"""\"stablehlo.collective_permute"({value}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}}> : ({T}) -> {T} loc("{name}"("m.py":3:4))"""


def program(travels: str, sums: bool = False, permutes: str = DOT, loop: str = DOT) -> Module:
    """A loop of a product and a permute of one of its values, with a permute before and one after it."""
    first, last = ("%pre", "%w") if not sums else ("%w", "%pre")
    product = f"""%y = stablehlo.dot_general %{"a" if not sums else "b"}, %b, contracting_dims = [1] x [0]
        : ({T}, {T}) -> {T} loc("{DOT}"("m.py":3:4))"""
    return Module.parse(f"""
    func.func @main(%x: {T}, %w: {T}, %n: tensor<i32>) -> {T} {{
      %c = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %pre = {permute("%x", permutes)}
      %r:3 = stablehlo.while(%a = {first}, %b = {last}, %i = %c) : {T}, {T}, tensor<i32>
      cond {{
        %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
      }} do {{
        {product}
        %s = stablehlo.add %a, %y : {T}
        %p = {permute(travels, permutes)}
        %k = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %p, %b, %k : {T}, {T}, tensor<i32>
      }} loc("{loop}"("m.py":3:4))
      %post = {permute("%r#0", permutes)}
      return %post : {T}
    }}""")


def kinds(module: Module) -> list[str | None]:
    """Of the permutes in program order: before the loop, in it, after it."""
    found = windowed_permutes(module.root)
    permutes = [op for op in walk(module.root) if op.name == "stablehlo.collective_permute"]
    return [found[op].value if op in found else None for op in permutes]


def test_parts_of_an_operand_that_travel_are_an_all_gather() -> None:
    assert kinds(program("%a")) == ["all_gather", "all_gather", "reduce_scatter"]


def test_sums_that_travel_are_a_reduce_scatter() -> None:
    assert kinds(program("%s", sums=True)) == ["all_gather", "reduce_scatter", "reduce_scatter"]


def test_sums_of_rounds_before_are_known() -> None:
    """The permute comes before the sum, which the next round takes."""
    module = program("%a", sums=True)
    body = next(op for op in walk(module.root) if op.name == "stablehlo.while").regions[1].block
    permutes = [op for op in body if op.name == "stablehlo.collective_permute"]
    added = next(op for op in body if op.name == "stablehlo.add" and op.result.type.rank == 2)
    body.terminator.set_operand(0, added.result)
    assert windowed_permutes(module.root)[permutes[0]].value == "reduce_scatter"


@pytest.mark.parametrize(("permutes", "loop"), [("jit(f)/ppermute", DOT), (DOT, "jit(f)/while")])
def test_the_loop_of_a_user_is_none(permutes: str, loop: str) -> None:
    assert kinds(program("%a", permutes=permutes, loop=loop)) == [None, None, None]


def test_rows_say_what_a_permute_is_and_which_op_it_serves() -> None:
    root: Op = program("%a").root
    before, during, after = collectives_of(root, {"mesh": Mesh([("x", 2)])}, compiler=CompilerCauses(root))
    assert before.cause == during.cause == "windowed all_gather of dot_general in the gradient"
    assert (during.windowed, after.windowed) == ("all_gather", "reduce_scatter")
    (other, *_) = collectives_of(root, {"mesh": Mesh([("x", 2)])})
    assert (other.cause, other.windowed) == (None, None)


def test_a_gather_of_an_input_serves_the_op_that_needs_it() -> None:
    """The compiler gives it the name of the input, and what it makes of it in between has no name at all."""
    module = Module.parse(f"""
    func.func @main(%x: {T}, %w: {T}) -> {T} {{
      %p = {permute("%w", "w").replace('("m.py":3:4)', "")}
      %q = stablehlo.transpose %p, dims = [1, 0] : ({T}) -> {T}
      %y = stablehlo.dot_general %x, %q, contracting_dims = [1] x [0]
        : ({T}, {T}) -> {T} loc("jit(f)/mlp/dot_general"("m.py":7:4))
      return %y : {T}
    }}""")
    (row,) = collectives_of(module.root, {"mesh": Mesh([("x", 2)])}, compiler=CompilerCauses(module.root))
    assert (row.op, row.cause, row.source) == ("jit(f)/mlp/dot_general", "dot_general", ("m.py", 7, 4))
    (own,) = collectives_of(module.root, {"mesh": Mesh([("x", 2)])})
    assert (own.op, own.source) == ("w", None)


def test_a_collective_that_serves_no_op_keeps_its_name() -> None:
    module = Module.parse(f"""
    func.func @main(%w: {T}) -> {T} {{
      %p = {permute("%w", "w").replace('("m.py":3:4)', "")}
      return %p : {T}
    }}""")
    (row,) = collectives_of(module.root, {"mesh": Mesh([("x", 2)])}, compiler=CompilerCauses(module.root))
    assert (row.op, row.cause, row.source) == ("w", "w", None)
