from __future__ import annotations

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.functions import RULE, arg_sharding, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import get_sharding
from pyshardy.propagation.program import Program

from . import data_flow_programs as programs
from .data_flow_programs import T
from .reading import args, find, function, read

X, Y = (parse_sharding(f"<@m, [{dim}]>") for dim in ('{"x"}', '{"y"}'))
SMALL = f"""func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}, %b: {T})
    -> ({T}, {T} {{sdy.sharding = #sdy.sharding<@m, [{{"y"}}]>}}) {{
  %0 = stablehlo.add %a, %b {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{?}}]>]>}} : {T}
  %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : {T}
  return %1, %a : {T}, {T}
}}"""


def built(text: str) -> tuple[Op, Program, ProgramIndex]:
    root = read(programs.MESHES + text)
    return root, *build_program(root, OpSpecReader())


def test_shardings_are_written_back_where_they_changed() -> None:
    root, program, index = built(SMALL)
    after = list(program.shardings)
    after[1], after[2], after[4] = X, Y, Y
    index.store(after, program.shardings)
    main = function(root, "main")
    assert [arg_sharding(main, number) for number in range(2)] == [X, X]
    assert [result_sharding(main, number) for number in range(2)] == [Y, Y]
    assert get_sharding(find(main, "stablehlo.add").result) is Y
    assert get_sharding(find(main, "sdy.propagation_barrier").result) is None


def test_nothing_is_written_back_where_nothing_changed() -> None:
    block = programs.program(programs.CASE)
    root = block.parent_op
    assert root is not None
    program, index = build_program(root, OpSpecReader())
    index.store(program.shardings, program.shardings)
    assert "sdy.sharding" not in find(root, "stablehlo.case").attrs
    index.store([None] * len(program.values), program.shardings)
    assert all(get_sharding(arg) is None for arg in args(function(root, "main")))


@pytest.mark.parametrize("missing", [0, 1])
def test_as_many_shardings_as_values_are_needed(missing: int) -> None:
    _, program, index = built(SMALL)
    shardings = [list(program.shardings), list(program.shardings)]
    del shardings[missing][-1]
    with pytest.raises(AssertionError, match="not as many shardings as values"):
        index.store(*shardings)


def test_rules_are_written_onto_the_ops_that_have_one_of_their_own() -> None:
    root, _, index = built(SMALL)
    index.store_rules()
    assert [(op.name, RULE in op.attrs) for op in index.ops] == [
        ("func.func", False),
        ("stablehlo.add", True),
        ("sdy.propagation_barrier", False),
        ("func.return", False),
    ]
    assert str(find(root, "stablehlo.add").attrs[RULE]) == "<([i], [i])->([i]) {i=8}>"
