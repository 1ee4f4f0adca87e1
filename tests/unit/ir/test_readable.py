"""A module that MLIR prints as text that it cannot read is refused as text, and written as bytecode."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from pyshardy.cli import opt
from pyshardy.cli.main import main
from pyshardy.errors import InvalidModuleError
from pyshardy.ir import readable
from pyshardy.ir.module import Module

BODY = "(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
MAIN = f"func.func @main{BODY}"


def tagged(make: Callable[[], ir.Attribute]) -> Module:
    """A module with an attribute that text cannot hold."""
    module = Module.parse(MAIN)
    with module.context:
        module.mlir.operation.attributes["x.tag"] = make()
    return module


def without_bits() -> Module:
    """A module with a number of no bits that is not 0: a byte of its bytecode, the width of a type, is changed."""
    content = Module.parse(f"module attributes {{x.tag = true}} {{ {MAIN} }}").bytecode()
    for place in range(len(content)):
        if content[place] == 9:  # i1
            try:
                module = Module.parse(content[:place] + b"\x01" + content[place + 1 :])
            except InvalidModuleError:
                continue
            if " : i0" in str(module.mlir):
                return module
    raise AssertionError("no byte is the width of the type")


def with_empty_tuple() -> Module:
    """A portable artifact with a tuple without elements."""
    module = Module.parse("func.func @main() { %0 = stablehlo.custom_call @f() : () -> tuple<> return }")
    with module.context:
        return Module.parse(stablehlo.serialize_portable_artifact(module.mlir, stablehlo.get_current_version()))


def along_no_mesh() -> ir.Attribute:
    """Groups of devices along an axis of what is no mesh."""
    axis = ir.Attribute.parse('#stablehlo.axis_ref<name = "y">')
    return stablehlo.ReplicaGroupMeshAxesAttr.get(axis, ir.ArrayAttr.get([axis]))


UNREADABLE: dict[str, tuple[Callable[[], Module], str]] = {
    "a function without a name": (lambda: Module.parse(f'func.func @""{BODY}'), "@<<INVALID EMPTY SYMBOL>>("),
    "a call of nothing": (
        lambda: Module.parse(
            'func.func @main() -> tensor<f32> { %0 = stablehlo.custom_call @""() : () -> tensor<f32> return %0 : tensor<f32> }'
        ),
        "custom_call @<<INVALID EMPTY SYMBOL>>(",
    ),
    "a part of a symbol without a name": (lambda: tagged(lambda: ir.SymbolRefAttr.get(["a", ""])), "@a::@<<"),
    "a number of no bits": (without_bits, "x.tag =  : i0"),
    "a tuple of nothing as VHLO writes it": (with_empty_tuple, '"vhlo.custom_call_v'),
    "an attribute without a name": (lambda: tagged(lambda: ir.DictAttr.get({"": ir.UnitAttr.get()})), '{""}'),
    "groups of devices of no mesh": (lambda: tagged(along_no_mesh), "<mesh = #stablehlo.axis_ref<"),
    "an entry without a name": (lambda: tagged(lambda: ir.DictAttr.get({"": ir.StringAttr.get("")})), '{"" = ""}'),
}
AS_STRINGS = ("a function without a name", "a call of nothing")
"""What the generic form of ops has as strings."""
READABLE = (
    'module attributes {x.tag = 0 : i0, x.text = ""} {}',
    'module attributes {x.tag = "<<INVALID EMPTY SYMBOL>> {\\22\\22} : i0"} {}',
    'sdy.mesh @m = <[""=2]>\nfunc.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{""}]>}) { return }',
    "func.func @main(%a: tensor<8x!quant.uniform<i8:f32, 1.0>>) { return }",
    "module attributes {x.tag = #foo<a <b> c>, x.other = !foo<x>} {}",
)


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("generic", [False, True])
def test_what_text_cannot_hold(name: str, generic: bool) -> None:
    make, part = UNREADABLE[name]
    module = make()
    if generic and name in AS_STRINGS:
        assert Module.parse(module.text(generic=True)).text(generic=True) == module.text(generic=True)
        return
    with pytest.raises(
        InvalidModuleError, match="^writing a module as text: got what MLIR prints but cannot read"
    ) as e:
        module.text(generic=generic)
    assert e.value.where is not None and part in e.value.where
    assert "bytecode" in str(e.value)
    assert Module.parse(module.bytecode()).bytecode()


@pytest.mark.parametrize("text", READABLE)
def test_what_only_looks_like_it(text: str) -> None:
    module = Module.parse(text, allow_unregistered_dialects=True)
    assert Module.parse(module.text(), allow_unregistered_dialects=True).text() == module.text()


def test_text_is_read_only_if_something_stands_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "make_context", lambda _: pytest.fail("it is read"))
    for allow in (False, True):
        module = Module.parse(
            f'module attributes {{x.tag = "", x.z = 0 : i8}} {{ {MAIN} }}', allow_unregistered_dialects=allow
        )
        assert module.text()


def test_a_long_line_is_cut() -> None:
    module = Module.parse(f'func.func @""(%a: tensor<{"1x" * 200}f32>) {{ return }}')
    with pytest.raises(InvalidModuleError) as error:
        module.text()
    assert error.value.where is not None and len(error.value.where) == 103


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(f'func.func @""{BODY}')
    Path("out.mlir").write_text("old")
    for run in (main, opt.main):
        name = ["propagate"] if run is main else []
        assert run([*name, "in.mlir", "-o", "out.mlir"]) == 1
        assert "error: writing a module as text: got what MLIR prints but cannot read" in capsys.readouterr().err
        assert Path("out.mlir").read_text() == "old"
    assert main(["propagate", "in.mlir", "-o", "out.mlirbc"]) == 0
    assert opt.main(["in.mlir", "-emit-bytecode", "-o", "out.bc"]) == 0
    assert opt.main(["in.mlir", "-mlir-pretty-debuginfo"]) == 0  # which is for people
    assert "@<<INVALID EMPTY SYMBOL>>" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mlir", "out.bc", "out.mlir", "out.mlirbc"]


@pytest.mark.parametrize(
    ("name", "type", "got"),
    [
        ("#vhlo.bool_v1<true>", "!vhlo.bool_v1", "got sym_name = #vhlo.bool_v1<true>, needed #vhlo.string_v1<...>"),
        ('"f"', "!vhlo.bool_v1", 'got sym_name = "f", needed'),
        ('#vhlo.string_v1<"f">', "!vhlo.bool_v1", "got function_type = #vhlo.type_v1<!vhlo.bool_v1>, needed"),
    ],
)
@pytest.mark.parametrize("wrap", ["{}", "module {{ {} }}"])
def test_functions_of_vhlo_that_mlir_prints_from_memory(name: str, type: str, got: str, wrap: str) -> None:
    function = (
        f'"vhlo.func_v1"() <{{arg_attrs = #vhlo.array_v1<[]>, function_type = #vhlo.type_v1<{type}>, '
        f'res_attrs = #vhlo.array_v1<[]>, sym_name = {name}, sym_visibility = #vhlo.string_v1<"">}}> '
        '({ "vhlo.return_v1"() : () -> () }) : () -> ()'
    )
    with pytest.raises(InvalidModuleError, match=re.escape(got)):
        Module.parse(wrap.format(function))


def test_portable_artifacts_stay_printable() -> None:
    module = Module.parse("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }")
    with module.context:
        artifact = stablehlo.serialize_portable_artifact(module.mlir, stablehlo.get_current_version())
    assert "vhlo.func_v1 @main" in Module.parse(artifact).text()


def test_ops_without_a_readable_name_beside_vhlo() -> None:
    module = Module.parse(
        'module attributes {x.t = "vhlo"} { "foo.baar"() : () -> () }', allow_unregistered_dialects=True
    )
    source = module.bytecode().replace(b"baar", b"b\xff\xfer")
    with pytest.raises(InvalidModuleError, match="needed names in UTF-8"):
        _ = Module.parse(source, allow_unregistered_dialects=True).root
