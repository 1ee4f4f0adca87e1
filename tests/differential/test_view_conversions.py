"""XLA's view beside XLA's own converters: what they make of StableHLO on the way to HLO and back."""

from __future__ import annotations

import pytest

from pyshardy.ir.context import make_context
from pyshardy.ir.hlo import from_hlo, to_hlo
from pyshardy.ir.module import Module
from pyshardy.ir.op_lists import ops_in
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.passes.pipelines import parse_pipeline
from support.reference import jaxlib_version

from .conversion_cases import CASES, text_of
from .random_programs import Features, random_program
from .xla_compare import difference

PLAIN = Features(manual=0.0, constraints=0.0, groups=0.0, annotated=0.0)
"""What StableHLO has: the converters know Shardy's dialect, which this is not about."""


def converted(text: str) -> Module:
    """A module as XLA hands it on, with calls inlined and ops in XLA's order where there were calls."""
    with make_context(True):
        found = Module.parse(str(from_hlo(to_hlo(text))), allow_unregistered_dialects=True)
    has_calls = "call @" in found.text()
    return run_pipeline(found, "pyshardy-inline-and-order,symbol-dce" if has_calls else "symbol-dce")


def ours(text: str) -> Module:
    return run_pipeline(Module.parse(text), "pyshardy-xla-view-pipeline,symbol-dce")


def compare(text: str) -> str:
    """How the two differ, or nothing."""
    return difference(ours(text), converted(text).text())


CHANGED = {"fold xor of integers"}
"""What the converters of jaxlib 0.10 leave as it is; the view is that of the newest XLA everywhere."""


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    if name in CHANGED and jaxlib_version() < (0, 12):
        pytest.skip("jaxlib 0.12 changed what this becomes; pyshardy gives the new form everywhere")
    assert _without_captured(compare(text_of(name))) == ""


@pytest.mark.parametrize("start", range(0, 120, 10))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + 10):
        program = Module.parse(random_program(seed, PLAIN))
        text = run_pipeline(program, "sdy-drop-sharding-and-mesh").text()
        assert _without_captured(compare(text)) == "", seed


def _without_captured(found: str) -> str:
    """Nothing where the state of a loop differs alone: the converters leave in it what the loop takes from outside.

    XLA's import takes that out again, which `test_xla_view.py` compares.
    """
    return "" if "stablehlo.while" in found else found


def test_exponentials_of_complex_numbers_are_not_written_out() -> None:
    """A known difference: docs/differences.md."""
    text = "func.func @main(%a: T) -> T { %0 = stablehlo.exponential %a : T return %0 : T }"
    text = text.replace("T", "tensor<4xcomplex<f32>>")
    assert [op.name for op in ops_in(ours(text).root)].count("stablehlo.exponential") == 1
    assert [op.name for op in ops_in(converted(text).root)].count("stablehlo.complex") == 1


def test_sums_of_constant_truth_values_are_true_where_one_of_them_is() -> None:
    """A known difference: docs/differences.md."""
    text = "func.func @main() -> T { %c = stablehlo.constant dense<[true, false]> : T "
    text += "%0 = stablehlo.add %c, %c : T return %0 : T }"
    text = text.replace("T", "tensor<2xi1>")
    assert "dense<[true, false]>" in ours(text).text()
    assert "dense<false>" in converted(text).text()


def test_a_wrong_answer_is_noticed() -> None:
    text = text_of("broadcasts")
    assert (
        difference(
            ours(text.replace("dims = [1, 2]", "dims = [0, 2]").replace("tensor<2x4x8xf32>", "tensor<4x2x8xf32>")),
            converted(text).text(),
        )
        != ""
    )
    assert difference(Module.parse(text), converted(text).text()) != ""
    assert len(parse_pipeline("pyshardy-xla-view-pipeline")) > 5
