from __future__ import annotations

from io import BytesIO

import pytest

from pyshardy.ir.bytecode.sections import (
    ATTRS_AND_TYPES,
    DIALECTS,
    IR,
    OFFSETS,
    STRINGS,
    VERSION,
    Bytecode,
    BytecodeError,
    parse_bytecode,
    section_at,
)
from pyshardy.ir.module import Module
from pyshardy.ir.read import bytecode_of

PROGRAM = 'func.func @main(%a: tensor<i1>) { %0 = stablehlo.not %a : tensor<i1> "foo"() : () -> () "x.y.z"() : () -> () return }'


def parsed() -> Bytecode:
    return bytecode_of(Module.parse(PROGRAM, allow_unregistered_dialects=True).mlir)


def test_sections_may_be_aligned() -> None:
    assert section_at(b"\x04\x07abc", 0) == (4, 2, 5)
    assert section_at(b"\x84\x07\x09\xcbabc", 0) == (4, 4, 7)  # three bytes from the next multiple of 4 on


def test_sections_are_found() -> None:
    code = parsed()
    assert {STRINGS, DIALECTS, ATTRS_AND_TYPES, OFFSETS, IR} <= code.sections.keys()
    assert all(code.data[start:end] == code.content(kind) for kind, (start, end) in code.sections.items())
    assert max(end for _, end in code.sections.values()) == len(code.data)


def test_names() -> None:
    code = parsed()
    assert dict(zip(code.names, code.is_registered)) == {
        "builtin.module": True,
        "func.func": True,
        "func.return": True,
        "stablehlo.not": True,
        "foo": False,
        "x.y.z": False,
    }
    assert {"builtin", "func", "stablehlo", "foo", "x"} <= set(code.dialects)
    assert not code.has_odd_strings


def test_strings_that_are_no_utf8() -> None:
    module = Module.parse('"x.\\FF"() : () -> ()'.replace("\\FF", "a"), allow_unregistered_dialects=True)
    code = parse_bytecode(bytecode_of(module.mlir).data.replace(b"\0a\0", b"\0\xff\0"))
    assert code.has_odd_strings
    assert "x.\udcff" in code.names


def test_other_versions_are_refused() -> None:
    stream = BytesIO()
    Module.parse("func.func @main() { return }").mlir.operation.write_bytecode(stream, VERSION - 1)
    with pytest.raises(BytecodeError, match="no MLIR bytecode of version 6: it starts with"):
        parse_bytecode(stream.getvalue())


@pytest.mark.parametrize("data", [b"", b"ML", b"module {}", b"ML\xefR\x0d"])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(BytecodeError):
        parse_bytecode(data)


def test_data_that_is_cut_off_is_refused() -> None:
    code = parsed()
    data, optional = code.data, [code.sections[kind] for kind in code.sections if kind > IR]
    for end in range(min(start for start, _ in optional) - 2):
        with pytest.raises(BytecodeError, match="cut off|no MLIR bytecode"):
            parse_bytecode(data[:end])
