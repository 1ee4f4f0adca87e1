from __future__ import annotations

import pytest

from pyshardy.ir.blocks import FEW_USES
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Block, Op, Region, Value, ValueType, walk, walk_post_order
from pyshardy.ir.op_lists import ops_in, ops_named, ops_with

from .reading import find, main, read

F32 = ValueType(None, (), "f32", True, True)


def op(name: str, *operands: Value, results: int = 1, regions: int = 0) -> Op:
    return Op(f"t.{name}", operands, [F32] * results, region_count=regions)


def names(ops: object) -> str:
    return " ".join(op.name.removeprefix("t.") for op in ops)  # type: ignore[attr-defined]


def block_of(text: str) -> tuple[Block, dict[str, Op]]:
    """A block with one op per letter."""
    holder = op("holder", regions=1)
    block = holder.region.add_block()
    return block, {name: block.append(op(name, results=0)) for name in text.split()}


@pytest.mark.parametrize(
    ("text", "shape", "element", "is_shaped", "is_ranked_tensor"),
    [
        ("tensor<8x4xf32>", (8, 4), "f32", True, True),
        ("tensor<bf16>", (), "bf16", True, True),
        ("tensor<?x4xi32>", (-1, 4), "i32", True, True),
        ("tensor<*xf32>", None, "tensor<*xf32>", True, False),
        ("!stablehlo.token", None, "!stablehlo.token", False, False),
        ("tuple<tensor<8xf32>>", None, "tuple<tensor<8xf32>>", False, False),
        ("vector<4xf32>", (4,), "f32", True, False),
        ("memref<2x?xi1>", (2, -1), "i1", True, False),
        ("index", None, "index", False, False),
        ("tensor<2xcomplex<f32>>", (2,), "complex<f32>", True, True),
        ("tensor<2x!quant.uniform<i8:f32, 1.0>>", (2,), "!quant.uniform<i8:f32, 1.0>", True, True),
    ],
)
def test_value_types(
    text: str, shape: tuple[int, ...] | None, element: str, is_shaped: bool, is_ranked_tensor: bool
) -> None:
    root = read(f"func.func @main(%a: {text}) {{ return }}", allow_unregistered="quant" in text)
    type = find(root, "func.func").region.block.args[0].type
    assert (type.shape, type.element, type.is_shaped, type.is_ranked_tensor) == (
        shape,
        element,
        is_shaped,
        is_ranked_tensor,
    )
    assert type.is_static == (shape is not None and -1 not in shape)
    assert type.rank == len(shape or ())
    assert str(type) == text


def test_values_know_where_they_are_defined() -> None:
    holder = op("holder", regions=1)
    block = holder.region.add_block()
    arg = block.add_arg(F32)
    inner = block.append(op("inner", results=2))
    assert (arg.defining_op, arg.block, arg.index) == (None, block, 0)
    assert [(result.defining_op, result.block, result.index) for result in inner.results] == [
        (inner, block, 0),
        (inner, block, 1),
    ]


def test_ops_in_a_block() -> None:
    block, ops = block_of("a b")
    block.prepend(op("first", results=0))
    op("x", results=0).insert_before(ops["b"])
    op("y", results=0).insert_after(ops["b"])
    op("z", results=0).insert_after(ops["a"])
    assert names(block) == "first a z x b y"
    assert names(reversed(block)) == "y b x z a first"
    assert block.terminator.name == "t.y"
    ops["a"].detach()
    assert block.first is not None
    block.first.detach()
    block.terminator.detach()
    assert names(block) == "z x b"
    assert names(reversed(block)) == "b x z"
    assert (ops["a"].block, ops["a"].prev, ops["a"].next) == (None, None, None)
    block.append(ops["a"])
    assert names(block) == "z x b a"


def test_a_block_without_ops() -> None:
    block, ops = block_of("a")
    ops["a"].erase()
    assert (block.first, block.last, list(block), list(reversed(block))) == (None, None, [], [])


def test_ops_may_be_erased_while_they_are_visited() -> None:
    block, _ = block_of("a b c d")
    for inner in block:
        if inner.name in ("t.a", "t.c"):
            inner.erase()
    assert names(block) == "b d"
    for inner in reversed(block):
        inner.erase()
    assert list(block) == []


def test_order_inside_a_block() -> None:
    block, ops = block_of("a b c")
    assert ops["a"].is_before(ops["c"])
    assert not ops["c"].is_before(ops["a"])
    assert not ops["a"].is_before(ops["a"])
    end = block.append(op("end"))
    assert ops["c"].is_before(end)
    start = block.prepend(op("start"))
    middle = op("middle").insert_after(ops["a"])
    assert start.is_before(ops["a"])
    assert ops["a"].is_before(middle)
    assert middle.is_before(ops["b"])
    block.append(ops["a"].detach())
    assert end.is_before(ops["a"])
    assert names(sorted(block, key=lambda inner: inner.order)) == "start middle b c end a"


def test_regions() -> None:
    holder = op("holder", regions=2)
    first, second = holder.regions
    block = first.add_block()
    other = second.add_block()
    assert (block.parent_op, first.block, second.block) == (holder, block, other)
    second.take_body(first)
    assert (first.blocks, second.blocks, block.region) == ([], [other, block], second)
    with pytest.raises(ValueError):
        _ = second.block
    with pytest.raises(ValueError):
        _ = holder.region
    with pytest.raises(ValueError):
        _ = op("pair", results=2).result


def test_ops_around_an_op() -> None:
    outer, middle, inner = (op(name, regions=1) for name in ("outer", "middle", "inner"))
    outer.region.add_block().append(middle)
    middle.region.add_block().append(inner)
    assert list(inner.ancestors()) == [middle, outer]
    assert inner.parent_op is middle
    assert outer.parent_op is None
    assert inner.enclosing("t.outer") is outer
    assert inner.enclosing("t.inner") is None
    assert repr(inner) == "<Op t.inner>"


def uses(value: Value) -> str:
    """The uses in use-list order."""
    return " ".join(f"{user.name.removeprefix('t.')}{index}" for user, index in reversed(value.uses))


def test_a_new_use_comes_first() -> None:
    value = op("v").result
    op("a", value)
    op("b", value, value)
    assert uses(value) == "b1 b0 a0"
    assert names(value.users()) == "b b a"
    assert not value.has_one_use()


def test_setting_an_operand() -> None:
    v, w = op("v"), op("w")
    a, b = op("a", v.result, v.result), op("b", w.result)
    a.set_operand(0, w.result)
    assert (uses(v.result), uses(w.result)) == ("a1", "a0 b0")
    assert a.operands == (w.result, v.result)
    assert v.result.has_one_use()
    b.set_operand(0, w.result)
    assert uses(w.result) == "b0 a0"


def test_replaced_uses_come_first_in_reverse() -> None:
    v, w = op("v"), op("w")
    a, b, c, d = op("a", v.result), op("b", v.result), op("c", v.result), op("d", w.result)
    v.result.replace_uses(w.result)
    assert (uses(v.result), uses(w.result)) == ("", "a0 b0 c0 d0")
    assert [x.operands for x in (a, b, c, d)] == [(w.result,)] * 4


def test_some_uses_are_replaced() -> None:
    v, w = op("v"), op("w")
    a, b, c = op("a", v.result), op("b", v.result, v.result), op("c", v.result)
    v.result.replace_uses(w.result, lambda user, index: user is not a and index == 0)
    assert (uses(v.result), uses(w.result)) == ("b1 a0", "b0 c0")
    assert b.operands == (w.result, v.result)
    assert c.operands == (w.result,)


def test_erasing() -> None:
    v, w = op("v"), op("w")
    block, _ = block_of("")
    holder = block.append(op("holder", v.result, regions=1))
    inner = holder.region.add_block().append(op("inner", w.result, v.result))
    user = op("user", holder.result)
    with pytest.raises(AssertionError, match="t.holder still has uses"):
        holder.erase()
    user.drop_operands()
    assert holder.has_uses() is False
    holder.erase()
    assert (uses(v.result), uses(w.result), list(block), inner.operands) == ("", "", [], ())


def test_cloning() -> None:
    outside = op("outside")
    holder = Op("t.holder", [outside.result], [F32], {"list": [{"a": 1}], "number": 1}, 1, "here")
    block = holder.region.add_block()
    arg = block.add_arg(F32, "there")
    first = block.append(op("first", arg, outside.result))
    second = block.append(op("second", first.result))
    replaced = op("replaced")
    mapping = {outside.result: replaced.result}
    copy = holder.clone(mapping)
    assert (copy.name, copy.operands, copy.location, copy.block) == ("t.holder", (replaced.result,), "here", None)
    assert copy.attrs == holder.attrs
    copy.set_attr("number", 2)
    assert holder.attrs["number"] == 1
    copied_arg = copy.region.block.args[0]
    assert (copied_arg.type, copied_arg.location) == (F32, "there")
    copied_first, copied_second = copy.region.block
    assert copied_first.operands == (copied_arg, replaced.result)
    assert copied_second.operands == (copied_first.result,)
    assert uses(outside.result) == "first1 holder0"
    assert mapping[first.result] is copied_first.result
    assert mapping[second.result] is copied_second.result
    assert mapping[arg] is copied_arg
    assert mapping[holder.result] is copy.result


def test_cloning_blocks_that_branch() -> None:
    holder = op("holder", regions=1)
    first, second = holder.region.add_block(), holder.region.add_block()
    first.append(Op("cf.br", successors=(second,)))
    second.append(Op("cf.br", successors=(first,)))
    copied_first, copied_second = holder.clone().region.blocks
    assert copied_first.terminator.successors == (copied_second,)
    assert copied_second.terminator.successors == (copied_first,)


def nested() -> Op:
    """a(b c(d) | e) f"""
    root = op("root", regions=1)
    block = root.region.add_block()
    a = block.append(op("a", results=0, regions=2))
    block.append(op("f", results=0))
    inside, beside = (region.add_block() for region in a.regions)
    inside.append(op("b", results=0))
    c = inside.append(op("c", results=0, regions=1))
    c.region.add_block().append(op("d", results=0))
    beside.append(op("e", results=0))
    return root


def test_walking() -> None:
    assert names(walk(nested())) == "root a b c d e f"
    assert names(walk_post_order(nested())) == "b d c e a f root"
    assert names(walk(op("alone"))) == "alone"


def test_walking_through_several_blocks() -> None:
    root = op("root", regions=2)
    for region in root.regions:
        for name in ("x", "y"):
            region.add_block().append(op(name, regions=1)).region.add_block().append(op("in"))
    assert names(walk(root)) == "root x in y in x in y in"
    assert names(walk_post_order(root)) == "in x in y in x in y root"


def test_lists_of_ops() -> None:
    root = nested()
    assert ops_in(root) == list(walk(root))
    assert names(ops_named(root, {"t.e", "t.b", "t.root"})) == "root b e"
    root.region.block.first.set_attr("seen", True)
    assert names(ops_with(root, "seen")) == "a"
    assert names(ops_with(root, "seen", {"t.c", "t.a"})) == "a c"
    assert ops_named(root, {"t.other"}) == ops_with(root, "other") == []


def test_lists_of_ops_in_post_order() -> None:
    root = nested()
    assert ops_in(root, post_order=True) == list(walk_post_order(root))
    assert names(ops_named(root, {"t.e", "t.b", "t.root"}, post_order=True)) == "b e root"


def test_lists_of_ops_without_what_some_hold() -> None:
    root = nested()
    assert names(ops_in(root, closed={"t.c"})) == "root a b c e f"
    assert names(ops_in(root, closed={"t.a"}, post_order=True)) == "a f root"
    assert names(ops_in(root, closed={"t.root"})) == names(walk(root))


def test_ops_may_be_erased_in_a_walk() -> None:
    for order in (walk, walk_post_order):
        root = nested()
        for inner in order(root):
            if inner.name in ("t.b", "t.d", "t.e", "t.f"):
                inner.erase()
        assert names(walk(root)) == "root a c"


def test_terminators() -> None:
    function = main("  %0 = stablehlo.add %a, %b : tensor<8xf32>")
    assert find(function, "func.return").is_terminator
    assert not find(function, "stablehlo.add").is_terminator
    assert not function.is_terminator


def test_reading_keeps_regions_apart() -> None:
    root = read("func.func private @f()")
    assert isinstance(find(root, "func.func").region, Region)
    assert find(root, "func.func").region.blocks == []


def test_ops_are_appended_in_order() -> None:
    block, known = block_of("a")
    more = [op(name, results=0) for name in "bc"]
    for new in more:
        block.append(new)
    assert names(block) == "a b c"
    assert names(reversed(block)) == "c b a"
    assert known["a"].is_before(more[1])


def test_a_copy_has_the_location_of_what_was_read() -> None:
    module = Module.parse('func.func @main() { return loc("here") }')
    end = module.copy_root().region.block.terminator.region.block.terminator
    copy = end.clone()
    assert copy.source is None
    assert copy.location == end.location == copy.place
    assert "here" in str(copy.location)
    copy.location = "elsewhere"
    assert (copy.location, copy.place) == ("elsewhere", "elsewhere")


def test_uses_keep_their_order_however_many_there_are() -> None:
    value, other = op("a").result, op("b").result
    users = [op("user", *[value] * 3) for _ in range(FEW_USES)]
    expected = [(user, index) for user in users for index in range(3)]
    assert list(value.uses) == expected
    assert [user for user, _ in reversed(expected)] == value.users()
    for user, index in expected[::2]:
        user.set_operand(index, other)
    assert list(value.uses) == expected[1::2]
    assert list(other.uses) == expected[::2]
    value.replace_uses(other)
    assert not value.uses
    assert list(other.uses) == expected[::2] + expected[1::2][::-1]
