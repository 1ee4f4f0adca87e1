from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import Severity
from pyshardy.ir.functions import set_arg_sharding
from pyshardy.ir.module import Module, invalid_module
from pyshardy.ir.write import OpByOpWarning

from .reading import find

TEXT = """module @name attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
    %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
MISMATCH = """func.func @main(%a: tensor<8xf32>) {
  %0 = "stablehlo.sine"(%a) : (tensor<8xf32>) -> tensor<4xf32>
  return
}"""
MISMATCHED = "'stablehlo.sine' op requires compatible types for all operands and results"


def test_text() -> None:
    assert Module.parse(TEXT).text() == TEXT


def test_bytecode() -> None:
    module = Module.parse(TEXT)
    content = module.bytecode()
    assert content.startswith(b"ML\xefR")
    again = Module.parse(content)
    assert again.text(debug_info=True) == module.text(debug_info=True)
    assert Module.parse(again.text().encode()).text() == TEXT


def test_generic_text_and_locations() -> None:
    module = Module.parse(TEXT)
    generic = module.text(generic=True)
    assert '"stablehlo.sine"' not in module.text()
    assert '"stablehlo.sine"(%arg0) ' in generic
    assert Module.parse(generic).text() == TEXT
    assert "loc(" not in generic
    located = module.text(debug_info=True)
    assert '"-":4:10' in located
    assert Module.parse(located).text(debug_info=True) == located


@pytest.mark.parametrize("text", ["", "\n\n", "module {}", "// a comment"])
def test_empty_modules(text: str) -> None:
    module = Module.parse(text)
    assert module.text() == "module {\n}\n"
    assert list(module.root.region.block) == []
    module.verify()


def test_written_again_from_its_nodes() -> None:
    module = Module.parse(TEXT)
    written = module.with_root(module.copy_root())
    assert written.text(debug_info=True) == module.text(debug_info=True)
    assert Module.parse(written.bytecode()).text() == TEXT
    written.verify()


def test_copies_of_the_nodes_are_independent() -> None:
    module = Module.parse(TEXT)
    first, second = module.copy_root(), module.copy_root()
    set_arg_sharding(find(first, "func.func"), 0, None)
    find(first, "stablehlo.sine").replace_attrs({})
    assert find(second, "func.func").attrs["arg_attrs"][0] != {}
    assert find(second, "stablehlo.sine").attrs != {}
    assert module.text() == TEXT
    assert "sdy.sharding" not in module.with_root(first).text()


def test_nodes_to_look_at_are_made_once() -> None:
    module = Module.parse(TEXT)
    assert module.root is module.root
    root = module.copy_root()
    assert module.with_root(root).root is root


def test_a_module_from_nodes_is_written_once() -> None:
    module = Module.parse(TEXT)
    written = module.with_root(module.copy_root())
    assert written.mlir is written.mlir
    assert written.mlir is not module.mlir


def test_another_module_has_the_same_context_and_origin() -> None:
    module = Module.parse(TEXT)
    assert module.origin is None
    module.origin = "somewhere"
    other = module.with_root(module.copy_root())
    assert (other.context, other.attrs, other.origin) == (module.context, module.attrs, "somewhere")


def test_every_module_has_a_context_of_its_own() -> None:
    assert Module.parse(TEXT).context is not Module.parse(TEXT).context


@pytest.mark.parametrize("with_both", [True, False])
def test_a_module_is_made_from_mlir_or_from_nodes(with_both: bool) -> None:
    module = Module.parse(TEXT)
    parts = {"mlir": module.mlir, "root": module.root} if with_both else {}
    with pytest.raises(AssertionError):
        Module(module.context, module.attrs, **parts)


@pytest.mark.parametrize(
    ("source", "where", "got"),
    [
        (
            "func.func @main() {\n  %0 = stablehlo.sine %x : tensor<8xf32>\n}",
            "2:23",
            "use of undeclared SSA value name",
        ),
        (MISMATCH, "2:8", MISMATCHED),
        (
            "func.func @f() { return }\nfunc.func @f() { return }",
            "2:1",
            "redefinition of symbol named 'f' (see existing symbol definition here)",
        ),
        ("func.func @main(", "1:16", "expected non-function type"),
        ("sdy.mesh @m = <", "1:14", None),
        (b"\xff\xfe", "1:1", "unexpected character"),
        (b"ML\xefR", "0:0", None),
    ],
)
def test_what_is_no_module_is_refused_with_its_place(source: str | bytes, where: str, got: str | None) -> None:
    for name in ("-", "some file.mlir"):
        with pytest.raises(InvalidModuleError) as caught:
            Module.parse(source, name=name)
        error = caught.value
        assert error.doing == "reading a module"
        assert error.where == f"{name}:{where}"
        assert error.got == got or got is None
        needed = ", needed StableHLO, such as jax.jit(f).lower(...).as_text() gives" if where == "1:1" else ""
        assert str(error) == f"reading a module: got {error.got}{needed}\n  at {name}:{where}"
        assert error.diagnostics[0].severity is Severity.ERROR
        assert isinstance(error.__cause__, ir.MLIRError)


def test_a_place_in_another_file_is_named_as_it_is() -> None:
    text = MISMATCH.replace("tensor<4xf32>\n", 'tensor<4xf32> loc("x"("model.py":7:9))\n')
    with pytest.raises(InvalidModuleError) as caught:
        Module.parse(text, name="some.mlir")
    assert caught.value.where == "model.py:7:9"


def test_all_diagnostics_are_attached() -> None:
    with pytest.raises(InvalidModuleError) as caught:
        Module.parse("func.func @f() { return }\nfunc.func @f() { return }")
    (diagnostic,) = caught.value.diagnostics
    assert str(diagnostic) == "-:2:1: error: redefinition of symbol named 'f'"
    assert [str(note) for note in diagnostic.notes] == ["-:1:1: note: see existing symbol definition here"]


def test_ops_of_unknown_dialects_are_refused_unless_allowed() -> None:
    text = '"t.op"() : () -> ()'
    with pytest.raises(InvalidModuleError, match="unregistered dialect"):
        Module.parse(text)
    module = Module.parse(text, allow_unregistered_dialects=True)
    assert module.text() == f"module {{\n  {text}\n}}\n"
    assert module.with_root(module.copy_root()).text() == module.text()


def test_verifying_accepts_valid_modules() -> None:
    module = Module.parse(TEXT)
    root = module.copy_root()
    find(root, "stablehlo.sine").replace_attrs({})
    module.with_root(root).verify()


def test_verifying_refuses_what_passes_broke() -> None:
    module = Module.parse(TEXT)
    root = module.copy_root()
    find(root, "sdy.mesh").erase()
    with pytest.raises(InvalidModuleError) as caught, pytest.warns(OpByOpWarning):
        module.with_root(root).verify()
    assert caught.value.doing == "verifying a module"
    assert caught.value.where == "-:3:3"
    assert "unknown mesh: @m" in (caught.value.got or "")


def test_an_error_of_mlir_without_diagnostics() -> None:
    error = invalid_module("doing something", [], ValueError("it failed"), "some.mlir")
    assert str(error) == "doing something: got it failed, needed StableHLO as text or bytecode\n  at some.mlir"
    assert error.diagnostics == ()
    error = invalid_module("doing something", [], MemoryError("std::bad_alloc"), "some.mlir")
    assert error.got == "more than memory can hold"


HOSTILE = {
    "a version that nobody has": lambda data: data[:4] + b"\xff" * 8 + data[5:],
    "only the beginning": lambda data: data[:40],
    "nothing behind the magic": lambda data: data[:4],
    "lengths that are too large": lambda data: data[:20] + b"\0" + b"\xff" * 8 + data[29:],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bytecode_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        Module.parse(HOSTILE[name](Module.parse(TEXT).bytecode()))
    assert str(caught.value).startswith("reading a module: got ")


@pytest.mark.parametrize("error", [ValueError("it failed"), MemoryError(), RuntimeError("nanobind")])
def test_whatever_the_parser_throws_is_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(ir.Module, "parse", fail)
    with pytest.raises(InvalidModuleError, match="^reading a module: got "):
        Module.parse(TEXT)


def test_a_module_of_a_context_at_hand() -> None:
    with make_context() as context:
        parsed = ir.Module.parse(TEXT)
    module = Module(context, AttrTable(), mlir=parsed)
    assert module.mlir is parsed
    assert module.text() == TEXT
