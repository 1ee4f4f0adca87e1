"""What the marks of tests mean: `slow`, `slow_cases`, `slow_but_for` and `sampled`. `CONTRIBUTING.md` says when to use which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

ALL_TESTS = "PYSHARDY_ALL_TESTS"
"""The environment variable with which all cases run; some tests ask for it themselves."""
SLOW_FOLDERS = (
    "checkup", "compilers", "differential", "end_to_end", "fuzz", "packages", "page", "public_reports", "search",
)  # fmt: skip
"""Comparisons with the reference, with compilers and with one device; other packages; a browser; searches; fuzzing."""
_WHOLE_FILE = re.compile(r"^pytestmark = pytest\.mark\.slow$", re.MULTILINE)
_SOME = "pytest.mark.slow_but_for("


class Mark(Protocol):
    """A mark as pytest keeps it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def args(self) -> tuple[object, ...]: ...  # noqa: D102


def is_in_slow_folder(name: str) -> bool:
    """Whether a test is in a folder whose tests are all slow.

    Args:
        name: Its name as pytest writes it, without `tests/`.

    >>> is_in_slow_folder("differential/test_rules.py::test_rule[add]"), is_in_slow_folder("unit/core/test_axes.py::test_order")
    (True, False)
    """
    return name.partition("/")[0] in SLOW_FOLDERS


def is_slow(name: str, marks: Collection[Mark]) -> bool:
    """Whether a case of a test is slow.

    Args:
        name: Its name as pytest writes it, without `tests/`.
        marks: Its marks, and those of its file.
    """
    case = name.partition("[")[2].removesuffix("]")
    kept = [mark for mark in marks if mark.name == "slow_but_for"]
    if kept:
        return not any(case in mark.args for mark in kept)
    if is_in_slow_folder(name) or any(mark.name == "slow" for mark in marks):
        return True
    return any(case in mark.args for mark in marks if mark.name == "slow_cases")


def unknown_cases(marks: Mapping[str, Collection[Mark]]) -> Iterator[str]:
    """The cases that marks name and that do not exist.

    A case that gets another name would else be fast, or slow, without anybody noticing.

    Args:
        marks: The marks of all cases, by their names as pytest writes them.
    """
    named = {
        f"{name.partition('[')[0]}[{case}]"
        for name, found in marks.items()
        for mark in found
        if mark.name in ("slow_cases", "slow_but_for")
        for case in mark.args
    }
    yield from sorted(named - marks.keys())


def has_no_fast_test(path: Path, tests: Path) -> bool:
    """Whether all tests of a file are slow as its text says, so that it need not be imported.

    >>> has_no_fast_test(Path("tests/page/test_browser.py"), Path("tests"))
    True
    """
    if path.suffix != ".py" or not path.name.startswith("test_") or not path.is_relative_to(tests):
        return False
    text = path.read_text()
    is_whole = is_in_slow_folder(path.relative_to(tests).as_posix()) or _WHOLE_FILE.search(text) is not None
    return is_whole and _SOME not in text


def left_out(counts: Mapping[str, int], names: Iterable[str], kept: Collection[str] = ()) -> Iterator[str]:
    """Those of the names of tests that do not run: of each sampled test all but the first of every so many cases.

    Args:
        counts: How many cases there are for each that runs, by the names of sampled tests without cases.
        names: The names as pytest writes them.
        kept: Names that run anyway, such as those that are fast.

    >>> list(left_out({"test_f": 2}, ["test_f[a]", "test_f[b]", "test_f[c]", "test_g[b]"]))
    ['test_f[b]']
    """
    seen: Counter[str] = Counter()
    for name in names:
        test = name.partition("[")[0]
        if test in counts:
            if seen[test] % counts[test] and name not in kept:
                yield name
            seen[test] += 1
