"""Processes that pyshardy starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyshardy import errors
from pyshardy.core.children import child_environment, end_child, ending_of


def test_a_child_finds_the_package_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "kept")
    environment = child_environment({"NEW": "1"})
    assert environment["PYTHONPATH"].endswith(f"{os.pathsep}kept") and environment["NEW"] == "1"
    code = [sys.executable, "-c", "import pyshardy.errors; print(pyshardy.errors.__file__)"]
    found = subprocess.run(code, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == errors.__file__


def test_an_end_is_the_end_of_all() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdin is not None and child.stdout is not None
    with child.stdin, child.stdout:
        child.stdout.readline()
        end_child(child)
        assert child.stdout.read() == b""  # nobody holds it open any more
    end_child(child)  # nothing is left to end
    assert ending_of(child.returncode) == "ends with SIGKILL"


@pytest.mark.parametrize(
    ("status", "log", "expected"),
    [
        (0, "", "ends with status 0"),
        (3, "Traceback\n  KeyError: 'x' \n\n", "ends with status 3: KeyError: 'x'"),
        (-6, "stack\n", "ends with SIGABRT: stack"),
        (-40, "", "ends with signal 40"),
    ],
)
def test_endings(status: int, log: str, expected: str) -> None:
    assert ending_of(status, log) == expected
