"""`sdy-per-instruction-partitioning` makes of random programs what the reference makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.reference import jaxlib_version

from .local_programs import FAMILIES
from .per_instruction_compare import NAME, compare_family, reason
from .reference_process import ReferenceProcess
from .reshard_compare import Comparison, Verdict, ours

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older references lack the pass")
PER_FAMILY = 30


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceProcess]:
    with ReferenceProcess() as process:
        yield process


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    found, wrong = compare_family(family, range(PER_FAMILY), reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > PER_FAMILY / 3, found


@pytest.mark.parametrize(("old", "new"), [("handle = 1", "handle = 2"), ('manual_axes{"a"', 'manual_axes{"b"')])
def test_a_wrong_answer_is_found(old: str, new: str, reference: ReferenceProcess) -> None:
    def wrong(text: str, pipeline: str) -> str:
        return ours(text, pipeline).replace(old, new)

    _, differences = compare_family("single", range(8), reference, [""], wrong)
    assert any(NAME in difference for difference in differences)


def test_reasons_are_for_what_they_name() -> None:
    def found(*lines: str) -> str | None:
        return reason("stablehlo.gather", Comparison(Verdict.DIFFERENT, "\n".join(["--- wanted", "+++ given", *lines])))

    reduce, select = '%1 = "stablehlo.reduce"(%0)', '%2 = "stablehlo.select"(%1) : (tensor<i1>, tensor<f32>)'
    assert found(f"-  {reduce}", f"+  {select}", f"+  {reduce}") == "initial value counts once"
    assert found(f"-  {reduce}", f"+  {reduce}") is None
    gather, exchange = '%1 = "stablehlo.all_gather"(%0)', '%1 = "stablehlo.all_to_all"(%0)'
    assert found(f"-  {exchange}", f"+  {gather}") == "collectives that would move padding"
    assert found(f"-  {gather}", f"+  {exchange}") is None
    assert reason("", Comparison(Verdict.SAME)) is None
    assert reason("", Comparison(Verdict.DIFFERENT, "given  accepted\nwanted refused: no")) is None
