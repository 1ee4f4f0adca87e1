"""What `CONTRIBUTING.md` says of adding an op: the line alone takes the op from its rule to one device's program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyshardy.rules import ops

ROOT = Path(__file__).parent.parent
SECTION = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an op")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```(\w+)[^\n]*\n(.*?)```", SECTION, re.DOTALL)
PROGRAM, RESULT = (text for language, text in BLOCKS if language == "mlir")
FAMILY_WITH_LINE, TRAITS = (text for language, text in BLOCKS if language == "python")
FAMILY, LINE = FAMILY_WITH_LINE.splitlines(keepends=True)[:2]
PARTITION = """
import sys
from pathlib import Path
import pyshardy
from pyshardy.frontend.from_text import read_file
assert Path(pyshardy.__file__).is_relative_to(Path(sys.argv[1]).parent), pyshardy.__file__
found = pyshardy.partition(read_file(sys.argv[1], allow_unregistered_dialects=True))
print(found.module.text(), end="")
print(*(f"{text}\\n" for text in found.warnings), sep="", end="", file=sys.stderr)
"""


def partition(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Partition the program with a copy of the package that has one line more."""
    package = folder / "pyshardy"
    shutil.copytree(ROOT / "pyshardy", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    registry = package / "rules/ops.py"
    before = registry.read_text()
    assert before.count(FAMILY) == 1
    registry.write_text(before.replace(FAMILY, FAMILY + line))
    program = folder / "program.mlir"
    program.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-c", PARTITION, str(program)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def partitioned(folder: Path, line: str) -> tuple[str, list[str]]:
    """The program per device, and the warnings."""
    done = partition(folder, line)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


@pytest.mark.slow
def test_one_line_takes_an_op_from_its_rule_to_one_device(tmp_path: Path) -> None:
    assert partitioned(tmp_path, LINE) == (RESULT, [])


def rooms(code: str) -> str:
    """What code that uses `docs/rooms.py` prints."""
    command = [sys.executable, "-c", f"import rooms; {code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "docs").stdout


@pytest.mark.slow
def test_the_drawing_of_rooms_is_that_of_the_imports() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert page.count("-->\n\n```mermaid\n") == 1
    assert rooms("print(rooms.drawing())").strip() in page, "run `python docs/generate.py`"


@pytest.mark.slow
def test_only_direct_imports_are_drawn() -> None:
    assert (
        rooms("print(rooms.direct({'a': set(), 'b': {'a'}, 'c': {'a', 'b'}}))")
        == "{'a': set(), 'b': {'a'}, 'c': {'b'}}\n"
    )
    assert "core -->" not in rooms("print(rooms.drawing())")


def test_the_traits_are_written_out_as_they_are() -> None:
    assert eval(TRAITS, vars(ops)) == ops.FOREIGN_POINTWISE


@pytest.mark.slow
def test_without_the_line_the_op_is_unknown(tmp_path: Path) -> None:
    text, warnings = partitioned(tmp_path, "")
    assert "all_gather" in text and text.count("toy.softsign") == 2
    assert "no sharding rule is known for toy.softsign" in warnings[0]
    assert "runs on whole tensors instead" in warnings[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "trait, other, seen",
    [
        ("pure=True", "pure=False", '%1 = "toy.softsign"'),
        ('rule="elementwise:pointwise"', "rule=UNKNOWN", "all_gather"),
    ],
)
def test_another_trait_makes_a_difference(tmp_path: Path, trait: str, other: str, seen: str) -> None:
    assert TRAITS.count(trait) == 1
    text, _ = partitioned(tmp_path, f'("toy.", "softsign", {TRAITS.replace(trait, other)}),')
    assert text != RESULT and seen in text


@pytest.mark.slow
def test_what_makes_it_local_is_asked(tmp_path: Path) -> None:
    done = partition(tmp_path, f'("toy.", "softsign", {TRAITS.replace("local=ON_SHARDS", "local=GONE_BEFORE")}),')
    assert done.returncode != 0
    assert "'toy.softsign' op has no meaning on one device" in done.stderr
