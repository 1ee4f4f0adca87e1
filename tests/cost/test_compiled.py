"""Known errors are those of the table in docs/cost.md; the comparison itself is made by `python -m cost.compiled`."""

from __future__ import annotations

import re

import pytest

import pyshardy
from pyshardy.compilers.plugins import is_installed
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.known_errors import COMPILERS, CONFLICTING, OWN, KnownError, known_error

from .compiled import AGREE, CHIPS, CONFLICT, Chip, Compared, compare, error, is_near, known_range, memory_table
from .published import PAGE
from .steps import STEPS


def said(chip: str, steps: str, what: str) -> tuple[float, float, int]:
    """The range of all steps of a kind on the page, and their number."""
    row = rf"^\| {chip} \| {steps} \| {what} \| \d+% \| \d+ of (\d+) \| ([\d.]+) to ([\d.]+) \|$"
    match = re.search(row, PAGE.read_text(), re.MULTILINE)
    assert match is not None
    return float(match[2]), float(match[3]), int(match[1])


@pytest.mark.parametrize("chip", ["h100", "v5e"])
@pytest.mark.parametrize(
    ("steps", "what", "known"),
    [(AGREE, "pyshardy's program", OWN), (CONFLICT, "pyshardy's program", CONFLICTING), ("all", "the compiler's program", COMPILERS)],
    ids=["own", "conflicting", "compiler's"],
)  # fmt: skip
def test_known_errors_are_those_of_the_page(chip: str, steps: str, what: str, known: dict[str, KnownError]) -> None:
    (found,) = [one for name, one in known.items() if name.lower().endswith(chip)]
    assert (found.low, found.high, found.steps) == said(chip, steps, what)


def test_a_step_whose_shardings_conflict_is_too_close_to_call_where_it_was_far_off() -> None:
    """Weights over both axes for v5e: the estimate is a third of what the compiler needs."""
    (step,) = (one for one in STEPS if one.name == "decoder, unrolled, checkpoint, both")
    found = pyshardy.cost(pyshardy.propagate(step.load("tpu"), compiler="none"), "v5e").estimate
    assert found.memory_error == known_error(find_hardware("v5e"), is_compilers=False, conflicts=True)
    needed = 3_944_000_000  # as compiled
    low, high = found.memory_error.range(found.memory.bytes)
    assert found.memory.bytes < 0.5 * needed and low < needed < 1.01 * high


def test_all_steps_are_on_the_page() -> None:
    page = PAGE.read_text()
    assert [step.name for step in STEPS if f"\n| {step.name} | " not in page] == []


def test_the_range_leaves_out_one_of_twenty_at_either_end() -> None:
    rows = [(100 + at, 100) for at in range(20)]
    assert known_range(rows) == (1.01, 1.18)
    assert known_range(rows[:10]) == (1.0, 1.09)


def test_a_wrong_estimate_shows() -> None:
    row = Compared(100, 150, 100, {"all_reduce": (2, 100)}, {"all_reduce": (3, 100)}, {"all_reduce": (2, 104)})
    assert not is_near(row.compiled, row.own, 0) and is_near(row.compiled, row.own, 1)
    assert is_near(row.compiled, row.other, 0) and is_near(row.compiled, row.other, 1)
    assert error(row.compiled_bytes, row.own_bytes) == 0.5
    lines = memory_table({"h100": {"steps at hand": {"a": row}, "steps held out": {"b": row}}})
    assert lines[2] == "| h100 | steps at hand | pyshardy's program | 50% | 0 of 1 | 0.66 to 0.67 |"


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_step_beside_its_compiler(chip: Chip) -> None:
    if not is_installed(chip.platform):
        pytest.skip(f"the compiler for {chip.name} is not installed beside this Python")
    (step,) = (one for one in STEPS if one.name == "serving")
    found = compare(step.load, chip)
    assert abs(error(found.compiled_bytes, found.own_bytes)) < 0.1
    assert is_near(found.compiled, found.own, 0) and is_near(found.compiled, found.own, 1)
