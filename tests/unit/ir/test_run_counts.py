"""How often ops run."""

from __future__ import annotations

from pyshardy.ir.module import Module
from pyshardy.ir.run_counts import Runs, counted_ops, run_counts

N, B = "tensor<i32>", "tensor<i1>"


def constant(name: str, number: int) -> str:
    return f"{name} = stablehlo.constant dense<{number}> : {N}\n"


def loop(rounds: str, body: str, check: str = "") -> str:
    return f"""%z = stablehlo.constant dense<0> : {N}
    %w = stablehlo.while(%i = %z) : {N} cond {{
      {check}
      %p = stablehlo.compare LT, %i, {rounds} : ({N}, {N}) -> {B}
      stablehlo.return %p : {B}
    }} do {{
      {body}
      %j = stablehlo.add %i, %one : {N}
      stablehlo.return %j : {N}
    }}"""


def mark(name: str, cost: int = 1) -> str:
    return f"{name} = stablehlo.abs %one {{cost = {cost} : i64}} : {N}\n"


def function(name: str, body: str, arguments: str = f"%n: {N}") -> str:
    return f"func.func {'private ' if name != 'main' else ''}@{name}({arguments}) {{ {constant('%one', 1)} {body} return }}\n"


def counts(text: str) -> list[Runs]:
    """The counts of the marked ops, in program order."""
    root = Module.parse(text).root
    found = run_counts(root, lambda op: op.name == "stablehlo.abs", lambda op: int(op.attrs["cost"]))
    return [found[op] for op in counted_ops(root, found)]


def inner(text: str) -> str:
    """With names of its own."""
    for name in ("%z", "%w", "%i", "%p", "%j"):
        text = text.replace(f"{name} ", f"{name}b ").replace(f"{name})", f"{name}b)").replace(f"{name},", f"{name}b,")
    return text


def test_once() -> None:
    assert counts(function("main", mark("%a"))) == [Runs(1, True, False, True)]


def test_rounds_and_checks() -> None:
    body = constant("%n", 6) + loop("%n", mark("%a"), mark("%b"))
    assert counts(function("main", body, "")) == [Runs(7, True, True), Runs(6, True, True)]


def test_loops_in_loops_multiply() -> None:
    body = constant("%n", 6) + loop("%n", inner(loop("%n", mark("%a"))))
    assert counts(function("main", body, "")) == [Runs(36, True, True)]


def test_a_loop_of_unknown_length_counts_as_one_round() -> None:
    body = constant("%m", 6) + loop("%n", inner(loop("%m", mark("%a"))))
    assert counts(function("main", body)) == [Runs(6, False, True)]


def test_a_loop_that_makes_no_round_is_left_out() -> None:
    assert counts(function("main", constant("%n", 0) + loop("%n", mark("%a")), "")) == []


CALLS = function(
    "main",
    constant("%three", 3)
    + constant("%four", 4)
    + f"func.call @outer(%three) : ({N}) -> ()\nfunc.call @outer(%four) : ({N}) -> ()\n"
    + f"func.call @outer(%four) : ({N}) -> ()",
    "",
)


def test_every_call_counts_with_its_own_numbers() -> None:
    outer = function("outer", f"%m = stablehlo.add %n, %one : {N}\nfunc.call @inner(%m) : ({N}) -> ()")
    inside = function("inner", loop("%n", mark("%a")))
    assert counts(CALLS + outer + inside) == [Runs(4 + 5 + 5, True, True)]


def test_a_call_with_an_unknown_number_makes_it_a_lower_bound() -> None:
    outer = function("outer", loop("%n", mark("%a")))
    text = CALLS.replace("@main()", f"@main(%u: {N})").replace("@outer(%three)", "@outer(%u)")
    assert counts(text + outer) == [Runs(1 + 4 + 4, False, True)]


def test_what_is_never_called_is_left_out() -> None:
    assert counts(function("main", "") + function("other", mark("%a"))) == []


def branches(*bodies: str) -> str:
    regions = ", ".join(f"{{ {body} stablehlo.return %one : {N} }}" for body in bodies)
    return f'%c{len(bodies)} = "stablehlo.case"(%one) ({regions}) : ({N}) -> {N}\n'


def test_the_dearest_branch_counts() -> None:
    body = branches(mark("%a", 5), mark("%b", 2) + mark("%d", 4), mark("%a", 6))
    assert [runs.is_counted for runs in counts(function("main", body))] == [False, True, True, False]


def test_the_dearest_branch_is_that_of_most_rounds() -> None:
    body = constant("%m", 6) + branches(mark("%a", 5), inner(loop("%m", mark("%b", 1))))
    assert counts(function("main", body)) == [Runs(1, True, False, False), Runs(6, True, True, True)]


def test_what_runs_elsewhere_too_counts_there() -> None:
    call = f"func.call @other(%one) : ({N}) -> ()\n"
    text = function("main", call + branches(mark("%a", 5), call)) + function("other", mark("%a"))
    assert counts(text) == [Runs(1, True, False, True), Runs(1, True, False, True)]


def test_many_calls_of_calls() -> None:
    chain = "".join(
        function(f"f{i}", f"func.call @f{i + 1}(%n) : ({N}) -> ()\nfunc.call @f{i + 1}(%n) : ({N}) -> ()")
        for i in range(40)
    )
    main = function("main", f"func.call @f0(%one) : ({N}) -> ()", "")
    assert counts(main + chain + function("f40", mark("%a"))) == [Runs(2**40, True, False, True)]
