"""The file-check tests, run by lit; `lit -v tests/filecheck` runs them alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyshardy.passes.table import PASSES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "filecheck"
UNREACHABLE = {
    "a shard, to a value whose shards have type": "MLIR refuses a manual computation whose operand or result has another type",
    "has no operand that is sharded": "what asks for a mesh has looked for a sharded operand before",
    "calls a custom partitioner, which fails": "no file holds a function: test_user_partitioners.py",
    "calls a custom partitioner, which returned another mesh": "likewise",
}
"""Refusals that no file can reach, and why: most guard what comes before them."""


def run_lit(path: Path) -> subprocess.CompletedProcess[str]:
    lit = Path(sys.executable).parent / "lit"
    return subprocess.run([str(lit), "-v", "--no-progress-bar", str(path)], capture_output=True, text=True)


@pytest.mark.slow
def test_filecheck() -> None:
    result = run_lit(FOLDER)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_pass_has_a_file(name: str) -> None:
    stem = name.removeprefix("sdy-").removeprefix("pyshardy-").replace("-", "_")
    assert (FOLDER / f"{stem}.mlir").exists() or (FOLDER / stem).is_dir()


@pytest.mark.slow
def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text((FOLDER / "lit.cfg.py").read_text())
    (tmp_path / "wrong.mlir").write_text(
        "// RUN: sdy_opt %s -symbol-dce | FileCheck %s\n// CHECK: func.func @nobody\nfunc.func @main() { return }\n"
    )
    result = run_lit(tmp_path)
    assert result.returncode != 0
    assert "wrong.mlir" in result.stdout


def refusals(path: Path) -> Iterator[str]:
    """The longest fixed part of the message of every `PassError` that a file raises."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "PassError":
            message = node.args[1]
            parts = message.values if isinstance(message, ast.JoinedStr) else [message]
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            yield max(texts, key=len, default="")


def expectations() -> str:
    """All errors that the file-checks expect."""
    files = [path for path in FOLDER.rglob("*.mlir") if ".lit" not in path.parts]
    return "\n".join(line for path in files for line in path.read_text().splitlines() if "expected-error" in line)


@pytest.mark.slow
def test_every_refusal_of_a_pass_is_expected_somewhere() -> None:
    expected = expectations()
    files = (ROOT / "pyshardy").rglob("*.py")
    raised = [text.strip(" ,;:") for path in files for text in refusals(path)]
    assert len(raised) > 20
    missing = {text for text in raised if len(text) > len(" along ") and text not in expected}
    assert missing == {*UNREACHABLE}


def test_a_refusal_without_expectation_is_found(tmp_path: Path) -> None:
    path = tmp_path / "refuse.py"
    path.write_text(
        'raise PassError(op, f"has {number} of a kind, and all of them green")\nraise PassError(op, str(e))\n'
    )
    assert list(refusals(path)) == [" of a kind, and all of them green", ""]
    assert "all of them green" not in expectations()
