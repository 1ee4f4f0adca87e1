"""`python -m pyshardy`, in this process."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import pyshardy


def test_it_is_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pyshardy", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(pyshardy.__file__).parent / "__main__.py"), run_name="__main__")
    assert not ended.value.code
    assert pyshardy.__version__ in capsys.readouterr().out
