"""Textual pipelines: what is read, and what is refused."""

from __future__ import annotations

import re

import pytest
from jaxlib.mlir import passmanager

from pyshardy.errors import NotationError, UsageError
from pyshardy.ir.context import make_context
from pyshardy.passes.pipelines import (
    PIPELINES,
    is_pass_or_pipeline,
    named_passes,
    parse_option_text,
    parse_pipeline,
)
from pyshardy.passes.table import PASSES

from .pipeline_texts import DEDUP, EXPORT_OPTIONS, IMPORT, STAGES, written


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
