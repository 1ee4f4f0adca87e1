from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, changed_dims
from pyshardy.rules.rule import FactorKind

from .probe import spec


def test_scalars_have_no_factor() -> None:
    assert str(aligned_rule(spec("clamp", "(), 6x10, () -> 6x10"), (6, 10))) == (
        "<([], [i, j], [])->([i, j]) {i=6, j=10}>"
    )


def test_special_and_blocked_dimensions() -> None:
    found = aligned_rule(spec("slice", "6x10 -> 6x4"), (6, 10), {1}, FactorKind.PERMUTATION, blocked=[0])
    assert str(found) == "<([i, j])->([i, j]) {i=6, j=10} permutation={j} blocked_propagation={i}>"


def test_changed_dims() -> None:
    assert changed_dims(spec("pad", "6x10x0, () -> 6x12x1")) == [1, 2]
    assert changed_dims(spec("abs", "() -> ()")) == []
