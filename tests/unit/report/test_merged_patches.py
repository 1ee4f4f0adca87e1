"""Several diffs of one file become one."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.report.patch import file_diff, merged_patches

LINES = [f"line {number}\n" for number in range(40)]


def changed(edits: dict[int, str | None]) -> list[str]:
    """The lines with some of them replaced, or left out."""
    texts = [edits.get(number, line) or "" for number, line in enumerate(LINES)]
    return "".join(texts).splitlines(keepends=True)


@pytest.mark.parametrize("seed", range(20))
def test_every_edit_is_in_the_one_diff(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    numbers = chance.sample(range(40), 6)
    kinds: list[str | None] = [None, "new\n", "new\nand more\n", "kept"]
    edits = {number: chance.choice(kinds) for number in numbers}
    edits |= {number: f"{LINES[number]}one more\n" for number, text in edits.items() if text == "kept"}
    parts = [{number: edits[number] for number in numbers[start::3]} for start in range(3)]
    Path("f.py").write_text("".join(LINES))
    found = merged_patches([file_diff("f.py", LINES, changed(part)) for part in parts])
    wanted = "".join(changed({number: text for part in parts for number, text in part.items()}))
    assert "".join(apply_patch(LINES, found)) == wanted
    subprocess.run(["git", "apply", "-"], input=found, text=True, check=True)
    assert Path("f.py").read_text() == wanted


def test_two_arguments_more_in_one_call() -> None:
    before = ["step = jit(f)\n"]
    one, two = (file_diff("f.py", before, [f"step = jit(f, {text}=1)\n"]) for text in ("donate", "out"))
    assert apply_patch(before, merged_patches([one, two])) == ["step = jit(f, donate=1, out=1)\n"]


def test_changes_of_the_same_words_stay_apart() -> None:
    before = ["x = P('a')\n"]
    one, two = (file_diff("f.py", before, [f"x = {text}\n"]) for text in ("Q()", "R()"))
    assert merged_patches([one, two]) == one + two
    assert merged_patches([one, one]) == one and merged_patches(["", one]) == one and merged_patches([]) == ""


def test_files_stay_apart() -> None:
    one, two = (file_diff(name, ["a\n"], ["b\n"]) for name in ("f.py", "g.py"))
    assert merged_patches([one, two]) == one + two
