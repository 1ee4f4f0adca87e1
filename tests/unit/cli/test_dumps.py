"""`pyshardy show` and others on what XLA dumps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyshardy.cli.main import main

from ..frontend.hlo_texts import DECIDED, GSPMD, INPUT, write_dump


def shown(*args: Any) -> int:
    return main([*map(str, args)])


def test_a_dump_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("show", write_dump(tmp_path, input=INPUT, hlo=GSPMD)) == 0
    out = capsys.readouterr().out
    assert "params['w']" in out
    assert "P('data')" in out


def test_hlo_with_axes_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.before_optimizations.txt"
    path.write_text(GSPMD)
    assert shown("show", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["inputs"][0]["sharding"] == '[{"axis_0"}, {}]'
    assert shown("show", path, "--mesh", "data=2,model=4", "--json") == 0
    assert json.loads(capsys.readouterr().out)["inputs"][0]["sharding"] == '[{"data", "model":(1)2}, {}]'


@pytest.mark.slow
def test_hlo_runs_on_virtual_devices(tmp_path: Path) -> None:
    """In a process of its own: reading HLO has XLA read its flags, and then it is too late to ask for devices there."""
    path = tmp_path / "f.txt"
    path.write_text(GSPMD)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    command = [sys.executable, "-m", "pyshardy.cli.main", "run", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "the output equals one device's within rounding" in found.stdout, found.stderr


def test_which_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path, "module_0000.jit_f")
    write_dump(tmp_path, "module_0001.jit_g")
    assert shown("show", tmp_path) == 2
    assert "got several modules: module_0000.jit_f, module_0001.jit_g" in capsys.readouterr().err
    assert shown("show", tmp_path, "--module", "jit_g") == 0
    assert shown("show", f"{tmp_path}::jit_g") == 0


@pytest.mark.parametrize("command", ["propagate", "partition"])
def test_other_commands_take_dumps(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(command, write_dump(tmp_path), "-o", "-") == 0
    assert "func.func @main" in capsys.readouterr().out


def test_comparing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("show", write_dump(tmp_path), "--compare") == 0
    assert capsys.readouterr().out == "compared 3 inputs and outputs; 2 results of ops: 0 differ\n"
    write_dump(tmp_path, input=INPUT, decided=DECIDED.replace('[{"data"}, {}]>})', "[{}, {}]>})"))
    assert shown("show", tmp_path, "--compare", "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert found == {"where": "output result", "here": '<@mesh, [{"data"}, {}]>', "in_xla": "replicated"}


def test_comparing_with_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert shown("show", "example", "--compare") == 2
    assert "comparing with a dump: got the example" in capsys.readouterr().err
    path = tmp_path / "f.mlir"
    path.write_text(INPUT)
    assert shown("show", path, "--compare") == 2
    assert f"comparing with a dump: got {path}, needed a directory that XLA dumped to" in capsys.readouterr().err
