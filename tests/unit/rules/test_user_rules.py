from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyshardy.errors import InvalidModuleError, InvalidRuleError, NotationError, UsageError
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule
from pyshardy.rules.table import is_known, rule_of
from pyshardy.rules.user_rules import USER_RULES, register_rule, unregister_rule

from .probe import rule, spec

KERNEL = spec("@my_kernel", "4x8 -> 4")
KERNEL_RULE = Rule((4, 8), [[[0], [1]]], [[[0]]], is_custom=True)


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Registers rules that are gone after the test."""
    yield register_rule
    for name in list(USER_RULES):
        unregister_rule(name)


@pytest.fixture
def kernel() -> Iterator[str]:
    register_rule("@my_kernel", KERNEL_RULE)
    yield "@my_kernel"
    unregister_rule("@my_kernel")


def test_a_rule_for_a_custom_call(kernel: str) -> None:
    assert rule_of(KERNEL) is KERNEL_RULE
    assert is_known(KERNEL)
    assert rule(kernel, "4x8 -> 4", conservative=True) == str(KERNEL_RULE)[1:-1]


def test_unregistering_forgets(kernel: str) -> None:
    assert rule_of(KERNEL) is KERNEL_RULE
    unregister_rule(kernel)
    assert rule_of(KERNEL) is None
    assert not is_known(KERNEL)
    register_rule(kernel, KERNEL_RULE)


def test_a_function_for_an_op_goes_before_the_built_in_rule() -> None:
    register_rule("stablehlo.abs", lambda spec, conservative: None if conservative else KERNEL_RULE)
    try:
        assert rule("abs", "4x8 -> 4") == str(KERNEL_RULE)[1:-1]
        assert rule("abs", "4x8 -> 4", conservative=True) is None
    finally:
        unregister_rule("stablehlo.abs")
    assert rule("abs", "4 -> 4") == "([i])->([i]) {i=4}"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ("4x8x2 -> 4", r"got operands of ranks \[2\], needed ranks \[3\]"),
        ("4x8 -> ()", r"got results of ranks \[1\], needed ranks \[0\]"),
        ("4x8, 4 -> 4", r"got operands of ranks \[2\], needed ranks \[2, 1\]"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(kernel: str, shapes: str, message: str) -> None:
    with pytest.raises(InvalidRuleError, match=message):
        rule(kernel, shapes)


def test_one_rule_per_name(kernel: str) -> None:
    with pytest.raises(UsageError, match=r"try: unregister_rule\('@my_kernel'\) first"):
        register_rule(kernel, KERNEL_RULE)


def test_unregistering_what_is_not_there(kernel: str) -> None:
    with pytest.raises(UsageError, match="unregistering the sharding rule of @other: .* needed one of @my_kernel"):
        unregister_rule("@other")


# Notations


def test_a_notation(register: Callable[..., None]) -> None:
    register("@my_kernel", "i k -> i", reduction="k")
    assert rule("@my_kernel", "4x8 -> 4") == "([i, j])->([i]) {i=4, j=8} reduction={j}, custom"
    assert rule("@my_kernel", "5x2 -> 5") == "([i, j])->([i]) {i=5, j=2} reduction={j}, custom"


def test_a_notation_that_does_not_fit_says_which_op(register: Callable[..., None]) -> None:
    register("@my_kernel", "i k -> i", reduction="k")
    with pytest.raises(InvalidRuleError) as caught:
        rule("@my_kernel", "4x8x2 -> 4")
    assert str(caught.value) == (
        "using the sharding rule 'i k -> i', for @my_kernel: got operand 0 of shape 4x8x2, needed rank 2\n"
        "  i k -> i\n"
        "  ^\n"
        "  at stablehlo.custom_call @my_kernel(4x8x2) -> (4)"
    )


def test_a_wrong_notation_is_refused_at_once() -> None:
    with pytest.raises(NotationError, match="at least two names"):
        register_rule("@my_kernel", "(i) -> i")
    assert not USER_RULES


def test_options_go_with_notations(register: Callable[..., None]) -> None:
    with pytest.raises(UsageError, match="for @my_kernel: got reduction, sizes, needed these only with a notation"):
        register("@my_kernel", KERNEL_RULE, reduction="k", sizes={"k": 2})


# Functions


def test_a_function_may_return_a_notation(register: Callable[..., None]) -> None:
    register("my.op", lambda spec, conservative: "i j -> j i" if spec.attr("swapped") else "i j -> i j")
    assert rule("my.op", "4x8 -> 8x4", swapped=True) == "([i, j])->([j, i]) {i=4, j=8}, custom"
    assert rule("my.op", "4x8 -> 4x8", swapped=False) == "([i, j])->([i, j]) {i=4, j=8}, custom"


def test_a_function_that_returns_something_else_is_refused(register: Callable[..., None]) -> None:
    register("my.op", lambda spec, conservative: 3)
    with pytest.raises(InvalidRuleError, match="for my.op: got an int, needed a Rule, a notation or None"):
        rule("my.op", "4 -> 4")


# Ops of a module


def propagate(body: str, type: str = "tensor<8x4xf32>") -> str:
    text = f"""sdy.mesh @m = <["x"=2]>
    func.func @main(%a: {type} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{}}]>}}) -> tensor<4x8xf32> {{
      {body}
      return %0 : tensor<4x8xf32>
    }}
    func.func private @swap(%a: tensor<8x4xf32>) -> tensor<4x8xf32> {{
      %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }}"""
    module = Module.parse(text, allow_unregistered_dialects=True)
    return run_pipeline(module, "sdy-basic-propagate").text()


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("@swap", "stablehlo.custom_call @swap(%a) : (tensor<8x4xf32>) -> tensor<4x8xf32>"),
        ("my.swap", '"my.swap"(%a) : (tensor<8x4xf32>) -> tensor<4x8xf32>'),
        (
            "composite:my.swap",
            'stablehlo.composite "my.swap" %a {decomposition = @swap} : (tensor<8x4xf32>) -> tensor<4x8xf32>',
        ),
    ],
    ids=["custom call", "unknown dialect", "composite"],
)
def test_rules_carry_shardings_over_ops(name: str, op: str, register: Callable[..., None]) -> None:
    across = '<@m, [{?}, {"x", ?}]>'
    assert across not in propagate(f"%0 = {op}")
    register(name, "i j -> j i")
    assert across in propagate(f"%0 = {op}")


def test_functions_see_all_attributes(register: Callable[..., None]) -> None:
    seen: list[dict[str, Any]] = []

    def look(spec: OpSpec, conservative: bool) -> str:
        seen.append(dict(spec.attributes))
        return "i j -> j i"

    register("@swap", look)
    propagate(
        '%0 = stablehlo.custom_call @swap(%a) {api_version = 4 : i32, mhlo.note = [1, 2.5, "x"], '
        "backend_config = {fast = true, where = @swap, window = array<i64: 3, 4>, kind = tensor<2xf32>}} "
        ": (tensor<8x4xf32>) -> tensor<4x8xf32>"
    )
    (attributes,) = seen
    assert attributes == {
        "api_version": 4,
        "backend_config": (("fast", True), ("kind", "tensor<2xf32>"), ("where", "swap"), ("window", (3, 4))),
        "call_target_name": "swap",
        "mhlo.note": (1, 2.5, "x"),
    }


def test_a_rule_that_does_not_fit_names_the_op_and_its_line(register: Callable[..., None]) -> None:
    register("@swap", "i j k -> j i")
    with pytest.raises(InvalidModuleError) as caught:
        propagate("%0 = stablehlo.custom_call @swap(%a) : (tensor<8x4xf32>) -> tensor<4x8xf32>")
    message = str(caught.value)
    assert "got operand 0 of shape 8x4, needed rank 3\n  i j k -> j i\n  ^" in message
    assert "-:3:" in message
