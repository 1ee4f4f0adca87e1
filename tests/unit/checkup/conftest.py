"""A file of the user's for the tests of patches."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, not yet written, in the current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"
