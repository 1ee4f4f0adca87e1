"""A module that is written as bytecode is the one that is written op by op."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jaxlib.mlir import ir

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_mesh, parse_sharding
from pyshardy.ir import write
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.emit import CannotEmitError, emit_module
from pyshardy.ir.functions import set_arg_attr, set_arg_sharding, set_result_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.write import OpByOpWarning, write_module, write_op_by_op
from pyshardy.rules.notation import parse_rule
from support.writing import asm, check_same, emitted

from .reading import find, function

T = "tensor<8xf32>"
PROGRAM = f"""module @"a name" attributes {{some.note = 1 : i32}} {{
  sdy.mesh @m = <["x"=2]>
  sdy.mesh @n = <["y"=2]>
  func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}} loc("a"), %b: {T} loc("b")) -> ({T}, {T}) {{
    %0 = stablehlo.add %a, %b {{other.name = "kept", sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}]>]>}} : {T}
    %1 = stablehlo.sine %0 : {T} loc("sine"("x.py":3:4))
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %d = stablehlo.constant dense<1.0> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : ({T}, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] {{undotted, some.dotted = "q\\22"}} : (tensor<f32>) -> {T}
    %4 = func.call @f(%3) : ({T}) -> {T}
    %5 = stablehlo.custom_call @foo(%4) {{backend_config = "x", my.note = [1, @f]}} : ({T}) -> {T}
    %6:2 = stablehlo.while(%i = %5, %j = %4) : {T}, {T} cond {{
      %7 = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }} do {{
      %8 = stablehlo.add %i, %1 : {T}
      stablehlo.return %8, %j : {T}, {T}
    }}
    return %6#1, %4 : {T}, {T}
  }}
  func.func private @f(%a: {T}) -> {T} {{ return %a : {T} }}
  func.func private @declared({T}, {T}) -> {T}
}}"""
X = parse_sharding('<@m, [{"x", ?}]>')
SCALAR = parse_sharding("<@m, []>")


def parsed() -> tuple[Module, Op]:
    module = Module.parse(PROGRAM)
    return module, module.copy_root()


def nothing(root: Op) -> None:
    pass


def set_attributes(root: Op) -> None:
    for name in ("sine", "add", "broadcast_in_dim", "custom_call"):
        find(root, f"stablehlo.{name}").set_attr("sdy.sharding", (X,))
    for name in ("constant", "reduce"):
        find(root, f"stablehlo.{name}").set_attr("sdy.sharding", (SCALAR,))
    find(root, "stablehlo.sine").set_attr("sdy.sharding_rule", parse_rule("<([i])->([i]) {i=8}>"))
    find(root, "stablehlo.add", 2).set_attr("sdy.sharding", (parse_sharding('<@n, [{"y"}]>'),))


def set_attributes_of_the_module(root: Op) -> None:
    root.set_attr("some.note", ir.StringAttr.get("new"))
    root.set_attr("sym_name", "other name")


def remove_attributes(root: Op) -> None:
    find(root, "stablehlo.add").remove_attr("sdy.sharding")
    find(root, "stablehlo.broadcast_in_dim").remove_attr("undotted")
    root.remove_attr("some.note")
    set_arg_sharding(function(root, "main"), 0, None)


def set_attributes_of_functions(root: Op) -> None:
    set_arg_sharding(function(root, "main"), 1, X)
    set_result_sharding(function(root, "f"), 0, X)
    function(root, "f").set_attr("sym_visibility", "nested")
    odd = {
        "my.z": ir.UnitAttr.get(),
        'my."é"': ir.StringAttr.get("y\n\0é"),
        "my.a": ir.Attribute.parse("[1 : i8, {b = @f}]"),
    }
    for name, value in odd.items():
        set_arg_attr(function(root, "main"), 0, name, value)
    function(root, "f").set_attr("arg_attrs", tuple(Attributes(odd) for _ in function(root, "f").region.block.args))


def set_inherent_attributes(root: Op) -> None:
    find(root, "func.call").set_attr("callee", "main_2")
    function(root, "f").set_attr("sym_name", "main_2")
    find(root, "stablehlo.custom_call").set_attr("backend_config", ir.StringAttr.get("y\n\0é"))
    find(root, "sdy.mesh").set_attr("mesh", parse_mesh('<["x"=2, "new axis"=4]>'))


def add_a_mesh(root: Op) -> None:
    attrs = {"sym_name": "third", "mesh": Mesh((("z", 3),))}
    Op("sdy.mesh", attrs=attrs).insert_before(function(root, "main"))


def exchange_attributes(root: Op) -> None:
    """An op with the attributes of another one of its name, one with the same in another order."""
    first, second = (find(root, "stablehlo.constant", number) for number in range(2))
    first.replace_attrs(first.attrs | second.attrs)
    call = find(root, "stablehlo.custom_call")
    call.replace_attrs(dict(reversed(call.attrs.items())))


def erase(root: Op) -> None:
    find(root, "func.return").set_operand(0, find(root, "func.call").result)
    for name in ("while", "custom_call", "sine"):
        find(root, f"stablehlo.{name}").erase()


def set_operand(root: Op) -> None:
    find(root, "stablehlo.sine").set_operand(0, function(root, "main").region.block.args[1])


def change_name(root: Op) -> None:
    find(root, "stablehlo.sine").rename("stablehlo.cosine")
    find(root, "stablehlo.constant").rename("sdy.constant")


def insert(root: Op) -> None:
    for name in ("sine", "reduce", "while", "constant"):
        op = find(root, f"stablehlo.{name}")
        op.clone().insert_before(op)
    function(root, "f").clone().insert_after(function(root, "main")).set_attr("sym_name", "g")


def insert_ops_of_other_dialects(root: Op) -> None:
    sine = find(root, "stablehlo.sine")
    Op("chlo.tan", sine.operands, [sine.result.type], location=root.location).insert_after(sine)
    Op("chlo.tan", sine.operands, [sine.result.type]).insert_after(sine)
    Op("mhlo.erf", sine.operands, [sine.result.type], {"my.note": ir.UnitAttr.get()}).insert_after(sine)


def move(root: Op) -> None:
    find(root, "stablehlo.constant").detach().insert_before(find(root, "stablehlo.sine"))
    function(root, "f").detach().insert_before(function(root, "main"))


def move_bodies(root: Op) -> None:
    main, f = function(root, "main"), function(root, "f")
    copy = f.clone()
    f.region.blocks[0].terminator.erase()
    f.region.blocks.clear()
    f.region.take_body(copy.region)
    main.region.block.args[0].location = root.location


def relocate(root: Op) -> None:
    find(root, "stablehlo.sine").location = ir.Location.fused([root.location, ir.Location.name("n")])
    find(root, "func.call").location = find(root, "stablehlo.sine").location
    function(root, "f").region.block.args[0].location = None


def new_types(root: Op) -> None:
    sine = find(root, "stablehlo.sine")
    wide = ir.RankedTensorType.get([8], ir.F64Type.get())
    type = type_of(wide, sine)
    for _ in range(2):
        Op("stablehlo.convert", sine.operands, [type]).insert_after(sine)


def type_of(mlir: ir.Type, like: Op) -> object:
    found = like.result.type
    return type(found)(mlir, found.shape, "f64", True, True)


def use_values_in_another_order(root: Op) -> None:
    main = function(root, "main").region.block
    first, second = main.args
    for value, new in ((first, second), (find(root, "stablehlo.add").result, first)):
        value.replace_uses(new)


Change = Callable[[Op], None]
OF_ATTRIBUTES: list[Change] = [
    nothing, set_attributes, set_attributes_of_the_module, remove_attributes, set_attributes_of_functions,
    set_inherent_attributes, exchange_attributes,
]  # fmt: skip
CHANGES: list[Change] = [
    *OF_ATTRIBUTES, add_a_mesh, erase, set_operand, change_name, insert,
    insert_ops_of_other_dialects, move, move_bodies, relocate, new_types, use_values_in_another_order,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_as_op_by_op(change: Change) -> None:
    module, root = parsed()
    before = asm(module.mlir)
    with module.context, ir.Location.unknown():
        change(root)
        text = emitted(module, root)
        assert (text == before) is (change is nothing)
        assert asm(module.mlir) == before
        assert asm(write_module(root, module.attrs)) == text


def test_all_changes_at_once_and_again() -> None:
    module, root = parsed()
    with module.context, ir.Location.unknown():
        for change in (set_attributes, set_attributes_of_functions, insert, add_a_mesh, relocate, new_types):
            change(root)
        text = emitted(module, root)
        again = module.with_root(root)
        assert emitted(again, again.copy_root()) == text


def test_ops_that_had_a_sharding_gain_other_attributes() -> None:
    text = "stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : tensor<8xf32>"
    program = f'sdy.mesh @m = <["x"=2]>\nfunc.func @main(%a: tensor<8xf32>) {{\n{text}\n{text}\nreturn\n}}'
    module = Module.parse(program)
    root = module.copy_root()
    for number, end in enumerate(("", ", custom")):
        find(root, "stablehlo.sine", number).set_attr("sdy.sharding_rule", parse_rule(f"<([i])->([i]) {{i=8}}{end}>"))
    assert emitted(module, root).count("custom>") == 1


def test_what_is_unchanged_keeps_its_numbers() -> None:
    module, root = parsed()
    with module.context:
        code = emit_module(root, module.attrs)
        assert code.count(b"\0sdy.sharding\0") == 1  # among the strings that were read
        assert b"dense<" not in code and b"loc(" not in code
        find(root, "stablehlo.sine").set_attr("sdy.sharding", (X,))
        find(root, "stablehlo.custom_call").set_attr("sdy.sharding", (X,))
        find(root, "stablehlo.constant").set_attr("sdy.sharding", (SCALAR,))
        code = emit_module(root, module.attrs)
    assert code.count(b'#sdy.sharding_per_value<[<@m, [{"x", ?}]>]>\0') == 1  # one for both
    assert code.count(b"\0sdy.sharding\0") == 2  # and among those appended
    assert code.count(b"#sdy.sharding_per_value<[<@m, []>]>\0") == 1
    assert b"dense<" not in code  # what is inherent keeps its number


@pytest.mark.slow_cases("17000", "8200")
@pytest.mark.parametrize("count", [60, 70, 130, 8200, 17000])
def test_numbers_of_any_length(count: int) -> None:
    lines = "\n".join(f"%{n + 1} = stablehlo.add %{n}, %{max(0, n - 130)} : tensor<f32>" for n in range(count))
    types = ", ".join(["tensor<f32>"] * count)
    operands = ", ".join(f"%{n}" for n in range(count))
    module = Module.parse(
        f"func.func @main(%a: tensor<f32>) {{ %0 = stablehlo.sine %a : tensor<f32>\n{lines}\n"
        f"stablehlo.custom_call @foo({operands}) {{has_side_effect = true}} : ({types}) -> () return }}"
    )
    root = module.copy_root()
    assert emitted(module, root) == asm(module.mlir)


def test_unknown_dialects() -> None:
    module = Module.parse(
        """"t.f"() ({
          ^bb0(%a: i32):
            "t.br"(%a)[^bb1, ^bb2] {t.x = 1} : (i32) -> ()
          ^bb1:
            %0:2 = "t.op"() {a = #t.attr<x>, b = !t.type<1>} : () -> (i32, !t.other)
            "t.br"()[^bb2] : () -> ()
          ^bb2:
            "plain"() : () -> ()
          }, {
          }) : () -> ()""",
        allow_unregistered_dialects=True,
    )
    root = module.copy_root()
    with module.context, ir.Location.unknown():
        assert emitted(module, root) == asm(module.mlir)
        op = find(root, "t.op")
        op.set_attr("c", ir.UnitAttr.get())
        find(root, "t.br").set_attr("t.y", ir.Attribute.parse("2 : i8"))
        find(root, "plain").rename("undotted")
        Op("u.op", attrs={"odd name": ir.UnitAttr.get()}).insert_after(op)
        text = emitted(module, root)
    assert '"odd name"' in text and "t.y = 2 : i8" in text and '"undotted"' in text


def test_strings() -> None:
    """As an attribute of an op and of an argument: plain, with what has to be quoted, with a type."""
    strings = {"a": '"x"', "b": r'"\22\00\FF\C3\A9\0A"', "c": '"x" : i32', "d": '""', "e": '"x" : none'}
    module, root = parsed()
    with module.context:
        for name, text in strings.items():
            find(root, "stablehlo.sine").set_attr(f"my.{name}", ir.Attribute.parse(text))
            set_arg_attr(function(root, "main"), 0, f"my.{name}", ir.Attribute.parse(text))
        text = emitted(module, root)
    assert text.count('"x" : i32') == text.count(r'my.b = "\22\00\FF\C3\A9\0A"') == 2


def test_large_constants() -> None:
    values = ", ".join(map(str, range(20_000)))
    module = Module.parse(
        f"""sdy.mesh @m = <["x"=2]> func.func @main() {{
          %0 = stablehlo.constant {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}]>]>}}
            dense<[{values}]> : tensor<20000xi64>
          return
        }}"""
    )
    root = module.copy_root()
    emitted(module, root)
    find(root, "stablehlo.constant").set_attr("sdy.sharding", (X,))
    assert '[{"x", ?}]' in emitted(module, root)


def cannot_emit(module: Module, root: Op) -> None:
    """What cannot be written as bytecode is written op by op."""
    with module.context:
        with pytest.raises(CannotEmitError):
            emit_module(root, module.attrs)
        with pytest.warns(OpByOpWarning):
            written = write_module(root, module.attrs)
        check_same(written, write_op_by_op(root, module.attrs), module.attrs)


def test_nodes_that_were_not_read() -> None:
    module, root = parsed()
    cannot_emit(module, root.clone())


@pytest.mark.parametrize("is_new", [False, True])
def test_resources(is_new: bool) -> None:
    """A resource is of the module it was read with: MLIR would give a copy another name."""
    constant = "%0 = stablehlo.constant dense_resource<blob> : tensor<4xf32>"
    data = '{-# dialect_resources: { builtin: { blob: "0x040000000000803F000000400000404000008040" } } #-}'
    module = Module.parse(f"func.func @main() {{ {constant} return }} {data}")
    root = module.copy_root()
    if is_new:
        with module.context:
            attr = find(root, "stablehlo.constant").attrs["value"]
            module = Module(module.context, module.attrs, mlir=ir.Module.parse("func.func @main() { return }"))
        root = module.copy_root()
        find(root, "func.return").set_attr("my.note", attr)
    cannot_emit(module, root)


def test_values_used_before_their_definition() -> None:
    module = Module.parse(
        """func.func @main(%a: i32) -> i32 {
          cf.br ^bb2
        ^bb1:
          return %x : i32
        ^bb2:
          %x = arith.addi %a, %a : i32
          cf.br ^bb1
        }"""
    )
    cannot_emit(module, module.copy_root())


def test_values_that_cannot_be_seen() -> None:
    """Their numbers may by now be those of others."""
    module, root = parsed()
    with module.context:
        emit_module(root, module.attrs)
        inner = find(root, "stablehlo.constant", 2).result
        find(root, "stablehlo.add", 2).set_operand(0, inner)
        with pytest.raises(CannotEmitError):
            emit_module(root, module.attrs)


def test_blocks_of_other_regions() -> None:
    module = Module.parse("func.func @f() { cf.br ^a ^a: return } func.func @g() { cf.br ^a ^a: return }")
    root = module.copy_root()
    find(root, "cf.br", 1).successors = find(root, "cf.br").successors
    with module.context, pytest.raises(CannotEmitError):
        emit_module(root, module.attrs)


RANGES = ['"x.py":8:3 to :5', '"x.py":8:3 to 9:5', '"x.py":8:0 to 9:5', '"x.py":8:0']
LOST = '"x.py":8:0 to :5'
"""Bytecode keeps only the line of such a location."""


@pytest.mark.parametrize("location", [*RANGES, LOST])
def test_locations_that_bytecode_loses(location: str) -> None:
    text = f'func.func @main() {{ return loc(callsite("a"({location}) at "b")) }}'
    module = Module.parse(text)
    root = module.copy_root()
    if location == LOST:
        cannot_emit(module, root)
        with pytest.warns(OpByOpWarning, match="range that bytecode does not keep"):
            assert location in module.with_root(root).text(debug_info=True)
    else:
        assert emitted(module, root) == asm(module.mlir)
        assert location in module.with_root(root).text(debug_info=True)


@pytest.mark.parametrize("location", [*RANGES, LOST])
def test_a_location_by_number_and_by_text_is_one(location: str) -> None:
    """MLIR's bytecode makes of some locations others that print the same; these must not be mixed."""
    text = f'func.func @main() {{ %0 = stablehlo.constant dense<1> : tensor<i32> return loc("a"({location})) }}'
    module = Module.parse(Module.parse(text).bytecode())
    root = module.copy_root()
    constant, end = find(root, "stablehlo.constant"), find(root, "func.return")
    constant.location = end.location
    assert emitted(module, root).count("x.py") == 1


def test_two_locations_that_print_the_same() -> None:
    """The text of a new location does not tell which one is meant."""
    text = """func.func @main(%a: i32) {
      %0 = arith.addi %a, %a : i32 loc("x.py":8:0 to :5)
      return loc("x.py":8:0)
    }"""
    module = Module.parse(Module.parse(text).bytecode())
    root = module.copy_root()
    assert asm(module.mlir).count("x.py") == 2
    assert emitted(module, root) == asm(module.mlir)
    add = find(root, "arith.addi")
    add.location = add.location
    cannot_emit(module, root)


def test_a_new_location_that_bytecode_loses() -> None:
    module, root = parsed()
    with module.context:
        find(root, "stablehlo.sine").location = ir.Location.file("x.py", 8, 0, 8, 5)
        cannot_emit(module, root)
        with pytest.warns(OpByOpWarning, match="range that bytecode does not keep"):
            assert "8:0 to :5" in asm(write_module(root, module.attrs))


def test_an_invalid_module_is_for_who_verifies_it(capfd: pytest.CaptureFixture[str]) -> None:
    module, root = parsed()
    call = find(root, "func.call")
    call.set_attr("callee", "nowhere")
    with module.context:
        with pytest.raises(ir.MLIRError):
            ir.Module.parse(emit_module(root, module.attrs))
        with pytest.warns(OpByOpWarning, match="Unable to parse module"):
            written = write_module(root, module.attrs)
        assert asm(written) == asm(write_op_by_op(root, module.attrs))
    assert capfd.readouterr() == ("", "")


def test_what_can_be_emitted_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "write_op_by_op", lambda *_: pytest.fail("written op by op"))
    module, root = parsed()
    set_attributes(root)
    assert '[{"x", ?}]' in module.with_root(root).text()


def test_a_difference_is_noticed() -> None:
    module, root = parsed()
    with module.context:
        given = ir.Module.parse(emit_module(root, module.attrs))
        find(root, "stablehlo.sine").location = root.location
        with pytest.raises(AssertionError):
            check_same(given, write_op_by_op(root, module.attrs), module.attrs)


def test_another_order_of_uses_is_noticed() -> None:
    module = Module.parse("func.func @main(%a: i32) { %0 = arith.addi %a, %a : i32 return }")
    with module.context:
        other = ir.Module.parse(module.bytecode())
        argument = other.body.operations[0].regions[0].blocks[0].arguments[0]
        check_same(other, module.mlir, module.attrs)
        add = other.body.operations[0].regions[0].blocks[0].operations[0]
        add.operands[1] = argument  # to the front of the uses it comes
        add.operands[0] = argument
        assert asm(other) == asm(module.mlir)
        with pytest.raises(AssertionError):
            check_same(other, module.mlir, module.attrs)
