"""Patches of dimensions that are merged in an order in which axes are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.checkup.kinds.merged import _patch
from pyshardy.results.hints.code import Code, CodeEdit
from pyshardy.transforms.code_changes import merge_the_other_way

from ..diffs import added

APART, WHOLE = (512, 64, 1024), (32768, 1024)


def patch(file: Path, *lines: str, shapes: tuple[tuple[int, ...], tuple[int, ...]] = (APART, WHOLE)) -> list[str]:
    """What is written for reshapes on the lines of a file."""
    file.write_text("\n".join(lines) + "\n")
    places = [(str(file), number, 0) for number in range(1, len(lines) + 1)]
    codes = tuple(Code("stablehlo.reshape", (place,), shapes) for place in places)
    return added(_patch(CodeEdit("", "", places[0], codes, merge_the_other_way)))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("y = f(x.reshape(-1, d)).reshape(*x.shape[:-1], -1)",
         "y = f(x.swapaxes(0, 1).reshape(-1, d)).reshape(*x.swapaxes(0, 1).shape[:-1], -1).swapaxes(0, 1)"),
        ("y = f(x.reshape((t * b, d))).reshape(x.shape)",
         "y = f(x.swapaxes(0, 1).reshape((t * b, d))).reshape(x.swapaxes(0, 1).shape).swapaxes(0, 1)"),
        ("y = f(x.reshape(-1, d)).reshape(t, b, d)",
         "y = f(x.swapaxes(0, 1).reshape(-1, d)).reshape(b, t, d).swapaxes(0, 1)"),
    ],
)  # fmt: skip
def test_both_reshapes_of_a_line_change(tmp_path: Path, line: str, after: str) -> None:
    assert patch(tmp_path / "net.py", line) == [after]


def test_reshapes_of_two_lines_change(tmp_path: Path) -> None:
    found = patch(tmp_path / "net.py", "flat = x.reshape(-1, d)", "y = f(flat).reshape(t, b, d)")
    assert found == ["flat = x.swapaxes(0, 1).reshape(-1, d)", "y = f(flat).reshape(b, t, d).swapaxes(0, 1)"]


def test_dimensions_further_on_change(tmp_path: Path) -> None:
    shapes = (8, 512, 64), (8, 32768)
    assert patch(tmp_path / "net.py", "flat = x.reshape(n, -1)", shapes=shapes) == [
        "flat = x.swapaxes(1, 2).reshape(n, -1)"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("flat = jnp.reshape(x, (-1, d))",),
        ("y = f(flat).reshape(t, b, d)",),
        ("flat = x.reshape(-1, d)", "y = rearrange(flat)"),
        ("flat = x.reshape(-1, d)", "y = flat.reshape(*lead, t, b, d)"),
        ("flat = x.reshape(", "    -1, d)"),
    ],
)
def test_what_cannot_be_said_has_no_patch(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert patch(tmp_path / "net.py", *lines) == []
