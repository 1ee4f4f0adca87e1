"""`sdy-convert-global-to-local` makes of random programs what the reference makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .local_compare import LOCAL, NAME, OPTIONS, listed_reason, pipeline
from .local_programs import FAMILIES, local_input
from .reference_process import ReferenceProcess
from .reshard_compare import ours

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older references lack the passes before this one")
PER_FAMILY = 60


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_the_reference(family: str, reference: ReferenceProcess) -> None:
    found, wrong = LOCAL.compare(family, range(PER_FAMILY), reference)
    assert not wrong, "\n\n".join(wrong)
    assert found["same"] > PER_FAMILY / 3, found


def test_programs_have_collectives(reference: ReferenceProcess) -> None:
    """The programs need what the pass has special treatment for."""
    texts = [local_input(family, seed, reference) or "" for family in FAMILIES for seed in range(40)]
    for name in (
        "sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute", "sdy.all_reduce", "stablehlo.gather",
        "stablehlo.scatter", "stablehlo.convolution", "stablehlo.reduce_window", "sdy.manual_computation", "func.call",
    ):  # fmt: skip
        assert any(f'"{name}"' in text for text in texts), name


@pytest.mark.parametrize(
    ("old", "new"), [("handle = 1", "handle = 2"), ("<[[0, ", "<[[1, "), ("axis_ref<name", "axis<name")]
)
def test_a_wrong_answer_is_found(old: str, new: str, reference: ReferenceProcess) -> None:
    def wrong(text: str, pipeline: str) -> str:
        return ours(text, pipeline).replace(old, new)

    passes = pipeline("enable-rgv3=false" if old.startswith("<") else "")
    _, differences = replace(LOCAL, pipelines=lambda seed: [passes]).compare("single", range(12), reference, wrong)
    assert differences


def test_reasons_are_for_what_they_name() -> None:
    refused = (
        "given  refused: -:1:1: 'stablehlo.custom_call' op is sharded, and it is unknown how to run it on shards\n"
    )
    assert listed_reason(f"{refused}wanted accepted") == "unknown op"
    assert listed_reason("given  refused: -:1:1: 'stablehlo.add' op is wrong\nwanted accepted") is None
    assert listed_reason("given  accepted\nwanted refused: -:1:1: no") is None
    lines = ['-    %3 = "stablehlo.pad"(%2) loc(#loc1)', '+    %4 = "stablehlo.all_gather"(%2) loc(#loc1)']
    assert listed_reason("\n".join(["--- wanted", "+++ given", *lines])) == "pad that moves elements"
    assert listed_reason("\n".join(["--- wanted", "+++ given", *lines[::-1]])) == "pad that moves elements"
    assert listed_reason("\n".join(["--- wanted", "+++ given", lines[0], lines[0].replace("-", "+", 1)])) is None


def test_options_are_those_of_the_pass() -> None:
    assert NAME == "sdy-convert-global-to-local"
    assert any("enable-rgv3=false" in option for option in OPTIONS)
