from __future__ import annotations

import pytest

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.passes.partitioning.per_instruction_partitioning import Selection, candidates, target_function
from pyshardy.passes.pipeline import run_pipeline

NAME = "sdy-per-instruction-partitioning"
MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
T, X = "tensor<7xf32>", 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>'


def module(body: str) -> Module:
    return Module.parse(
        f'{MESH}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, %r: {T}) -> {T} {{\n{body}\n}}'
    )


def names(text: str) -> list[list[str]]:
    (main,) = functions(module(text).root)
    return [[op.name for op in ops] for ops in candidates(main)]


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("", Selection()),
        (" , ", Selection()),
        ("selectLow=2,selectHigh=5", Selection(low=2, high=5)),
        ("selectHigh=many,selectLow=-1", Selection()),
        ("function=f, dot ,what=3", Selection(function="f", names=("dot", "what=3"))),
    ],
)
def test_reading_a_selection(text: str, selection: Selection) -> None:
    assert Selection.parse(text) == selection


def test_number_and_name_must_both_be_wanted() -> None:
    selection = Selection(low=1, high=2, names=("dot", "tanh"))
    wanted = [(0, "stablehlo.dot"), (1, "stablehlo.dot"), (2, "stablehlo.tanh"), (2, "stablehlo.add"), (3, "tanh")]
    assert [selection.has(*one) for one in wanted] == [False, True, True, False, False]


def test_the_function_is_the_named_the_only_the_main_or_the_first_public_one() -> None:
    one, private = "func.func @{}() {{ return }}", "func.func private @{}() {{ return }}"
    for text, name, expected in (
        (private.format("f"), None, "f"),
        (one.format("f") + one.format("main"), None, "main"),
        (private.format("f") + one.format("g") + one.format("h"), None, "g"),
        (private.format("f") + one.format("main"), "f", "f"),
    ):
        assert target_function(Module.parse(text).root, name).attrs["sym_name"] == expected


def test_no_function_is_an_error() -> None:
    with pytest.raises(PassError, match="it has none"):
        target_function(Module.parse("").root, None)


def test_what_moves_or_marks_nothing_is_no_candidate() -> None:
    assert names(
        f"""%0 = stablehlo.tanh %x {{{X}}} : {T}
        %1 = sdy.sharding_constraint %0 <@mesh, [{{"x"}}]> : {T}
        %2 = stablehlo.custom_call @Sharding(%1) {{{X}}} : ({T}) -> {T}
        %3 = stablehlo.tanh %r : {T}
        %4 = sdy.reshard %2 <@mesh, [{{}}]> : {T}
        return %4 : {T}"""
    ) == [["stablehlo.tanh"], ["sdy.reshard"]]


def test_the_padded_value_goes_from_op_to_op() -> None:
    given = module(f"%0 = stablehlo.tanh %x {{{X}}} : {T}\n%1 = stablehlo.sine %0 {{{X}}} : {T}\nreturn %1 : {T}")
    result = run_pipeline(given, NAME)
    result.verify()
    (main,) = functions(result.root)
    first, second = [op for op in main.region.block if op.name == "sdy.manual_computation"]
    assert second.operands == first.results
    assert first.result.type.shape == (8,)
    assert [op.name for op in main.region.block].count("stablehlo.pad") == 1


def test_the_given_module_stays_and_the_result_is_the_same_every_time() -> None:
    given = module(f"%0 = stablehlo.tanh %x {{{X}}} : {T}\nreturn %0 : {T}")
    before = given.text()
    assert run_pipeline(given, NAME).text() == run_pipeline(given, NAME).text() != before
    assert given.text() == before


def test_partitioned_twice_is_partitioned_once() -> None:
    once = run_pipeline(module(f"%0 = sdy.reshard %x <@mesh, [{{}}]> : {T}\nreturn %0 : {T}"), NAME)
    again = run_pipeline(once, f"{NAME}{{filter=manual_computation}}")
    assert again.text() == once.text()
