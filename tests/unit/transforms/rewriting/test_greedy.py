from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.transforms.rewriting.greedy import GreedyDriver, Pattern, Rewriter

T = "tensor<8xf32>"
MESH = 'sdy.mesh @m = <["x"=2]>\n'


class Driven:
    """A function on which the driver ran."""

    def __init__(
        self,
        body: str,
        patterns: Mapping[str, Sequence[Pattern]] | None = None,
        *,
        top_down: bool = False,
        returned: str = "%r",
    ) -> None:
        module = Module.parse(f"{MESH}func.func @main(%a: {T}) -> {T} {{\n{body}\n  return {returned} : {T}\n}}")
        self.root = module.copy_root()
        with module.context:
            GreedyDriver(patterns or {}, module.attrs, top_down).run(self.root)
        self.module = module.with_root(self.root)

    def names(self) -> list[str]:
        return [op.name.partition(".")[2] for op in walk(self.root)][3:]

    def ops(self, name: str) -> list[Op]:
        return [op for op in walk(self.root) if op.name == name]


def chain(*names: str, first: str = "%a") -> str:
    """Ops one after the other; the last gives `%r`."""
    values = [first, *(f"%{number}" for number in range(len(names) - 1)), "%r"]
    return "\n".join(f"  {new} = stablehlo.{name} {old} : {T}" for name, old, new in zip(names, values, values[1:]))


def test_without_patterns_and_dead_ops_nothing_changes() -> None:
    assert Driven(chain("sine", "cosine")).names() == ["sine", "cosine", "return"]


@pytest.mark.parametrize("top_down", [False, True])
def test_dead_ops_go_with_what_only_they_used(top_down: bool) -> None:
    body = f"  %d = stablehlo.abs %a : {T}\n  %e = stablehlo.add %d, %d : {T}\n  %f = stablehlo.tan %e : {T}\n"
    assert Driven(body + chain("sine"), top_down=top_down).names() == ["sine", "return"]


@pytest.mark.parametrize("top_down", [False, True])
def test_ops_with_effects_stay(top_down: bool) -> None:
    body = f"  %d = stablehlo.custom_call @f(%a) {{has_side_effect = true}} : ({T}) -> {T}\n"
    assert Driven(body + chain("sine"), top_down=top_down).names() == ["custom_call", "sine", "return"]


@pytest.mark.parametrize(("top_down", "order"), [(False, "tan cosine sine"), (True, "sine cosine tan")])
def test_the_order_in_which_ops_are_tried(top_down: bool, order: str) -> None:
    tried: list[str] = []

    def note(op: Op, rewriter: Rewriter) -> bool:
        tried.append(op.name.partition(".")[2])
        return False

    patterns = {f"stablehlo.{name}": [note] for name in ("sine", "cosine", "tan")}
    Driven(chain("sine", "cosine", "tan"), patterns, top_down=top_down)
    assert tried == order.split()


def test_patterns_are_tried_in_order_until_one_applies() -> None:
    tried: list[int] = []

    def pattern(number: int, applies: bool) -> Pattern:
        def run(op: Op, rewriter: Rewriter) -> bool:
            tried.append(number)
            if applies:
                rewriter.replace(op, op.operands[0])
            return applies

        return run

    driven = Driven(chain("sine"), {"stablehlo.sine": [pattern(1, False), pattern(2, True), pattern(3, True)]})
    assert tried == [1, 2]
    assert driven.names() == ["return"]


def halve(op: Op, rewriter: Rewriter) -> bool:
    """Take a pair of the same ops away."""
    inner = op.operands[0].defining_op
    if inner is None or inner.name != op.name:
        return False
    rewriter.replace(op, inner.operands[0])
    return True


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize(("count", "left"), [(1, 1), (2, 0), (3, 1), (4, 0), (7, 1)])
def test_rewrites_go_on_until_none_applies(count: int, left: int, top_down: bool) -> None:
    driven = Driven(chain(*["negate"] * count), {"stablehlo.negate": [halve]}, top_down=top_down)
    assert driven.names() == ["negate"] * left + ["return"]
    driven.module.verify()


def test_what_a_rewrite_inserts_is_tried_as_well() -> None:
    def to(name: str) -> Pattern:
        def run(op: Op, rewriter: Rewriter) -> bool:
            new = Op(f"stablehlo.{name}", op.operands, [op.result.type], location=op.location)
            rewriter.replace(op, rewriter.insert(new, op).result)
            return True

        return run

    patterns = {"stablehlo.sine": [to("cosine")], "stablehlo.cosine": [to("abs")]}
    assert Driven(chain("sine", "negate"), patterns).names() == ["abs", "negate", "return"]


def test_users_of_what_is_replaced_are_tried_again() -> None:
    tries: list[str] = []

    def note(op: Op, rewriter: Rewriter) -> bool:
        definition = op.operands[0].defining_op
        tries.append("argument" if definition is None else definition.name.partition(".")[2])
        return False

    def drop(op: Op, rewriter: Rewriter) -> bool:
        rewriter.replace(op, op.operands[0])
        return True

    Driven(chain("sine", "abs"), {"stablehlo.abs": [note], "stablehlo.sine": [drop]})
    assert tries[:2] == ["sine", "argument"]


def test_a_rewrite_that_breaks_a_sharding_is_refused_at_its_op() -> None:
    def fail(op: Op, rewriter: Rewriter) -> bool:
        raise InvalidShardingError("joining axes", got='"x" twice')

    with pytest.raises(PassError) as caught:
        Driven(chain("sine", "abs"), {"stablehlo.sine": [fail]})
    assert caught.value.diagnostic.message == "'stablehlo.sine' op joining axes: got \"x\" twice"


ONE, TWO = (f"stablehlo.constant dense<{value}.0> : {T}" for value in (1, 2))


def test_equal_constants_become_one_at_the_start() -> None:
    body = (
        f"  %0 = stablehlo.sine %a : {T}\n  %1 = {ONE}\n  %2 = {TWO}\n  %3 = {ONE}\n"
        f"  %4 = stablehlo.add %1, %3 : {T}\n  %5 = stablehlo.add %4, %2 : {T}\n  %r = stablehlo.add %5, %0 : {T}"
    )
    driven = Driven(body)
    assert driven.names() == ["constant", "constant", "sine", "add", "add", "add", "return"]
    left, right = driven.ops("stablehlo.add")[0].operands
    assert left is right
    assert str(left.defining_op.location) == "loc(unknown)"  # type: ignore[union-attr]
    driven.module.verify()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ONE, TWO),
        (ONE, "stablehlo.constant dense<1.0> : tensor<4xf32>"),
        ("stablehlo.constant dense<1> : tensor<8xi32>", "stablehlo.constant dense<1> : tensor<8xui32>"),
        (ONE, f"chlo.constant dense<1.0> : {T}"),
    ],
)
def test_different_constants_stay_apart(first: str, second: str) -> None:
    body = f'  %1 = {first}\n  %2 = {second}\n  "func.call"(%1, %2) {{callee = @g}} : () -> ()\n'
    types = [text.rpartition(" : ")[2] for text in (first, second)]
    body = body.replace("() -> ()", f"({', '.join(types)}) -> ()")
    module = Module.parse(f"func.func private @g({', '.join(types)})\nfunc.func @main() {{\n{body}  return\n}}")
    root = module.copy_root()
    with module.context:
        GreedyDriver({}, module.attrs, False).run(root)
    assert sum(op.name.endswith(".constant") for op in walk(root)) == 2


def test_constants_leave_inner_regions_but_not_computations() -> None:
    body = f"""  %p = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%p) ({{
    %1 = {ONE}
    stablehlo.return %1 : {T}
  }}, {{
    stablehlo.return %a : {T}
  }}) : (tensor<i1>) -> {T}
  %r = sdy.named_computation<"n">(%0) (%b: {T}) {{
    %2 = stablehlo.add %b, %b : {T}
    %3 = {ONE}
    %4 = stablehlo.add %2, %3 : {T}
    sdy.return %4 : {T}
  }} : ({T}) -> {T}"""
    driven = Driven(body)
    outer, inner = (
        [op.name.partition(".")[2] for op in block]
        for block in (
            driven.ops("func.func")[0].region.block,
            driven.ops("sdy.named_computation")[0].region.block,
        )
    )
    assert outer == ["constant", "constant", "if", "named_computation", "return"]
    assert inner == ["constant", "add", "add", "return"]
    driven.module.verify()


def test_running_again_changes_nothing() -> None:
    body = f"  %0 = {ONE}\n  %1 = {TWO}\n  %2 = stablehlo.add %0, %1 : {T}\n  %r = stablehlo.negate %2 : {T}"
    driven = Driven(body, {"stablehlo.negate": [halve]})
    before = driven.module.text(debug_info=True)
    with driven.module.context:
        GreedyDriver({"stablehlo.negate": [halve]}, driven.module.attrs, False).run(driven.root)
    assert driven.module.with_root(driven.root).text(debug_info=True) == before
