from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from jaxlib.mlir import passmanager

from pyshardy.errors import NotationError, UsageError
from pyshardy.ir.context import make_context
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.options import format_options, make_pass
from pyshardy.passes.pipelines import (
    IMPORT,
    PIPELINES,
    is_pass_or_pipeline,
    named_passes,
    parse_option_text,
    parse_pipeline,
    propagation_passes,
)
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the pipelines of older versions have other passes in another order"
)
DEDUP = "dedup-functions-fully=true"


def written(passes: list[Pass]) -> list[str]:
    """Passes as text, with the options that are not the default."""
    return [pass_.name + (f"{{{format_options(pass_)}}}" if format_options(pass_) else "") for pass_ in passes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
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
        ("sdy-import-pipeline", IMPORT.split(",")),
        ("sdy-import-pipeline{dedup-functions-fully=false}", IMPORT.split(",")),
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
        ("builtin.module()", "the name of a pass", 15),
        ("builtin.module(func.func())", "the name of a pass", 25),
        ("symbol-dce symbol-dce", "','", 10),
        ("symbol-dce)", "','", 10),
        ("symbol-dce(symbol-dce)", "','", 10),
        ("builtin.module(symbol-dce))", "','", 26),
        ("symbol-dce;symbol-dce", "','", 10),
        ("builtin.module", "'('", 14),
        ("builtin.module symbol-dce", "'('", 14),
        ("func.func{}(symbol-dce)", "'('", 9),
        ("builtin.module(symbol-dce", "')'", 25),
        ("builtin.module(func.func(symbol-dce)", "')'", 36),
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
        ("canonicalize{top-down}", "reading pass options: got 'top-down', needed name=value"),
        (
            "sdy-basic-propagate{keep-sharding-rules = true}",
            "reading pass options: got 'keep-sharding-rules', needed name=value",
        ),
        ("sdy-import-pipeline{x=1}", "reading pipeline options: got 'x', needed dedup-functions-fully"),
        (
            f"sdy-propagation-pipeline{{{DEDUP} x=1}}",
            "reading pipeline options: got 'x', needed dedup-functions-fully",
        ),
        (
            "sdy-propagation-pipeline{dedup-functions-fully=yes}",
            "reading the pipeline option dedup-functions-fully: got 'yes', needed true or false",
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
    ],
)
def test_option_text(text: str, options: dict[str, str]) -> None:
    assert parse_option_text(text) == options


@pytest.mark.parametrize("text", ["a", "a=1 b", "a = 1"])
def test_options_need_values(text: str) -> None:
    with pytest.raises(UsageError, match=r"^reading pass options: got '[ab]', needed name=value$"):
        parse_option_text(text)


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


def test_the_propagation_pipeline_with_options_of_its_own() -> None:
    plain = parse_pipeline("sdy-propagation-pipeline")
    assert propagation_passes(PropagateOptions()) == plain
    options = PropagateOptions(
        strategy=StrategyOption.BASIC, op_priorities=False, user_priorities=False, conservative=True, trace=True
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


LEFT_OUT_PASSES = {"sdy-save-module"}
"""Passes that write the module to a file when a folder is given."""
LEFT_OUT_OPTIONS = {
    "debug-propagation-edge-sharding": "false",
    "debug-sharding-origins": "false",
    "sink-debug-propagation-edge-sharding": "false",
    "sink-debug-sharding-origins": "false",
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
    return [pass_ for pass_ in found if pass_.name not in LEFT_OUT_PASSES]


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
    theirs = reference_passes(pipeline)
    ours = parse_pipeline(pipeline)
    assert [(pass_.name, pass_.anchor) for pass_ in ours] == [(pass_.name, pass_.anchor) for pass_ in theirs]
    assert ours == [without_left_out(pass_) for pass_ in theirs]


@needs_newest
@pytest.mark.parametrize("options", ["", f"{{{DEDUP}}}"])
def test_the_propagation_pipeline_ends_with_the_export_pipeline_of_the_reference(options: str) -> None:
    *theirs, last = [without_left_out(pass_) for pass_ in reference_passes("sdy-export-pipeline")]
    assert last.name == "sdy-inline-meshes"  # the propagation pipeline keeps the meshes
    assert parse_pipeline(f"sdy-propagation-pipeline{options}")[-len(theirs) :] == theirs
