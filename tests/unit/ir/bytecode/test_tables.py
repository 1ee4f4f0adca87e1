from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.bytecode.sections import IR, STRINGS, Bytecode, parse_bytecode
from pyshardy.ir.bytecode.tables import BytecodeTables
from pyshardy.ir.module import Module
from pyshardy.ir.read import bytecode_of

TEXT = """module attributes {my.note = 7 : i32} {
  func.func @main(%a: tensor<i1>) { %0 = stablehlo.not %a : tensor<i1> "foo"() : () -> () return }
}"""


def parsed() -> tuple[Module, Bytecode]:
    module = Module.parse(TEXT, allow_unregistered_dialects=True)
    return module, bytecode_of(module.mlir)


def written(module: Module, data: bytes) -> str:
    with module.context:
        return str(ir.Module.parse(data))


def test_nothing_new() -> None:
    module, code = parsed()
    data = BytecodeTables(code).module(code.content(IR))
    assert data == code.data
    assert written(module, data) == str(module.mlir)


def test_what_is_there_has_its_number() -> None:
    _, code = parsed()
    tables = BytecodeTables(code)
    assert [tables.name(name) for name in code.names] == list(range(len(code.names)))
    assert tables.module(code.content(IR)) == code.data


@pytest.mark.parametrize("name", ["stablehlo.abs", "func.call", "sdy.mesh", "foo.bar.baz", "bar", "builtin.é"])
def test_names_are_appended(name: str) -> None:
    module, code = parsed()
    tables = BytecodeTables(code)
    assert tables.name(name) == tables.name(name) == len(code.names)
    assert tables.name("stablehlo.sine") == len(code.names) + 1
    again = parse_bytecode(tables.module(code.content(IR)))
    assert again.names == [*code.names, name, "stablehlo.sine"]
    assert again.dialects[: len(code.dialects)] == code.dialects
    assert len(again.dialects) == len(set(again.dialects))
    assert written(module, again.data) == str(module.mlir)


def test_attributes_and_types_are_appended() -> None:
    module, code = parsed()
    tables = BytecodeTables(code)
    attr = tables.attr('{new.note = "\\22é"}')
    assert tables.attr("7 : i8") == attr + 1
    assert tables.attr('{new.note = "\\22é"}') == attr
    type = tables.type("tensor<4xi1>")
    assert tables.type("!foo.bar<x>") == type + 1
    data = tables.module(code.content(IR))
    assert written(module, data) == str(module.mlir)
    again = BytecodeTables(parse_bytecode(data))
    assert (again.attr_count, again.type_count) == (attr + 2, type + 2)
    assert again.attr("8 : i8") == attr + 2  # they may be appended to again
    assert written(module, again.module(code.content(IR))) == str(module.mlir)


def test_appended_attributes_are_found_by_their_numbers() -> None:
    """The location of the module op, whose number stands behind its name and mask."""
    module, code = parsed()
    tables = BytecodeTables(code)
    number = tables.location('loc("new")')
    ops = code.content(IR)
    assert number < 128 and ops[3] & 1
    data = tables.module(ops[:3] + bytes([number << 1 | 1]) + ops[4:])
    with module.context:
        assert str(ir.Module.parse(data).operation.location) == 'loc("new")'


def test_arrays_and_dictionaries_are_appended_by_numbers() -> None:
    """The number of the attributes of the module op stands behind that of its location."""
    module, code = parsed()
    tables = BytecodeTables(code)
    names = [tables.string(name) for name in ("z.z", "a.b")]
    one, two = tables.attr("7 : i8"), tables.attr("@f")
    array = tables.array([two, one, two])
    assert tables.array([two, one, two]) == array == tables.array([two, one]) - 1
    number = tables.dictionary([(names[0], array), (names[1], one)])
    ops = code.content(IR)
    assert number < 128 and ops[4] & 1
    data = tables.module(ops[:4] + bytes([number << 1 | 1]) + ops[5:])
    with module.context:
        assert str(ir.Module.parse(data).operation.attributes["z.z"]) == "[@f, 7 : i8, @f]"
        assert [name for name, _ in ir.Module.parse(data).operation.attributes.items()] == ["a.b", "z.z"]


@pytest.mark.parametrize("text", ["", "plain", 'a "quoted" one', "two\nlines", "\0", "é", "\udcff", "i32"])
def test_strings_are_appended_as_they_are(text: str) -> None:
    module, code = parsed()
    tables = BytecodeTables(code)
    string = tables.string(text)
    assert tables.string(f"{text}.") == string + 1
    assert tables.string(text) == string
    number = tables.dictionary([(tables.string("z.z"), string)])
    ops = code.content(IR)
    data = tables.module(ops[:4] + bytes([number << 1 | 1]) + ops[5:])
    with module.context:
        found = ir.Module.parse(data).operation.attributes["z.z"]
        assert found.value_bytes.decode("utf-8", "surrogateescape") == text
        assert isinstance(found.type, ir.NoneType)


def test_strings_of_the_source_stay() -> None:
    _, code = parsed()
    tables = BytecodeTables(code)
    tables.name("x.y")
    again = parse_bytecode(tables.module(code.content(IR)))
    assert code.content(STRINGS).endswith(b"\0")
    assert again.content(STRINGS).endswith(b"\0y\0x\0") or again.content(STRINGS).endswith(b"\0x\0y\0")


def place(line: int) -> ir.Location:
    return ir.Module.parse(f'module {{}} loc("x.py":{line}:0)').operation.location


@pytest.mark.parametrize("line", [8, 300])
def test_a_line_alone_becomes_what_its_text_is(line: int) -> None:
    module = Module.parse("module {}")
    with module.context:
        code = bytecode_of(ir.Module.create(ir.Location.file("x.py", line, 0, line, 0)))
        tables = BytecodeTables(code)
        tables.location("loc(unknown)")
        assert tables.module(code.content(IR)) != code.data
        assert ir.Module.parse(tables.module(code.content(IR))).operation.location != place(line)
        tables.location('loc("new")')
        expected = place(line)
        assert ir.Module.parse(code.data).operation.location != expected
        assert ir.Module.parse(tables.module(code.content(IR))).operation.location == expected
