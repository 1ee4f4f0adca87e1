from __future__ import annotations

import pytest

from pyshardy.ir.callers import Callers
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.revisits import Revisits

from . import data_flow_programs as programs
from .data_flow_programs import T, program
from .reading import args, find, function, read


def notified(root: Op, value: Value) -> list[str]:
    """The ops that a new sharding of a value concerns: their names without the dialect, numbered if there are several."""
    ops = list(walk(root))
    labels: list[str] = []
    for op in ops:
        name = op.name.partition(".")[2]
        if op.name == "func.func":
            name = f"@{op.attrs['sym_name']}"
        count = sum(label.partition(" ")[0] == name for label in labels)
        labels.append(f"{name} {count}" if count else name)
    found = Revisits(Callers(root), {op: number for number, op in enumerate(ops)}).of(value)
    return [labels[number] for number in found]


def root_of(function: Op) -> Op:
    root = function.parent_op
    assert root is not None
    return root


def test_the_owner_comes_first_and_then_the_users_in_use_list_order() -> None:
    main = program(f"%0 = stablehlo.sine %a : {T}\n%1 = stablehlo.add %0, %a : {T}\n%2 = stablehlo.cosine %0 : {T}")
    root = root_of(main)
    assert notified(root, args(main)[0]) == ["@main", "add", "sine"]
    assert notified(root, find(main, "stablehlo.sine").result) == ["sine", "cosine", "add"]
    assert notified(root, find(main, "stablehlo.cosine").result) == ["cosine"]


def test_an_op_is_named_once_per_use() -> None:
    main = program(f"%0 = stablehlo.add %a, %a : {T}")
    assert notified(root_of(main), args(main)[0]) == ["@main", "add", "add"]


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (programs.WHILE, ["@main", "data_flow_edge"], ["@main", "data_flow_edge 1"]),
        (programs.BARRIER, ["@main", "data_flow_edge"], ["@main", "data_flow_edge 1"]),
        (programs.IF, ["@main", "data_flow_edge"], ["@main", "data_flow_edge"]),
        (
            programs.CASE,
            ["@main", "data_flow_edge"],
            ["@main", "data_flow_edge 1", "data_flow_edge", "data_flow_edge 1"],
        ),
        (programs.NAMED, ["@main", "named_computation"], ["@main", "named_computation"]),
        (programs.MANUAL, ["@main", "manual_computation"], ["@main", "manual_computation"]),
    ],
)
def test_edges_stand_for_the_ops_that_use_a_source(text: str, first: list[str], second: list[str]) -> None:
    main = program(text, edges=True)
    assert [notified(root_of(main), arg) for arg in args(main)[:2]] == [first, second]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (programs.WHILE, ["@main", "while"]),
        (programs.BARRIER, ["@main", "optimization_barrier"]),
        (programs.IF, ["@main", "if"]),
        (programs.NAMED, ["@main", "named_computation"]),
    ],
)
def test_without_edges_the_op_itself_is_looked_at(text: str, names: list[str]) -> None:
    main = program(text)
    assert notified(root_of(main), args(main)[0]) == names


def test_a_new_sharding_of_an_edge_concerns_the_users_of_all_targets_of_a_loop() -> None:
    main = program(
        programs.WHILE.replace("cond {", f"cond {{\n%c = stablehlo.sine %i : {T}").replace(
            "do {", f"do {{\n%d = stablehlo.cosine %i : {T}"
        )
        + f"\n%e = stablehlo.tanh %0#0 : {T}",
        edges=True,
    )
    edge = find(main, "sdy.data_flow_edge")
    assert notified(root_of(main), edge.result) == ["sine", "data_flow_edge 1", "cosine", "data_flow_edge", "tanh"]


def test_an_edge_inside_a_computation_reaches_its_terminator() -> None:
    main = program(programs.NAMED, edges=True)
    edges = [find(main, "sdy.data_flow_edge", number) for number in range(3)]
    assert notified(root_of(main), edges[1].result) == ["data_flow_edge 1", "data_flow_edge 2"]
    assert notified(root_of(main), edges[0].result) == ["data_flow_edge"]


def test_the_condition_of_a_loop_concerns_the_loop() -> None:
    main = program(programs.WHILE, edges=True)
    assert notified(root_of(main), args(main)[3]) == ["@main", "while"]


CALLS = f"""func.func private @f(%x: {T}, %y: {T}) -> ({T}, {T}) {{
  %0 = stablehlo.sine %x : {T}
  return %0, %y : {T}, {T}
}}
func.func @main(%a: {T}, %b: {T}) -> {T} {{
  %0:2 = func.call @f(%a, %b) : ({T}, {T}) -> ({T}, {T})
  %1 = stablehlo.cosine %0#0 : {T}
  %2 = stablehlo.tanh %0#1 : {T}
  return %1 : {T}
}}"""


def test_a_call_is_crossed_to_the_users_of_the_argument() -> None:
    root = read(CALLS)
    assert notified(root, args(function(root, "main"))[0]) == ["@main", "sine"]


def test_a_return_is_crossed_to_the_users_of_the_call() -> None:
    root = read(CALLS)
    assert notified(root, find(root, "stablehlo.sine").result) == ["sine", "cosine"]
    assert notified(root, args(function(root, "f"))[1]) == ["@f", "tanh"]


def test_an_argument_that_is_returned_is_crossed_twice() -> None:
    root = read(CALLS)
    assert notified(root, args(function(root, "main"))[1]) == ["@main", "tanh"]


def test_what_the_main_function_returns_concerns_nothing_else() -> None:
    root = read(CALLS)
    assert notified(root, find(root, "stablehlo.cosine").result) == ["cosine"]


def test_calls_of_declarations_are_not_crossed() -> None:
    root = read(f"func.func private @f({T}) func.func @main(%a: {T}) {{ func.call @f(%a) : ({T}) -> () return }}")
    assert notified(root, args(function(root, "main"))[0]) == ["@main"]


def test_a_value_that_is_crossed_to_again_is_not_followed_again() -> None:
    root = read(f"""func.func private @f(%x: {T}) -> {T} {{
      %0 = stablehlo.sine %x : {T}
      return %x : {T}
    }}
    func.func @main(%a: {T}) {{
      %0 = func.call @f(%a) : ({T}) -> {T}
      %1 = func.call @f(%0) : ({T}) -> {T}
      %2 = stablehlo.tanh %1 : {T}
      return
    }}""")
    assert notified(root, args(function(root, "main"))[0]) == ["@main", "tanh", "sine"]
