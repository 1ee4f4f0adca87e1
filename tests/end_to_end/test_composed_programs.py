"""Programs of control flow, indexing, windows and sorts give on eight devices what they give on one."""

from __future__ import annotations

import pytest
from end_to_end import composed_programs
from end_to_end.number_programs import FAMILIES
from end_to_end.numbers_campaign import outcome
from end_to_end.numbers_compare import Verdict

_OPS = ("while", "case", "sort", "gather", "scatter", "convolution", "reduce_window", "dynamic_slice", "concatenate", "pad",
        "dot_general", "dynamic_update_slice", "complex", "rng_bit_generator")  # fmt: skip


@pytest.mark.parametrize("seed", [551, 1001, 1002, 1004])
def test_numbers(seed: int) -> None:
    assert outcome("composed", seed).verdict is Verdict.EQUAL


def test_a_seed_gives_one_program() -> None:
    texts = [FAMILIES["composed"](seed) for seed in range(4)]
    assert [FAMILIES["composed"](seed) for seed in range(4)] == texts
    assert len(set(texts)) == 4


def test_programs_have_what_they_are_for() -> None:
    texts = "".join(composed_programs.unsharded(seed)[0] for seed in range(60))
    assert [op for op in _OPS if f"stablehlo.{op}" not in texts] == []
