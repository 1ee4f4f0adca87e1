"""What `make test-fast` runs: tests of every room, and nothing that a mark names without being there.

And which cases `make test` leaves out.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from test_layers import RANKS

from support.environment import kept_environment
from support.marks import has_no_fast_test, is_in_slow_folder, is_slow, left_out, unknown_cases

TESTS = Path(__file__).parent
ELSEWHERE = {"__init__": "test_public_api.py", "__main__": "unit/test_main_module.py", "opt": "unit/cli/test_opt.py"}
"""The doors, whose tests are not in a file of their name."""


def functions_of(path: Path) -> list[ast.FunctionDef]:
    """The tests in a file."""
    body = ast.parse(path.read_text()).body
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def files_of(room: str) -> list[Path]:
    """The files with the unit tests of a room."""
    at = TESTS / ELSEWHERE.get(room, f"unit/test_{room}.py")
    return [*sorted((TESTS / "unit" / room).rglob("test_*.py")), *([at] if at.exists() else [])]


def is_fast(node: ast.FunctionDef) -> bool:
    """Whether a test of a file that is not slow as a whole is fast, or has a fast case."""
    return "pytest.mark.slow" not in map(ast.unparse, node.decorator_list)


def fast_tests(files: list[Path]) -> list[str]:
    """The tests that are fast, or have a fast case, as their files say."""
    found = []
    for path in files:
        only_some = is_in_slow_folder(path.relative_to(TESTS).as_posix()) or not has_fast_default(path)
        for node in functions_of(path):
            samples = any("slow_but_for" in ast.unparse(one) for one in node.decorator_list)
            if samples if only_some else is_fast(node):
                found.append(f"{path.relative_to(TESTS).as_posix()}::{node.name}")
    return found


def has_fast_default(path: Path) -> bool:
    """Whether the tests of a file are fast if nothing else is said."""
    return "\npytestmark = pytest.mark.slow\n" not in path.read_text()


@pytest.mark.parametrize("room", RANKS)
def test_every_room_has_fast_tests(room: str) -> None:
    assert fast_tests(files_of(room))


def test_a_room_without_fast_tests_is_found() -> None:
    assert fast_tests(files_of("basement")) == []
    assert fast_tests([TESTS / "test_benchmarks.py", TESTS / "unit/test_programs.py"]) == []
    assert fast_tests([TESTS / "test_fast.py"])


def test_a_case_that_a_mark_names_and_that_does_not_exist_is_found() -> None:
    marked = {
        "test_f[a]": [pytest.mark.slow_cases("a", "gone").mark],
        "test_g[b]": [pytest.mark.slow_but_for("b").mark],
    }
    assert list(unknown_cases(marked)) == ["test_f[gone]"]


@pytest.mark.parametrize(
    ("name", "marks", "slow"),
    [
        ("unit/core/test_axes.py::test_order", [], False),
        ("unit/core/test_axes.py::test_order[8]", [pytest.mark.slow.mark], True),
        ("unit/core/test_axes.py::test_order[8]", [pytest.mark.slow_cases("8", "9").mark], True),
        ("unit/core/test_axes.py::test_order[88]", [pytest.mark.slow_cases("8", "9").mark], False),
        ("unit/core/test_axes.py::test_order[8]", [pytest.mark.slow_but_for("8").mark], False),
        ("unit/core/test_axes.py::test_order[9]", [pytest.mark.slow_but_for("8").mark], True),
        ("differential/test_rules.py::test_rule[add]", [], True),
        ("differential/test_rules.py::test_rule[add]", [pytest.mark.slow_but_for("add").mark], False),
    ],
)
def test_slow_is_what_is_marked_or_in_a_slow_folder(name: str, marks: list[pytest.Mark], slow: bool) -> None:
    assert is_slow(name, marks) == slow


def test_files_are_left_out_only_if_nothing_in_them_is_fast() -> None:
    for path in TESTS.rglob("test_*.py"):
        if has_no_fast_test(path, TESTS):
            assert fast_tests([path]) == []
    assert not has_no_fast_test(TESTS.parent / "pyshardy" / "testing.py", TESTS)


def test_of_a_test_that_is_sampled_the_first_of_every_so_many_cases_run() -> None:
    names = [f"test_f[{number}]" for number in range(7)]
    others = [f"test_fs[{number}]" for number in range(7)]
    out = set(left_out({"test_f": 3}, names + others))
    assert [name for name in names if name not in out] == [names[0], names[3], names[6]]
    assert set(left_out({"test_f": 3}, names, kept=[names[1]])) == {names[number] for number in (2, 4, 5)}
    assert not set(left_out({"test_f": 3}, others))


@pytest.mark.parametrize("value", ["1", None])
def test_a_test_that_changes_the_environment_fails(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSHARDY_KEPT", "0")
    with kept_environment():
        os.environ["TPU_OF_JAX"] = "1"
    del os.environ["TPU_OF_JAX"]
    with pytest.raises(AssertionError), kept_environment():
        if value is None:
            monkeypatch.delenv("PYSHARDY_KEPT")
        else:
            monkeypatch.setenv("PYSHARDY_KEPT", value)
