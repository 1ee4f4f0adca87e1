"""`sdy-export-pipeline` up to its last stages makes of random programs what the reference makes of them."""

from __future__ import annotations

from collections import Counter

import pytest

from support.reference import jaxlib_version

from .pass_programs import LATE_STAGES, raw_program
from .per_instruction_compare import reason
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Runner, Verdict, compare, ours

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older references have no stages")
SEEDS = range(40)
LAST = LATE_STAGES[-1]
PIPELINES = [
    f"sdy-export-pipeline{{{options}}}"
    for options in (
        *LATE_STAGES,
        f"{LAST} enable-per-instruction-partitioning=true",
        f"{LAST} enable-per-instruction-partitioning=true per-instruction-partitioning-filter=selectHigh=3",
        f"{LAST} replica-count=8 inline-meshes=false rng-bit-generator-unsafe=false",
    )
]


@pytest.fixture(scope="module")
def programs(reference: ReferenceProcess) -> list[str]:
    """Random programs whose shardings have propagated; those that the reference takes."""
    found = []
    for seed in SEEDS:
        try:
            found.append(reference.run(raw_program(seed), "sdy-propagation-pipeline"))
        except (Refused, Died):
            continue
    return found


def differences(
    programs: list[str], pipeline: str, reference: ReferenceProcess, candidate: Runner = ours
) -> tuple[Counter[str], list[str]]:
    """Numbers by outcome, and the differences that are not listed."""
    found, wrong = Counter[str](), []
    for text in programs:
        outcome = compare(text, pipeline, reference.run, candidate)
        known = reason(text, outcome)
        found[known or outcome.verdict.value] += 1
        if outcome.verdict is Verdict.DIFFERENT and known is None:
            wrong.append(f"{pipeline}\n{outcome.details[:3000]}")
    return found, wrong


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_same_as_the_reference(pipeline: str, programs: list[str], reference: ReferenceProcess) -> None:
    found, wrong = differences(programs, pipeline, reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > len(programs) / 2, found


def test_a_wrong_answer_is_found(programs: list[str], reference: ReferenceProcess) -> None:
    def wrong(text: str, pipeline: str) -> str:
        return ours(text, pipeline).replace("handle = 1,", "handle = 2,")

    assert differences(programs[:12], PIPELINES[-2], reference, wrong)[1]
