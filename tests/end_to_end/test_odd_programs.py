"""Programs of odd sizes and element types give on eight devices what they give on one, with few values annotated."""

from __future__ import annotations

from end_to_end import odd_programs
from end_to_end.number_programs import FAMILIES

_PARTS = ("@ApproxTopK", "batch_group_count = 2", "feature_group_count = 3", "xbf16>", "xi8>", "xui8>", "xi1>", "stablehlo.while",
          "stablehlo.reshape", "stablehlo.gather", "stablehlo.scatter", "stablehlo.sort", "interior")  # fmt: skip


def test_a_seed_gives_one_program() -> None:
    texts = [FAMILIES["odd"](seed) for seed in range(4)]
    assert [FAMILIES["odd"](seed) for seed in range(4)] == texts
    assert len(set(texts)) == 4


def test_programs_have_what_they_are_for() -> None:
    texts = "".join(odd_programs.unsharded(seed)[0] for seed in range(60))
    assert [part for part in _PARTS if part not in texts] == []


def test_few_values_are_sharded() -> None:
    lines = [line for seed in range(4) for line in FAMILIES["odd"](seed).splitlines() if " = " in line]
    assert 0 < sum("sdy.sharding = " in line for line in lines) < len(lines) / 3
