"""`sdy-per-instruction-partitioning` makes of random programs what the reference makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .local_programs import FAMILIES
from .per_instruction_compare import NAME, PER_INSTRUCTION, reason
from .reference_process import ReferenceProcess
from .reshard_compare import Comparison, Verdict, ours

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older references lack the pass")
PER_FAMILY = 30


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    found, wrong = PER_INSTRUCTION.compare(family, range(PER_FAMILY), reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > PER_FAMILY / 3, found


@pytest.mark.parametrize(("old", "new"), [("handle = 1", "handle = 2"), ('manual_axes{"a"', 'manual_axes{"b"')])
def test_a_wrong_answer_is_found(old: str, new: str, reference: ReferenceProcess) -> None:
    def wrong(text: str, pipeline: str) -> str:
        return ours(text, pipeline).replace(old, new)

    _, differences = replace(PER_INSTRUCTION, pipelines=lambda seed: [NAME]).compare(
        "single", range(8), reference, wrong
    )
    assert any(NAME in difference for difference in differences)


def test_reasons_explain_every_line_that_differs() -> None:
    def found(module: str, *lines: str) -> str | None:
        return reason(module, Comparison(Verdict.DIFFERENT, "\n".join(["--- wanted", "+++ given", *lines])))

    sine, select = '+  %1 = "stablehlo.sine"(%0)', '+  %2 = "stablehlo.select"(%1) : (tensor<i1>, tensor<f32>)'
    add, first = (
        f'"stablehlo.reduce"(%0) ({{\n^bb0(%1):\n{body}' for body in ('"stablehlo.add"(%1)', '"stablehlo.return"(%1)')
    )
    reduced = '+  %2 = "stablehlo.all_reduce"(%1)'
    assert found(add, select) == "initial value counts once"
    assert found(add, select, sine) is None
    assert found("", select) is None
    assert found(first, select, reduced) == "reduced by its own body"
    assert found(add, select, reduced) is None
    gather, exchange = '"stablehlo.all_gather"(%0)', '"stablehlo.all_to_all"(%0)'
    assert found('"sdy.reshard"', f"- {exchange}", f"+ {gather}") == "collectives that would move padding"
    assert found('"sdy.reshard"', f"- {gather}", f"+ {exchange}") is None
    assert reason("", Comparison(Verdict.SAME)) is None
    assert reason("", Comparison(Verdict.DIFFERENT, "given  accepted\nwanted refused: no")) is None
