"""Real programs: after the propagation pipeline, the module is the reference's, op by op, attribute by attribute."""

from __future__ import annotations

import pytest

from programs import PROGRAMS
from support.programs import load_example, module_text
from support.reference import jaxlib_version

from .compare import Outcome, compare, difference
from .reshard_programs import PROPAGATE_AND_EXPORT

BEFORE_0_12 = dict.fromkeys(
    ("callbacks", "manual_collectives"),
    "before jaxlib 0.12 results of main without a sharding do not take that of the value. "
    "Source: docs/semantics/export.md#older-versions-of-jaxlib",
)
PIPELINES = ("sdy-propagation-pipeline", "sdy-propagation-pipeline{dedup-functions-fully=true}")


@pytest.mark.slow_but_for("mlp_training-sdy-propagation-pipeline")
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str, pipeline: str) -> None:
    program = PROGRAMS[name]
    reason = program.skip() or (jaxlib_version() < (0, 12) and BEFORE_0_12.get(name))
    if reason:
        pytest.skip(reason)
    assert compare(module_text(program), pipeline, debug_info=True) == ""


@pytest.mark.skipif(jaxlib_version() < (0, 12), reason="before jaxlib 0.12 there are no such options")
@pytest.mark.parametrize("pipeline", PROPAGATE_AND_EXPORT)
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_with_collectives(name: str, pipeline: str) -> None:
    program = PROGRAMS[name]
    reason = program.skip()
    if reason:
        pytest.skip(reason)
    assert compare(module_text(program), pipeline, debug_info=True) == ""


@pytest.mark.parametrize("layers", [1, 4, 24])
def test_transformer(layers: int) -> None:
    example = load_example("transformer")
    text = example.lower(example.Config(layers=layers)).as_text()
    assert compare(text, "sdy-propagation-pipeline") == ""


def test_a_wrong_answer_is_noticed() -> None:
    right = Outcome('"builtin.module"() ({\n}) : () -> ()')
    assert difference(right, right) == ""
    assert difference(right, Outcome(right.text + " ")) != ""
    assert difference(right, Outcome(None, "refused")) != ""
    assert difference(Outcome(None, "refused"), right) != ""
    assert jaxlib_version() >= (0, 10)
