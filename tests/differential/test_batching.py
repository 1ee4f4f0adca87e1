"""Explicit batching of random gathers and scatters, compared with the reference."""

from __future__ import annotations

import pytest

from .batching_programs import program
from .compare import difference, our_outcome, reference_outcome

PASS = "sdy-explicit-gather-scatter-batching"
COUNT = 100


@pytest.mark.parametrize("first", range(0, 4 * COUNT, COUNT))
def test_same_as_the_reference(first: int) -> None:
    different, rewritten = [], 0
    for seed in range(first, first + COUNT):
        text = program(seed)
        theirs = reference_outcome(text, PASS, debug_info=True)
        rewritten += theirs.text is not None and "batching_dims = [0]" in theirs.text
        found = difference(theirs, our_outcome(text, PASS, debug_info=True))
        if found:
            different.append(f"{seed}\n{found}")
    assert not different, "\n\n".join(different)
    assert rewritten > 0.1 * COUNT
