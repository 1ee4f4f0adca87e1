"""What `make test-fast` runs: tests of every room, and nothing that is listed as slow without being there.

And which cases `make test` leaves out.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_layers import RANKS

from support.environment import kept_environment
from support.sampled import ONE_OF, left_out
from support.slow import SAMPLES, SLOW, has_no_fast_test, is_slow

TESTS = Path(__file__).parent
ELSEWHERE = {"__init__": "test_public_api.py", "__main__": "unit/test_main_module.py", "opt": "unit/cli/test_opt.py"}
"""The doors, whose tests are not in a file of their name."""


def names_in(path: Path) -> Iterator[str]:
    """The names of the tests in a file as pytest writes them, without their parameters."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield f"{path.relative_to(TESTS).as_posix()}::{node.name}"


def files_of(room: str) -> list[Path]:
    """The files with the unit tests of a room."""
    at = TESTS / ELSEWHERE.get(room, f"unit/test_{room}.py")
    return [*sorted((TESTS / "unit" / room).rglob("test_*.py")), *([at] if at.exists() else [])]


def fast_tests(files: list[Path]) -> list[str]:
    """The tests that are fast, or have a fast sample."""
    names = [name for path in files for name in names_in(path)]
    sampled = {sample.partition("[")[0] for sample in SAMPLES}
    return [name for name in names if name in sampled or not is_slow(name)]


@pytest.mark.parametrize("room", RANKS)
def test_every_room_has_fast_tests(room: str) -> None:
    assert fast_tests(files_of(room))


def test_a_room_without_fast_tests_is_found() -> None:
    assert fast_tests(files_of("basement")) == []
    assert fast_tests([TESTS / "test_benchmarks.py", TESTS / "unit/test_programs.py"]) == []
    assert fast_tests([TESTS / "test_fast.py"])


def exists(name: str) -> bool:
    file, _, test = name.partition("::")
    path = TESTS / file
    return path.exists() and (not test or f"{file}::{test.partition('[')[0]}" in names_in(path))


def test_what_is_listed_exists() -> None:
    """A test that gets another name would else be fast without anybody noticing."""
    assert [name for name in [*SLOW, *SAMPLES, *ONE_OF] if not exists(name)] == []
    assert not exists("test_fast.py::test_that_is_gone") and not exists("test_gone.py")


def test_the_lists_are_sorted_and_every_sample_is_one_of_something_slow() -> None:
    assert len(set(SLOW)) == len(SLOW)
    assert list(SAMPLES) == sorted(SAMPLES)
    for sample in SAMPLES:
        assert any(sample.startswith(slow) for slow in SLOW)
        assert not is_slow(sample) and is_slow(sample.partition("[")[0])


def test_slow_is_what_is_named_and_what_is_within() -> None:
    whole, test, parameter = "unit/test_programs.py", "unit/api/test_jit.py::test_keys", "unit/reshard/test_moves.py"
    assert is_slow(f"{whole}::test_any") and is_slow(test) and is_slow(f"{test}[2]")
    assert is_slow(f"{parameter}::test_the_number_of_rounds_does_not_grow[4096]")
    assert not is_slow(f"{parameter}::test_the_number_of_rounds_does_not_grow[8]")
    assert not is_slow("unit/test_programs.python::test_any") and not is_slow(f"{test}_of_more")


def test_files_are_left_out_only_if_nothing_in_them_is_fast() -> None:
    for path in TESTS.rglob("test_*.py"):
        if has_no_fast_test(path, TESTS):
            assert fast_tests([path]) == []
    assert not has_no_fast_test(TESTS.parent / "pyshardy" / "search", TESTS)


def test_of_a_test_that_is_sampled_the_first_of_every_so_many_cases_run() -> None:
    test, count = "differential/test_chains.py::test_laws_hold_for_jax_programs", 3
    assert ONE_OF[test] == count
    names = [f"{test}[{number}]" for number in range(7)]
    others = [f"{test}s[{number}]" for number in range(7)]
    assert [name for name in names if name not in left_out(names + others)] == [names[0], names[3], names[6]]
    assert left_out(names, kept=[names[1]]) == {names[number] for number in (2, 4, 5)}
    assert left_out(others) == set()


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
