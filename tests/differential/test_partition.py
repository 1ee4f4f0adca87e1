"""Resolving permutation factors and padding make of random programs what the reference makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.reference import jaxlib_version

from .partition_compare import FAMILIES, compare_family, partition_input
from .partition_programs import NEIGHBOURS, PAD, RESOLVE
from .partition_reasons import partition_reason
from .reference_process import ReferenceProcess
from .reshard_compare import Comparison, Verdict, ours

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="older references have other versions of both passes"
)
SEEDS = range(5)


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceProcess]:
    with ReferenceProcess() as process:
        yield process


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    found, wrong = compare_family(family, SEEDS, (*RESOLVE, PAD), reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > (0 if family == "strided slice" else len(SEEDS)), found


def test_programs_do_what_they_are_made_for() -> None:
    texts = [partition_input(family, seed, PAD) or "" for family in NEIGHBOURS for seed in range(20)]
    for name in ("sdy.manual_computation", "stablehlo.collective_permute", "sdy.all_gather", "sdy.all_slice"):
        assert any(f'"{name}"' in text for text in texts), name
    padded = [ours(text, PAD) for text in texts if text]
    assert any('"stablehlo.select"' in text for text in padded)


@pytest.mark.parametrize(
    ("family", "pipeline", "old", "new"),
    [
        ("pad", RESOLVE[0], "direction GE", "direction GT"),
        ("slice", RESOLVE[0], "<[[0, ", "<[[1, "),
        ("reduce", PAD, "array<i64: 0, ", "array<i64: 1, "),
    ],
)
def test_a_wrong_answer_is_found(family: str, pipeline: str, old: str, new: str, reference: ReferenceProcess) -> None:
    def wrong(text: str, passes: str) -> str:
        return ours(text, passes).replace(old, new)

    _, differences = compare_family(family, range(12), [pipeline], reference, wrong)
    assert differences


def test_reasons_are_for_what_they_name() -> None:
    gathered = Comparison(Verdict.DIFFERENT, '+    %1 = "sdy.all_gather"(%0)')
    masked = Comparison(Verdict.DIFFERENT, '+    %1 = "stablehlo.select"(%0)')
    joined = Comparison(Verdict.DIFFERENT, "+    %1 = stablehlo.concatenate")
    strided = "strides = array<i64: 1, 2>"
    assert partition_reason("", PAD, gathered) == "collectives that would move padding"
    assert partition_reason("stablehlo.scatter", PAD, masked) == "masks that the reference leaves out"
    assert partition_reason("stablehlo.add", PAD, masked) is None
    assert partition_reason(strided, RESOLVE[0], masked) == "slice with a stride"
    assert partition_reason(strided, RESOLVE[1], masked) is None
    assert partition_reason(f"window_{strided}", RESOLVE[0], masked) is None
    assert partition_reason("stablehlo.slice", RESOLVE[0], joined) == "concatenated slices"
    skipped = Comparison(Verdict.DIFFERENT, '+ %1 = "sdy.reshard"(%0)\n+ %2 = "stablehlo.convolution"(%1)')
    assert partition_reason(f"window_{strided}", RESOLVE[0], skipped) == "convolution that skips a part of its input"
    assert partition_reason("<mesh<", RESOLVE[0], Comparison(Verdict.DIFFERENT, "mesh_reversed")) is not None
    assert partition_reason(strided, "sdy-close-shardings", masked) is None
    for refused, accepted in ((RESOLVE[0], True), (PAD, True), ("symbol-dce", False)):
        found = partition_reason("", refused, Comparison(Verdict.DIFFERENT, "given  accepted\nwanted refused: x"))
        assert (found is not None) is accepted
