"""Modules that are read in a process of their own, which they may end."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import jax
import jax.export
import numpy as np
import pytest

import pyshardy
from pyshardy.errors import InvalidModuleError, ShardyError, UnsupportedVersionError, UsageError
from pyshardy.frontend import isolated
from pyshardy.frontend.from_text import load_bytes
from pyshardy.frontend.isolated import error_data, read_isolated
from pyshardy.ir.hlo import to_hlo
from pyshardy.ir.module import Module
from pyshardy.ir.write import OpByOpWarning

from .hlo_texts import GSPMD

pytestmark = pytest.mark.slow

TEXT = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32> loc("f.py":3:4)
  return %0 : tensor<8xf32>
}
"""
RANGE = TEXT.replace('"f.py":3:4', '"f.py":8:0 to :5')
STRANGE = 'func.func @"\\FF\\FE"() { "a.b"() {c = "\\C3\\28"} : () -> () return }'


def exported() -> bytes:
    return bytes(jax.export.export(jax.jit(jax.numpy.tanh))(np.ones(4, np.float32)).mlir_module_serialized)


CONTENTS: dict[str, Callable[[], bytes]] = {
    "text": TEXT.encode,
    "bytecode": lambda: Module.parse(TEXT).bytecode(),
    "locations that bytecode does not keep": RANGE.encode,
    "strings that are no UTF-8": STRANGE.encode,
    "portable artifact": exported,
    "HLO text": GSPMD.encode,
    "HLO proto": lambda: to_hlo("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_the_module_is_the_same(name: str) -> None:
    content = CONTENTS[name]()
    expected = load_bytes(content, allow_unregistered_dialects=True)
    found = load_bytes(content, allow_unregistered_dialects=True, isolate=True)
    for generic in (False, True):
        assert found.text(debug_info=True, generic=generic) == expected.text(debug_info=True, generic=generic)
    assert found.bytecode() == load_bytes(expected.bytecode(), allow_unregistered_dialects=True).bytecode()
    written = found.with_root(found.copy_root())
    with pytest.warns(OpByOpWarning) if name == "locations that bytecode does not keep" else nullcontext():
        assert written.text(debug_info=True) == expected.text(debug_info=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"ML\xefR", b"func.func @main() {\n  foo }", b"HloModule x, nonsense", b"\n\x00",
     b'func.func @main() { "a.b"() : () -> () return }',
     b"func.func @main() -> tensor<4xf32> {\n return }", Module.parse(TEXT).bytecode()[:-40]],
)  # fmt: skip
def test_errors_are_the_same(content: bytes) -> None:
    try:
        expected: Module | ShardyError = load_bytes(content, "in.mlir")
    except ShardyError as error:
        expected = error
    if isinstance(expected, Module):
        assert load_bytes(content, "in.mlir", isolate=True).text() == expected.text()
        return
    with pytest.raises(ShardyError) as caught:
        load_bytes(content, "in.mlir", isolate=True)
    assert (type(caught.value), str(caught.value)) == (type(expected), str(expected))
    ours, its = (getattr(error, "diagnostics", ()) for error in (caught.value, expected))
    assert [str(each) for each in ours] == [str(each) for each in its]
    assert [[str(note) for note in each.notes] for each in ours] == [[str(note) for note in each.notes] for each in its]


@pytest.mark.parametrize(
    ("child", "got"),
    [
        ("import os; os.abort()", "bytes on which the reader process ends with SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "bytes on which the reader process ends with SIGKILL"),
        ("import os; os.kill(os.getpid(), 40)", "bytes on which the reader process ends with signal 40"),
        ("raise KeyError('x')", "bytes on which the reader process ends with status 1: KeyError: 'x'"),
        ("import os; os._exit(3)", "bytes on which the reader process ends with status 3"),
        ("pass", "bytes on which the reader process ends with status 0"),
        ("print('{}')", "bytes on which the reader process returns an invalid answer"),
        ("print('[')", "bytes on which the reader process returns an invalid answer"),
        ("print('3')", "bytes on which the reader process returns an invalid answer"),
        ('print(\'{"error": "SystemExit"}\')', "bytes on which the reader process returns an invalid answer"),
    ],
)
def test_a_reader_that_ends(child: str, got: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_CHILD", child + " # PATH")
    with pytest.raises(InvalidModuleError) as caught:
        read_isolated(b"x", "in.mlirbc")
    assert str(caught.value) == (
        f"reading a module in a process of its own: got {got}, needed StableHLO as text or bytecode, or HLO\n  at in.mlirbc"
    )


def test_a_reader_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_SECONDS", 1)
    monkeypatch.setattr(isolated, "_WAITING", 100)
    busy = "import pyshardy.frontend.reader_process as r, time; r._limit(1, 2**40)\nwhile True: pass"
    monkeypatch.setattr(isolated, "_CHILD", "import sys; sys.path[:] = PATH; " + busy)
    with pytest.raises(InvalidModuleError, match="got bytes that take more than 1 s to read"):
        read_isolated(b"x", "in.mlirbc")
    monkeypatch.setattr(isolated, "_WAITING", 2)
    monkeypatch.setattr(isolated, "_CHILD", "import time; time.sleep(60)")
    with pytest.raises(InvalidModuleError, match="got bytes that take more than 2 s to read"):
        read_isolated(b"x", "in.mlirbc")


def test_a_reader_that_takes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_MEMORY", 2**20)
    with pytest.raises(InvalidModuleError):
        read_isolated(TEXT.encode(), "in.mlir")


def test_a_reader_writes_no_files_and_takes_no_time(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "from pyshardy.frontend.reader_process import _limit; _limit(7, 2**33); import resource as r\n"
        "print([r.getrlimit(k)[0] for k in (r.RLIMIT_CPU, r.RLIMIT_AS, r.RLIMIT_CORE, r.RLIMIT_FSIZE)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *rest = json.loads(done.stdout)
    assert 7 < seconds < 15
    assert rest == [2**33, 0, 0]


def test_the_folder_that_it_runs_in_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    assert "@main" in read_isolated(TEXT.encode(), "in.mlir")[0].text()


def test_errors_as_data_keep_their_class() -> None:
    assert error_data(UnsupportedVersionError("x"))["error"] == "UnsupportedVersionError"
    assert error_data(InvalidModuleError("x"))["error"] == error_data(ShardyError("x"))["error"] == "InvalidModuleError"


def test_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(TEXT)
    sources = [path, str(path), TEXT, TEXT.encode(), memoryview(TEXT.encode())]
    for source in sources:
        assert pyshardy.load(source, isolate=True).text() == Module.parse(TEXT).text()
    monkeypatch.setattr(isolated, "_CHILD", "import os; os.abort() # PATH")
    for source in sources:
        with pytest.raises(InvalidModuleError, match="ends with SIGABRT"):
            pyshardy.load(source, isolate=True)


@pytest.mark.parametrize("source", [Module.parse(TEXT), Module.parse(TEXT).mlir, io.BytesIO(), abs, None])
def test_what_is_no_file_is_not_read_elsewhere(source: object) -> None:
    with pytest.raises(UsageError, match="got isolate=True for .*, needed a path, text or bytes"):
        pyshardy.load(source, isolate=True)
