"""Modules from files, standard input and strings."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyshardy
from pyshardy.errors import InvalidModuleError, ShardyError, UsageError
from pyshardy.frontend.from_text import load_bytes, read_bytes, read_file, text_or_bytecode
from pyshardy.ir.module import Module

TEXT = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


@pytest.fixture
def expected() -> str:
    return Module.parse(TEXT).text()


def test_a_file_of_text(tmp_path: Path, expected: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert read_file(path).text() == read_file(str(path)).text() == expected


def test_a_file_of_bytecode_whatever_its_name(tmp_path: Path, expected: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_bytes(Module.parse(TEXT).bytecode())
    assert read_file(path).text() == expected


@pytest.mark.parametrize("content", [TEXT.encode(), Module.parse(TEXT).bytecode()], ids=["text", "bytecode"])
def test_standard_input(content: bytes, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert read_file("-").text() == expected


def test_bytes(expected: str) -> None:
    assert load_bytes(TEXT.encode()).text() == load_bytes(Module.parse(TEXT).bytecode()).text() == expected


@pytest.mark.parametrize(
    "text", ['"foo.b\\FFr"() : () -> ()', '"\\FF.bar"() : () -> ()', 'module { "foo.b\\FFr"() : () -> () }']
)
def test_names_that_are_not_utf8_are_refused_before_inner_modules_are_left_out(text: str) -> None:
    with pytest.raises(InvalidModuleError, match="needed names in UTF-8"):
        load_bytes(text.encode(), "test", allow_unregistered_dialects=True)


def test_inner_modules_are_left_out_as_in_xla(expected: str) -> None:
    inner = """
module @inner {
  func.func @g() { call @h() : () -> () return }
  func.func private @h() { return }
}
"""
    assert load_bytes((TEXT + inner).encode(), "test").text() == expected


def test_text_in_other_alphabets(tmp_path: Path) -> None:
    path = tmp_path / "Modell-ä.mlir"
    path.write_text("// Größe\n" + TEXT, encoding="utf-8")
    assert "@main" in read_file(path).text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.mlir", r"reading .*missing\.mlir: got no such file, needed a file with a StableHLO module"),
        ("", r"reading .*: got a directory, needed a file with a StableHLO module"),
    ],
)
def test_files_that_cannot_be_read(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read_file(tmp_path / name)


def test_a_name_that_is_empty() -> None:
    with pytest.raises(UsageError, match="reading a file: got an empty name"):
        read_bytes("")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UsageError, match=r"reading model\.mlir: got permission denied, needed a readable file"):
        read_bytes("model.mlir")


@pytest.mark.parametrize(
    ("content", "message", "where"),
    [
        (b"hello", "custom op 'hello' is unknown", "model.mlir:1:1"),
        (b"ok = 1\n", "", "model.mlir:1:"),
        (b"func.func @main() {\n  return\n", "", "model.mlir:"),
        (b"func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> { return %a : tensor<4xf32> }", "type of return operand 0",
         "model.mlir:1:"),
        (b"\xff\xfe\x00", "bytes that are neither UTF-8 text nor MLIR bytecode", "model.mlir, byte 0"),
        (b"module {}\xff", "bytes that are neither UTF-8 text nor MLIR bytecode", "model.mlir, byte 9"),
        (b"ML\xefRabc", "", "model.mlir"),
    ],
)  # fmt: skip
def test_content_that_is_no_module(content: bytes, message: str, where: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        load_bytes(content, "model.mlir")
    assert caught.value.doing == "reading a module"
    assert message in str(caught.value)
    assert (caught.value.where or "").startswith(where)


@pytest.mark.parametrize("error", ["x[{", '[{"z"}]', '[{"x"}, {}]', '[{"x", "x"}]', "<@other, [{}]>"])
def test_shardings_that_are_wrong(error: str) -> None:
    sharding = error if error.startswith("<") else f"<@mesh, {error}>"
    text = TEXT.replace("tensor<8xf32>)", f"tensor<8xf32> {{sdy.sharding = #sdy.sharding{sharding}}})")
    with pytest.raises(ShardyError, match="reading a module: got "):
        load_bytes(text.encode())


def test_text_stays_text_and_bytecode_stays_bytecode() -> None:
    bytecode = Module.parse(TEXT).bytecode()
    assert text_or_bytecode(b"module {}", "-") == "module {}"
    assert text_or_bytecode(bytecode, "-") is bytecode


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_file_is_said_to_be_empty(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty.mlir"
    path.write_bytes(content)
    with pytest.raises(InvalidModuleError) as raised:
        pyshardy.load(path)
    assert str(raised.value) == (
        "reading a module: got nothing: it is empty, "
        f"needed StableHLO as text or bytecode, HLO, or what jax.export writes\n  at {path}"
    )
