"""`pyshardy doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyshardy.cli.main import main

RIVALS = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> tensor<8192x4096xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}"""
ALONE = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "step.mlir"
    path.write_text(RIVALS)
    return path


def test_findings_have_exit_status_1(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(file), "--hardware", "h100"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("a step takes ") and "1. `arg0` is annotated as P(None, 'x')" in shown
    assert "do: annotate `arg0` as P()" in shown and "tried: a step " in shown


def test_without_findings_it_is_0(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = RIVALS.replace('[{}, {"x"}]>}', '[{"x"}, {}]>}', 1)
    file.write_text(rows.replace('[{}, {"x"}]>})', "[{}, {}]>})"))
    assert main(["doctor", str(file), "--hardware", "h100"]) == 0
    assert "nothing found that costs 1% or more" in capsys.readouterr().out


def test_the_patch_is_written_and_json_has_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = file.parent / "step.patch"
    assert main(["doctor", str(file), "--hardware", "h100", "--json", "--patch", str(patch)]) == 1
    said = capsys.readouterr()
    assert said.err == f"not in {patch}: finding 1\n"
    found = json.loads(said.out)
    assert found["findings"][0]["kind"] == "conflict" and found["hardware"] == "NVIDIA H100 SXM"
    assert patch.read_text() == "".join(one["patch"] for one in found["findings"])


def test_a_program_for_one_device_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(ALONE)
    assert main(["doctor", str(file)]) == 2
    assert "got a program for one device, needed a mesh with several devices" in capsys.readouterr().err


def test_an_unknown_chip_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(file), "--hardware", "abacus"]) == 2
    assert "abacus" in capsys.readouterr().err
