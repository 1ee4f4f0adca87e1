from __future__ import annotations

import re
from dataclasses import fields
from typing import NamedTuple

import pytest
from jaxlib.mlir import passmanager

from pyshardy.errors import NotationError, UsageError
from pyshardy.ir.context import make_context
from pyshardy.ir.module import Module
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.common.save_module import Dump
from pyshardy.passes.export_options import ExportOptions
from pyshardy.passes.export_steps import export_steps
from pyshardy.passes.flow import (
    for_module,
    partition_ending,
    partition_passes,
    propagation_ending,
    propagation_passes,
    sharding_stages,
)
from pyshardy.passes.options import format_options, format_value, make_pass, read_options
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipelines import (
    PIPELINES,
    is_pass_or_pipeline,
    named_passes,
    parse_option_text,
    parse_pipeline,
)
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import PropagateOptions, StrategyOption, View
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the pipelines of older versions have other passes in another order"
)
DEDUP = "dedup-functions-fully=true"
IMPORT = [
    "symbol-dce",
    "sdy-lift-inlined-meshes",
    "sdy-remove-size-one-axes",
    "sdy-propagate-sharding-from-func-to-call",
    "sdy-constant-or-scalar-splitter",
    "symbol-dce",
    "sdy-manual-axes-cleanup",
    "sdy-add-data-flow-edges",
]


STAGES = [
    "unspecified",
    "resolve-permutation-factors",
    "reshard-to-collectives",
    "optimize-collectives",
    "pad-for-divisibility",
    "resolve-single-device-sharding",
    "convert-global-to-local",
]
LAST_STAGE = f"partitioner-stage={STAGES[-1]}"
EXPORT_OPTIONS = [
    "replica-count",
    "partition-count",
    "dump-directory",
    "avoid-export-for-partitioning",
    "enable-insert-explicit-collectives",
    "remove-all-gather-reduce-scatter-for-cmv1",
    "mark-partial-result-with-unreduced-axes",
    "partitioner-stage",
    "enable-per-instruction-partitioning",
    "per-instruction-partitioning-filter",
    "rng-bit-generator-unsafe",
    "keep-sharding-rules",
    "dump-sharding-origins",
    "dump-propagation-edges",
    "avoid-reshards-on-calls",
    "update-non-divisible-input-output-shardings",
    "inline-meshes",
]


def written(passes: list[Pass]) -> list[str]:
    """Passes as text, with the options that are not the default."""
    return [pass_.name + (f"{{{format_options(pass_)}}}" if format_options(pass_) else "") for pass_ in passes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("builtin.module()", []),
        (" builtin.module( ) ", []),
        ("func.func()", []),
        ("builtin.module(),symbol-dce", ["symbol-dce"]),
        ("any(symbol-dce)", ["symbol-dce"]),
        ("builtin.module(any(sdy-drop-sharding-rules),symbol-dce)", ["sdy-drop-sharding-rules", "symbol-dce"]),
        ("any(func.func(sdy-drop-sharding-rules),symbol-dce)", ["sdy-drop-sharding-rules", "symbol-dce"]),
        ("builtin.module(func.func(canonicalize),symbol-dce)", ["canonicalize", "symbol-dce"]),
        ("symbol-dce", ["symbol-dce"]),
        (" symbol-dce\n", ["symbol-dce"]),
        ("symbol-dce{}", ["symbol-dce"]),
        ("symbol-dce , sdy-pre-order-funcs", ["symbol-dce", "sdy-pre-order-funcs"]),
        ("symbol-dce,symbol-dce", ["symbol-dce", "symbol-dce"]),
        ("builtin.module(symbol-dce)", ["symbol-dce"]),
        ("builtin.module( symbol-dce ) ", ["symbol-dce"]),
        (
            "builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules,sdy-sink-data-flow-edges),sdy-inline-meshes)",
            ["symbol-dce", "sdy-drop-sharding-rules", "sdy-sink-data-flow-edges", "sdy-inline-meshes"],
        ),
        (
            "builtin.module(symbol-dce),builtin.module(func.func(sdy-drop-sharding-rules))",
            ["symbol-dce", "sdy-drop-sharding-rules"],
        ),
        (
            "sdy-basic-propagate{keep-sharding-rules=true  conservative-propagation=1}",
            ["sdy-basic-propagate{keep-sharding-rules=true conservative-propagation=true}"],
        ),
        ("sdy-basic-propagate {keep-sharding-rules=true}", ["sdy-basic-propagate{keep-sharding-rules=true}"]),
        (
            "sdy-basic-propagate{keep-sharding-rules=true keep-sharding-rules=false}",
            ["sdy-basic-propagate"],
        ),
        (
            "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),symbol-dce",
            ["sdy-insert-explicit-reshards{enable-full-version=true}", "symbol-dce"],
        ),
        (
            "canonicalize{enable-patterns={sdy-collective,sdy-reshard}}",
            ["canonicalize{enable-patterns=sdy-collective,sdy-reshard}"],
        ),
        (
            "builtin.module(canonicalize{ enable-patterns={sdy-collective, sdy-reshard} }, symbol-dce)",
            ["canonicalize{enable-patterns=sdy-collective,sdy-reshard}", "symbol-dce"],
        ),
        ("sdy-basic-propagate{keep-sharding-rules}", ["sdy-basic-propagate{keep-sharding-rules=true}"]),
        ("sdy-basic-propagate{{keep-sharding-rules}}", ["sdy-basic-propagate{keep-sharding-rules=true}"]),
        ("sdy-basic-propagate{keep-sharding-rules='true'}", ["sdy-basic-propagate{keep-sharding-rules=true}"]),
        ("sdy-import-pipeline", IMPORT),
        ("sdy-import-pipeline{dedup-functions-fully=false}", IMPORT),
    ],
)
def test_pipelines_are_read(text: str, expected: list[str]) -> None:
    assert written(parse_pipeline(text)) == expected


@pytest.mark.parametrize(
    ("text", "needed", "caret"),
    [
        (",symbol-dce", "the name of a pass", 0),
        ("{}", "the name of a pass", 0),
        ("symbol-dce,", "the name of a pass", 11),
        ("symbol-dce, ", "the name of a pass", 11),
        ("symbol-dce,,symbol-dce", "the name of a pass", 11),
        ("builtin.module(func.func())", "the name of a pass", 25),
        ("builtin.module(),", "the name of a pass", 17),
        ("builtin.module()symbol-dce", "','", 16),
        ("symbol-dce symbol-dce", "','", 10),
        ("symbol-dce)", "','", 10),
        ("symbol-dce(symbol-dce)", "','", 10),
        ("builtin.module(symbol-dce))", "','", 26),
        ("symbol-dce;symbol-dce", "','", 10),
        ("builtin.module", "'('", 14),
        ("builtin.module symbol-dce", "'('", 14),
        ("func.func{}(symbol-dce)", "'('", 9),
        ("builtin.module(symbol-dce", "')'", 25),
        ("builtin.module(func.func(canonicalize)", "')'", 38),
        (
            "builtin.module(func.func(symbol-dce))",
            "a pass on functions inside func.func; symbol-dce runs on the module",
            25,
        ),
        (
            "func.func(sdy-close-shardings)",
            "a pass on functions inside func.func; sdy-close-shardings runs on the module",
            10,
        ),
        ("builtin.module(any(symbol-dce))", "a pass on functions inside any; symbol-dce runs on the module", 19),
        ("any(func.func(symbol-dce))", "a pass on functions inside func.func; symbol-dce runs on the module", 14),
        (
            "builtin.module(func.func(sdy-import-pipeline))",
            "a pass on functions inside func.func; sdy-import-pipeline runs on the module",
            25,
        ),
        ("builtin.module(builtin.module(symbol-dce))", "no builtin.module inside builtin.module", 15),
        ("func.func(func.func(canonicalize))", "no func.func inside func.func", 10),
        ("func.func(any(canonicalize))", "no any inside func.func", 10),
        ("builtin.module(", "')'", 15),
        ("symbol-dce{", "'}' behind the options", 10),
        ("canonicalize{enable-patterns={a}", "'}' behind the options", 12),
    ],
)
def test_what_is_no_pipeline_is_refused(text: str, needed: str, caret: int) -> None:
    with pytest.raises(NotationError) as caught:
        parse_pipeline(text)
    shown = text.rstrip()
    assert str(caught.value) == f"reading a pass pipeline: needed {needed}\n  {shown}\n  {' ' * caret}^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", f"looking for a pass: got 'nothing', needed one of {', '.join(PASSES)}"),
        ("symbol-dce{x=1}", "reading the options of symbol-dce: got 'x', needed no options"),
        ("symbol-dce{top-down}", "reading the options of symbol-dce: got 'top-down', needed no options"),
        (
            "sdy-aggressive-propagate{propagation-strategy}",
            "reading option propagation-strategy of sdy-aggressive-propagate: got 'true', needed one of basic, "
            "aggressive, basic-then-aggressive",
        ),
        ("sdy-basic-propagate{keep-sharding-rules = true}", "reading pass options: got '=', needed name=value"),
        ("sdy-import-pipeline{x=1}", "reading pipeline options: got 'x', needed dedup-functions-fully"),
        (
            f"sdy-propagation-pipeline{{{DEDUP} x=1}}",
            "reading pipeline options: got 'x', needed dedup-functions-fully",
        ),
        (
            "sdy-propagation-pipeline{dedup-functions-fully=yes}",
            "reading the pipeline option dedup-functions-fully: got 'yes', needed true or false",
        ),
        (
            "sdy-export-pipeline{dedup-functions-fully=true}",
            "reading the options of sdy-export-pipeline: got 'dedup-functions-fully', needed one of "
            + ", ".join(EXPORT_OPTIONS),
        ),
        (
            "sdy-export-pipeline{inline-meshes=yes}",
            "reading option inline-meshes of sdy-export-pipeline: got 'yes', needed true or false",
        ),
        (
            "sdy-export-pipeline{replica-count=two}",
            "reading option replica-count of sdy-export-pipeline: got 'two', needed an integer",
        ),
        (
            "sdy-export-pipeline{partitioner-stage=everything}",
            "reading option partitioner-stage of sdy-export-pipeline: got 'everything', needed one of "
            + ", ".join(STAGES),
        ),
    ],
)
def test_unknown_names_and_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pipeline(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("  ", {}),
        ("a=1", {"a": "1"}),
        ("a=", {"a": ""}),
        ("a={x,y}\tb=x=y", {"a": "x,y", "b": "x=y"}),
        ("a=1 a=2", {"a": "2"}),
        ("a", {"a": "true"}),
        (" a\tb=1\nc ", {"a": "true", "b": "1", "c": "true"}),
        ("a a=false", {"a": "false"}),
        ("a={x, y} b={ x , y }", {"a": "x,y", "b": "x,y"}),
        ("a={{x},{y}} b={}", {"a": "x,y", "b": ""}),
        ("a={x y}", {"a": "x y"}),
        ("a='x, y' b=\"x = 'y'\"", {"a": "x, y", "b": "x = 'y'"}),
        ("a=' { '", {"a": "{"}),
        ("a=x,y", {"a": "x,y"}),
        ("{a}", {"a": "true"}),
        ("{a=1 b} c", {"a": "1", "b": "true", "c": "true"}),
    ],
)
def test_option_text(text: str, options: dict[str, str]) -> None:
    assert parse_option_text(text) == options


@pytest.mark.parametrize(("text", "part"), [("=1", "=1"), ("a = 1", "="), ("a=1 =", "="), ("{=1}", "=1")])
def test_options_need_names(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=rf"^reading pass options: got '{part}', needed name=value$"):
        parse_option_text(text)


PIPELINE_TEXTS = [
    "builtin.module()", "builtin.module(symbol-dce)", "builtin.module (symbol-dce {})", "any(symbol-dce)",
    "builtin.module(any(canonicalize{enable-patterns=a}))", "builtin.module(symbol-dce ,symbol-dce )",
    "builtin.module(canonicalize{top-down enable-patterns=a})", "builtin.module(canonicalize{enable-patterns={a, b}})",
    "builtin.module(canonicalize{enable-patterns={{a},{b}}})", "builtin.module(canonicalize{enable-patterns='a,b'})",
    "builtin.module(canonicalize{enable-patterns=a, b})", "builtin.module(canonicalize{enable-patterns=a = b})",
    "builtin.module(symbol-dce,)", "builtin.module(,symbol-dce)", "builtin.module(func.func())", "builtin.module",
    "builtin.module(symbol-dce{x=1})", "builtin.module(symbol-dce{x})", "builtin.module(symbol-dce",
]  # fmt: skip


@pytest.mark.parametrize("text", PIPELINE_TEXTS)
def test_pipelines_are_read_as_mlir_reads_them(text: str) -> None:
    try:
        with make_context():
            theirs = re.search(r"enable-patterns=\{(.*?)\}", str(passmanager.PassManager.parse(text)))
    except (ValueError, RuntimeError):
        with pytest.raises((NotationError, UsageError)):
            parse_pipeline(text)
    else:
        ours = re.search(r"enable-patterns=(.*?)\}", ",".join(written(parse_pipeline(text))))
        assert (ours and ours[1].split()[0]) == (theirs and theirs[1])


@pytest.mark.parametrize("name", [*PASSES, *PIPELINES])
def test_known_names(name: str) -> None:
    assert is_pass_or_pipeline(name)
    found = [pass_.name for pass_ in named_passes(name, {})]
    assert found == [name] if name in PASSES else len(found) > 1


@pytest.mark.parametrize("name", ["", "o", "sdy", "func.func", "builtin.module"])
def test_unknown_names(name: str) -> None:
    assert not is_pass_or_pipeline(name)


def test_reading_options_does_not_use_them_up() -> None:
    options = {"dedup-functions-fully": "true"}
    first = named_passes("sdy-import-pipeline", options)
    assert options == {"dedup-functions-fully": "true"}
    assert named_passes("sdy-import-pipeline", options) == first


def test_the_propagation_pipeline_with_batching_and_with_deduplication() -> None:
    plain = written(propagation_passes(PropagateOptions(view=View.STABLEHLO)))
    batching = written(propagation_passes(PropagateOptions(view=View.STABLEHLO, explicit_gather_scatter_batching=True)))
    splitter = plain.index("sdy-constant-or-scalar-splitter")
    assert batching == [*plain[: splitter + 1], "sdy-explicit-gather-scatter-batching", *plain[splitter + 1 :]]
    dedup = propagation_passes(PropagateOptions(view=View.STABLEHLO, dedup_functions_fully=True))
    assert dedup == parse_pipeline("sdy-propagation-pipeline{dedup-functions-fully=true}")


def test_the_propagation_pipeline_with_options_of_its_own() -> None:
    plain = parse_pipeline("sdy-propagation-pipeline")
    assert propagation_passes(PropagateOptions(view=View.STABLEHLO)) == plain
    options = PropagateOptions(
        view=View.STABLEHLO,
        strategy=StrategyOption.BASIC,
        op_priorities=False,
        user_priorities=False,
        conservative=True,
        trace=True,
    )
    changed = propagation_passes(options)
    assert [pass_ for pass_ in changed if pass_ in plain] == [
        pass_ for pass_ in plain if pass_.name != "sdy-user-priority-propagate"
    ]
    (propagate,) = (pass_ for pass_ in changed if pass_ not in plain)
    assert [pass_.name for pass_ in changed].index(propagate.name) == [pass_.name for pass_ in plain].index(
        "sdy-user-priority-propagate"
    )
    assert propagate.name == "sdy-op-priority-propagate"
    assert set(format_options(propagate).split()) == {
        "keep-sharding-rules=true",
        "conservative-propagation=true",
        "trace=true",
        "propagation-strategy=basic",
        "run-op-priority-propagation=false",
    }


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


ABS = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.abs %a : tensor<8xf32> return %0 : tensor<8xf32> }"
CALL = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"""


@pytest.mark.parametrize(
    ("body", "is_hlo", "view"),
    [
        (ABS, False, View.XLA),
        (CALL, False, View.XLA),
        (ABS, True, View.STABLEHLO),
        (CALL, True, View.HLO),
    ],
)
def test_what_was_hlo_is_not_rewritten_again(body: str, is_hlo: bool, view: View) -> None:
    attributes = "attributes {mhlo.cross_program_prefetches = []}" if is_hlo else ""
    root = Module.parse(f"module @m {attributes} {{ {body} }}").root
    assert for_module(PropagateOptions(), root).view is view
    for given in (View.HLO, View.STABLEHLO):
        assert for_module(PropagateOptions(view=given), root).view is given
    names = [pass_.name for pass_ in propagation_passes(for_module(PropagateOptions(), root))]
    assert ("pyshardy-simplify" in names, "pyshardy-inline-and-order" in names) == (
        view is View.XLA,
        view is not View.STABLEHLO,
    )


def test_views_that_there_are_not() -> None:
    with pytest.raises(UsageError) as caught:
        PropagateOptions().with_view("tpu")
    assert str(caught.value) == "choosing the view of a program: got 'tpu', needed one of xla, hlo, stablehlo"


def test_passes_are_made_once() -> None:
    first, again = (propagation_passes(PropagateOptions()) for _ in range(2))
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert again is not first


@pytest.mark.parametrize("view", View)
def test_both_ways_part_where_shardings_are_final(view: View) -> None:
    """`propagate` and `partition` have the passes up to there in common, and nothing behind is a propagation."""
    options = PropagateOptions(view=view)
    stages = sharding_stages(options)
    assert [stage.name for stage in stages] == ["import", "propagate", "export"]
    common = [pass_ for stage in stages for pass_ in stage.passes]
    assert common[-1].name == "sdy-close-shardings"
    assert [pass_.name for pass_ in stages[1].passes] == ["sdy-user-priority-propagate"]
    ending, other = propagation_ending(options), partition_ending(options, PartitionOptions())
    assert not any(pass_.name.endswith("-propagate") for pass_ in (*ending, *other))
    assert propagation_passes(options) == [*common, *ending]
    assert partition_passes(options, PartitionOptions()) == [*common, *other]
