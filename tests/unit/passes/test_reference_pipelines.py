"""Textual pipelines consist of the passes of the reference.

Source: docs/semantics/export.md#steps
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import NamedTuple

import pytest
from jaxlib.mlir import passmanager

from pyshardy.errors import UsageError
from pyshardy.ir.context import make_context
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.common.save_module import Dump
from pyshardy.passes.export_options import ExportOptions
from pyshardy.passes.export_steps import export_steps
from pyshardy.passes.options import format_value, make_pass, read_options
from pyshardy.passes.pipelines import (
    parse_option_text,
    parse_pipeline,
)
from pyshardy.passes.table import pass_class

from .pipeline_texts import DEDUP, EXPORT_OPTIONS, LAST_STAGE, STAGES, needs_newest


class ReferencePass(NamedTuple):
    """One pass of a pipeline of the reference."""

    name: str
    anchor: Anchor
    options: dict[str, str]


SAVE = "sdy-save-module"
"""A pass that the reference has even where no folder is given, and that does nothing then."""
LEFT_OUT_OPTIONS = {
    "module-dump-directory": "",
    "cse-between-iterations": "false",
    "max-iterations": "10",
    "max-num-rewrites": "-1",
    "region-simplify": "aggressive",
    "test-convergence": "false",
}
"""Options of the reference that pyshardy lacks, with the value that the pipelines have for each."""
_PASS = re.compile(r"(func\.func\()?([\w-]+)(?:\{((?:[^{}]|\{[^{}]*\})*)\})?\)?(?:,|$)")


def reference_passes(pipeline: str) -> list[ReferencePass]:
    """The passes that a pipeline of the reference consists of."""
    with make_context():
        text = str(passmanager.PassManager.parse(f"builtin.module({pipeline})"))
    inside = text.removeprefix("builtin.module(").removesuffix(")")
    found, position = [], 0
    while position < len(inside):
        match = _PASS.match(inside, position)
        assert match is not None, inside[position:]
        nested, name, options = match.groups()
        anchor = Anchor.FUNCTION if nested else Anchor.MODULE
        found.append(ReferencePass(name, anchor, parse_option_text(options or "")))
        position = match.end()
    return found


def without_left_out(pass_: ReferencePass) -> Pass:
    """The pass with the options that pyshardy has; the others must have the value they are expected to have."""
    theirs = dict(pass_.options)
    for option, value in LEFT_OUT_OPTIONS.items():
        assert theirs.pop(option, value) == value
    return make_pass(pass_class(pass_.name), theirs)


@needs_newest
@pytest.mark.parametrize(
    "pipeline",
    [
        "sdy-import-pipeline",
        f"sdy-import-pipeline{{{DEDUP}}}",
        "sdy-propagation-pipeline",
        f"sdy-propagation-pipeline{{{DEDUP}}}",
        "sdy-propagation-pipeline{dedup-functions-fully=1}",
    ],
)
def test_pipelines_consist_of_the_passes_of_the_reference(pipeline: str) -> None:
    theirs = [pass_ for pass_ in reference_passes(pipeline) if pass_.name != SAVE]
    ours = parse_pipeline(pipeline)
    assert [(pass_.name, pass_.anchor) for pass_ in ours] == [(pass_.name, pass_.anchor) for pass_ in theirs]
    assert ours == [without_left_out(pass_) for pass_ in theirs]


@pytest.mark.parametrize("options", ["", f"{{{DEDUP}}}"])
def test_the_propagation_pipeline_ends_with_the_export_pipeline(options: str) -> None:
    *export, last = parse_pipeline("sdy-export-pipeline")
    assert last.name == "sdy-inline-meshes"  # the propagation pipeline keeps the meshes
    assert parse_pipeline(f"sdy-propagation-pipeline{options}")[-len(export) :] == export


EXPORTS = [
    "",
    "replica-count=2 partition-count=4",
    "replica-count=-2",
    "avoid-export-for-partitioning=true",
    "avoid-export-for-partitioning=true dump-sharding-origins=true keep-sharding-rules=true",
    f"avoid-export-for-partitioning=true {LAST_STAGE}",
    "avoid-export-for-partitioning=true enable-insert-explicit-collectives=true",
    "avoid-export-for-partitioning=true update-non-divisible-input-output-shardings=false",
    "enable-insert-explicit-collectives=true",
    "enable-insert-explicit-collectives=true remove-all-gather-reduce-scatter-for-cmv1=true",
    "enable-insert-explicit-collectives=true mark-partial-result-with-unreduced-axes=true",
    "remove-all-gather-reduce-scatter-for-cmv1=true",
    "mark-partial-result-with-unreduced-axes=true",
    "partitioner-stage=unspecified",
    "per-instruction-partitioning-filter=x",
    "rng-bit-generator-unsafe=false",
    "keep-sharding-rules=true",
    "dump-sharding-origins=true",
    "dump-propagation-edges=true",
    "dump-sharding-origins=true dump-propagation-edges=true keep-sharding-rules=1 inline-meshes=0",
    "avoid-reshards-on-calls=true",
    "update-non-divisible-input-output-shardings=false",
    "inline-meshes=false",
    *(f"partitioner-stage={stage}" for stage in STAGES[1:]),
    f"enable-insert-explicit-collectives=true remove-all-gather-reduce-scatter-for-cmv1=true {LAST_STAGE}",
    f"{LAST_STAGE} replica-count=2 partition-count=4 rng-bit-generator-unsafe=false",
    f"{LAST_STAGE} mark-partial-result-with-unreduced-axes=true dump-propagation-edges=true",
    f"{LAST_STAGE} enable-per-instruction-partitioning=true",
    f"{LAST_STAGE} enable-per-instruction-partitioning=true per-instruction-partitioning-filter=abc replica-count=3 "
    "rng-bit-generator-unsafe=false enable-insert-explicit-collectives=true",
]
"""Options of the export pipeline."""


def option_values(options: dict[str, str]) -> dict[str, str]:
    """Options as they are compared: without those that pyshardy lacks, which must have the expected value."""
    left_out = {**LEFT_OUT_OPTIONS, "keep-redundant-reshards": "false"}
    assert all(value == left_out[name] for name, value in options.items() if name in left_out)
    return {name: value for name, value in options.items() if name not in left_out}


@needs_newest
@pytest.mark.parametrize("options", EXPORTS)
def test_the_export_pipeline_has_the_steps_of_the_reference(options: str) -> None:
    theirs = reference_passes(f"sdy-export-pipeline{{{options}}}")
    steps = list(export_steps(read_options(ExportOptions, parse_option_text(options))))
    assert [SAVE if isinstance(step, Dump) else step.name for step in steps] == [pass_.name for pass_ in theirs]
    for step, pass_ in zip(steps, theirs):
        if not isinstance(step, Dump):
            assert step == make_pass(pass_class(pass_.name), option_values(pass_.options))


@needs_newest
@pytest.mark.parametrize("options", EXPORTS)
def test_the_export_pipeline_consists_of_the_passes_of_the_reference(options: str) -> None:
    theirs = reference_passes(f"sdy-export-pipeline{{{options}}}")
    ours = parse_pipeline(f"sdy-export-pipeline{{{options} dump-directory=somewhere}}")
    assert [(pass_.name, pass_.anchor) for pass_ in ours] == [(pass_.name, pass_.anchor) for pass_ in theirs]
    without_dumps = parse_pipeline(f"sdy-export-pipeline{{{options}}}")
    assert without_dumps == [pass_ for pass_ in ours if pass_.name != SAVE]
    assert without_dumps == [without_left_out(pass_) for pass_ in theirs if pass_.name != SAVE]


@needs_newest
def test_the_export_pipeline_has_the_options_of_the_reference() -> None:
    assert [field.name.replace("_", "-") for field in fields(ExportOptions)] == EXPORT_OPTIONS
    for option in EXPORT_OPTIONS:
        default = format_value(getattr(ExportOptions(), option.replace("-", "_")))
        given = reference_passes(f"sdy-export-pipeline{{{option}={default}}}")
        assert given == reference_passes("sdy-export-pipeline")


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_partitioning_op_by_op_needs_the_last_stage(stage: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pipeline(f"sdy-export-pipeline{{enable-per-instruction-partitioning=true partitioner-stage={stage}}}")
    assert str(caught.value) == (
        "reading the options of sdy-export-pipeline: got enable-per-instruction-partitioning with "
        f"partitioner-stage={stage}, needed {LAST_STAGE}"
    )
