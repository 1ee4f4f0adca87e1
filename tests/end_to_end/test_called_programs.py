"""Programs of functions that call each other give on eight devices what they give on one."""

from __future__ import annotations

import pytest
from end_to_end import called_programs
from end_to_end.number_programs import FAMILIES
from end_to_end.numbers_campaign import outcome
from end_to_end.numbers_compare import Verdict

_PARTS = ("func.call", "sdy.named_computation", "sdy.original_func_name", "optimization_barrier", "while", "case")


@pytest.mark.parametrize("seed", [0, 4, 10, 14])
def test_numbers(seed: int) -> None:
    assert outcome("called", seed).verdict is Verdict.EQUAL


def test_a_seed_gives_one_program() -> None:
    texts = [FAMILIES["called"](seed) for seed in range(4)]
    assert [FAMILIES["called"](seed) for seed in range(4)] == texts
    assert len(set(texts)) == 4


def test_programs_have_what_they_are_for() -> None:
    texts = [called_programs.unsharded(seed)[0] for seed in range(40)]
    assert [part for part in _PARTS if part not in "".join(texts)] == []
    assert any(text.count('name = "f"') > 1 for text in texts)
    assert any(text.count('sdy.original_func_name = "f"') > 1 for text in texts)
