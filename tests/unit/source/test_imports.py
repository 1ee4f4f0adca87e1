"""The user's files that a file imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyshardy.source.imports import imports_of
from pyshardy.source.syntax import with_imported


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    for name, text in {
        "train.py": "import os, config\nfrom net import layers\nfrom net.parts import block as b\nimport jax\n",
        "config.py": "import train\n",
        "net/__init__.py": "",
        "net/layers.py": "from . import parts\nfrom ..config import sizes\nfrom config import more\n",
        "net/parts.py": "def block(x): return x\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def found(folder: Path, name: str) -> list[tuple[str, str]]:
    file = folder / name
    found = imports_of(str(file), ast.parse(file.read_text()))
    return [(str(Path(other).relative_to(folder)), module) for other, module in found]


def test_modules_beside_a_file_and_in_packages_are_found(folder: Path) -> None:
    assert found(folder, "train.py") == [
        ("config.py", "config"),
        ("net/__init__.py", "net"),
        ("net/layers.py", "net.layers"),
        ("net/parts.py", "net.parts"),
    ]


def test_relative_imports_and_those_from_above_are_found(folder: Path) -> None:
    assert found(folder, "net/layers.py") == [
        ("net/parts.py", ".parts"),
        ("config.py", "..config"),
        ("config.py", "config"),
    ]


def test_what_is_imported_is_followed_once(folder: Path) -> None:
    files = with_imported([str(folder / "train.py"), str(folder / "gone.py")])
    assert [str(Path(one).relative_to(folder)) for one in files] == [
        "train.py", "gone.py", "config.py", "net/__init__.py", "net/layers.py", "net/parts.py",
    ]  # fmt: skip
