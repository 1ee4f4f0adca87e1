"""All-reduces of partial sums that are added."""

from __future__ import annotations

from pyshardy.costing.counting import count_collectives
from pyshardy.costing.partial_sums import with_added_partial_sums
from pyshardy.costing.program import CostProgram, walk_ops

from .build import described

TYPE = "tensor<64x64xf32>"


def all_reduce(result: str, operand: str, groups: str = "[[0, 1]]") -> str:
    return f"""%{result} = "stablehlo.all_reduce"(%{operand}) <{{replica_groups = dense<{groups}> : tensor<{"1x2" if groups == "[[0, 1]]" else "2x1"}xi64>}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }}) : ({TYPE}) -> {TYPE}
    """


def program(body: str, results: str) -> CostProgram:
    types = ", ".join([TYPE] * len(results.split(", ")))
    arguments = f"%x: {TYPE}, %y: {TYPE}, %z: {TYPE}"
    return described(f"func.func @main({arguments}) -> ({types}) {{ {body} return {results} : {types} }}")


def test_a_sum_of_three_all_reduces_is_one() -> None:
    body = all_reduce("a", "x") + all_reduce("b", "y") + all_reduce("c", "z")
    body += f"%d = stablehlo.add %a, %b : {TYPE}\n%e = stablehlo.add %d, %c : {TYPE}\n"
    given = program(body, "%e")
    found = with_added_partial_sums(given)
    assert (len(count_collectives(given)), len(count_collectives(found))) == (3, 1)
    made = set(found.body.arguments)
    for op in walk_ops(found.body):
        assert made.issuperset(op.operands), "an op reads what is not computed yet"
        made.update(op.results)
    assert made.issuperset(found.body.results)


def test_a_result_that_others_read_stays() -> None:
    body = all_reduce("a", "x") + all_reduce("b", "y") + f"%d = stablehlo.add %a, %b : {TYPE}\n"
    given = program(body, "%a, %d")
    assert with_added_partial_sums(given) is given


def test_sums_over_other_devices_stay() -> None:
    body = all_reduce("a", "x") + all_reduce("b", "y", "[[0], [1]]") + f"%d = stablehlo.add %a, %b : {TYPE}\n"
    given = program(body, "%d")
    assert with_added_partial_sums(given) is given
