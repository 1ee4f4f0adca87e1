"""Places in source files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyshardy.report.places import format_place, is_library, short_path, user_place

FLAX = ("/home/me/.venv/lib/python3.13/site-packages/flax/linen/linear.py", 287, 8)
USER = ("/home/me/train.py", 31, 4)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (FLAX[0], True),
        ("/usr/lib/python3/dist-packages/jax/numpy.py", True),
        ("/usr/lib/python3.11/functools.py", True),
        ("C:\\venv\\Lib\\site-packages\\flax\\linear.py", True),
        ("<frozen runpy>", True),
        (USER[0], False),
        ("/home/me/lib/net.py", False),
        ("model.mlir", False),
        ("<stdin>", False),
        ("/tmp/ipykernel_12/3.py", False),
    ],
)
def test_what_is_installed_is_a_library(file: str, expected: bool) -> None:
    assert is_library(file) is expected


def test_the_innermost_line_of_the_user_counts() -> None:
    outer = ("/home/me/main.py", 9, 1)
    assert user_place([FLAX, ("<frozen runpy>", 1, 1), USER, outer]) == USER
    assert user_place([USER, FLAX]) == USER
    assert user_place([FLAX, FLAX]) == FLAX
    assert user_place([]) is None


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        (FLAX[0], "flax/linen/linear.py"),
        (USER[0], "train.py"),
        ("/home/me/models/net.py", "models/net.py"),
        ("/home/you/net.py", "../you/net.py"),
        ("/a.py", "/a.py"),
        ("model.mlir", "model.mlir"),
        ("-", "-"),
        ("<frozen runpy>", "<frozen runpy>"),
    ],
)
def test_paths_are_relative_to_where_the_user_is(file: str, shown: str) -> None:
    assert short_path(file, "/home/me") == shown


def test_a_directory_that_is_gone_leaves_paths_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: (_ for _ in ()).throw(FileNotFoundError()))
    assert short_path(USER[0]) == USER[0]


def test_places_in_words() -> None:
    assert format_place(USER, "/home/me") == "train.py:31"
    assert format_place(("/home/me/models/net.py", 3, 1), "/home/me", only_name=True) == "net.py:3"
    assert format_place(None) == ""


def test_pyshardy_itself_is_nobodys_own_code_wherever_it_is() -> None:
    import pyshardy

    own = str(Path(pyshardy.__file__).parent / "api.py")
    assert is_library(own)
    assert user_place([(own, 84, 1), USER]) == USER
    assert not is_library(str(Path(pyshardy.__file__).parents[1] / "train.py"))
