"""The file-check tests, run by lit; `lit -v tests/filecheck` runs them alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyshardy.passes.table import PASSES

FOLDER = Path(__file__).parent / "filecheck"


def run_lit(path: Path) -> subprocess.CompletedProcess[str]:
    lit = Path(sys.executable).parent / "lit"
    return subprocess.run([str(lit), "-v", "--no-progress-bar", str(path)], capture_output=True, text=True)


def test_filecheck() -> None:
    result = run_lit(FOLDER)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_pass_has_a_file(name: str) -> None:
    stem = name.removeprefix("sdy-").replace("-", "_")
    assert (FOLDER / f"{stem}.mlir").exists() or (FOLDER / stem).is_dir()


def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text((FOLDER / "lit.cfg.py").read_text())
    (tmp_path / "wrong.mlir").write_text(
        "// RUN: sdy_opt %s -symbol-dce | FileCheck %s\n// CHECK: func.func @nobody\nfunc.func @main() { return }\n"
    )
    result = run_lit(tmp_path)
    assert result.returncode != 0
    assert "wrong.mlir" in result.stdout
