from __future__ import annotations

import pytest

from pyshardy.core.intern import clear_caches
from pyshardy.errors import InvalidRuleError
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.table import NO_RULE, RULES, is_known, rule_of
from pyshardy.rules.traits import function_of_trait

from .probe import rule, spec


@pytest.mark.parametrize("name", RULES)
def test_every_entry_loads(name: str) -> None:
    module, _, function = RULES[name].partition(":")
    builder = function_of_trait("rule", RULES[name])
    assert builder.__module__ == f"pyshardy.rules.{module}"
    assert builder.__name__ == function
    assert builder.__code__.co_varnames[:2] == ("spec", "conservative")  # type: ignore[attr-defined]


def test_every_public_rule_function_is_in_the_table() -> None:
    for module in {entry.partition(":")[0] for entry in RULES.values()}:
        loaded = __import__(f"pyshardy.rules.{module}", fromlist=["_"])
        public = {
            name
            for name, value in vars(loaded).items()
            if callable(value) and getattr(value, "__module__", "") == loaded.__name__ and not name.startswith("_")
        }
        assert {f"{module}:{name}" for name in public} <= set(RULES.values())


def test_no_name_has_and_lacks_a_rule() -> None:
    assert not NO_RULE & set(RULES)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("stablehlo.add", True),
        ("stablehlo.while", True),
        ("sdy.data_flow_edge", True),
        ("func.return", True),
        ("stablehlo.map", False),
        ("stablehlo.rng", False),
        ("sdy.all_gather", False),
        ("chlo.erf", False),
        ("mhlo.add", False),
    ],
)
def test_known_ops(name: str, known: bool) -> None:
    assert is_known(OpSpec(name, [(4,)], [(4,)])) is known


@pytest.mark.parametrize(
    ("target", "known"), [("Qr", True), ("tpu_custom_call", True), ("qr", False), ("Sharding", False), ("", False)]
)
def test_known_custom_calls(target: str, known: bool) -> None:
    assert is_known(spec(f"@{target}", "4 -> 4")) is known


def test_a_target_is_no_op_name() -> None:
    assert rule("@add", "4, 4 -> 4") is None
    assert not is_known(spec("@stablehlo.add", "4, 4 -> 4"))


def test_none_for_ops_without_a_rule() -> None:
    assert rule("while", "4 -> 4") is None
    assert rule("map", "4 -> 4") is None
    assert rule("@unheard_of", "4 -> 4") is None


def test_none_without_operands_or_results() -> None:
    assert rule("@MoveToHost", "-> 4") is None
    assert rule("@MoveToHost", "4 ->") is None


def test_dynamic_shapes_are_refused() -> None:
    with pytest.raises(InvalidRuleError) as caught:
        rule("add", "4x?, 4x? -> 4x?")
    assert str(caught.value) == (
        "building a sharding rule, for stablehlo.add: "
        "got a dynamic dimension, needed operands and results of static shape\n"
        "  at stablehlo.add(4x?, 4x?) -> (4x?)"
    )


def test_dynamic_shapes_of_ops_without_a_rule_do_not_matter() -> None:
    assert rule("dynamic_iota", "1 -> ?") is None


def test_a_known_custom_call_with_too_few_results_is_refused() -> None:
    with pytest.raises(InvalidRuleError, match="building the sharding rule of @Qr") as caught:
        rule("@Qr", "7x5 -> 7x5")
    assert isinstance(caught.value.__cause__, IndexError)
    assert caught.value.where == "stablehlo.custom_call @Qr(7x5) -> (7x5)"


def test_a_known_custom_call_of_too_small_a_rank_is_refused() -> None:
    with pytest.raises(InvalidRuleError, match="for @Eigh"):
        rule("@Eigh", "5 -> 5, 5")


def test_a_missing_attribute_is_refused() -> None:
    with pytest.raises(InvalidRuleError, match="reading attribute 'permutation' of stablehlo.transpose"):
        rule("transpose", "4x5 -> 5x4")


def test_rules_survive_clearing_the_caches() -> None:
    first = rule_of(spec("tanh", "4 -> 4"))
    clear_caches()
    assert rule_of(spec("tanh", "4 -> 4")) is first


def test_ops_that_xla_keeps_whole_have_xlas_rules() -> None:
    erf = rule_of(OpSpec("mhlo.erf", [(6, 10)], [(6, 10)]))
    top_k = rule_of(OpSpec("mhlo.topk", [(6, 10)], [(6, 3), (6, 3)]))
    assert str(erf) == "<([i, j])->([i, j]) {i=6, j=10}>"
    assert str(top_k) == ("<([i, j])->([i, j], [i, j]) {i=6, j=10} need_replication={j} blocked_propagation={j}>")
