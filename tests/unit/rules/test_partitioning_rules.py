"""Rules as `custom_partitioning` takes them: the same as JAX makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from jax.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

import pyshardy
from pyshardy.errors import InvalidRuleError
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.table import rule_of
from pyshardy.rules.user_rules import USER_RULES, register_rule, unregister_rule

SHAPES = [(2, 3, 16, 8), (2, 3, 8, 32)], [(2, 3, 16, 32)]
SPEC = OpSpec("stablehlo.custom_call", *SHAPES, {"call_target_name": "user"})


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    if "@user" in USER_RULES:
        unregister_rule("@user")


def callback(mesh, args, result):
    batch = " ".join(f"b{dim}" for dim in range(len(args[0].shape) - 2))
    assert [one.rank for one in (*args, *result)] == [4, 4, 4]
    return f"{batch} i j, {batch} j k -> {batch} i k"


def rule_callback(mesh, args, result):
    return JAX_RULE


JAX_RULE = SdyShardingRule((ArrayMapping(BATCHING, "i", "j"), ArrayMapping(BATCHING, "j", "k")),
                           (ArrayMapping(BATCHING, "i", "k"),), reduction_factors=("j",))  # fmt: skip
FORMS = {
    "notation": "... i j, ... j k -> ... i k",
    "rule": SdyShardingRule((ArrayMapping(BATCHING, "i", "j"), ArrayMapping(BATCHING, "j", "k")), (ArrayMapping(BATCHING, "i", "k"),)),
    "reduction": JAX_RULE,
    "compound": SdyShardingRule(
        (ArrayMapping(BATCHING, CompoundFactor("p", "q"), "j"), ArrayMapping(BATCHING, "j", "k")),
        (ArrayMapping(BATCHING, CompoundFactor("p", "q"), "k"),), p=4, q=4, need_replication_factors=("k",)),
    "callback": callback,
    "callback that makes a rule": rule_callback,
}  # fmt: skip


def rule_of_jax(form) -> str:
    """The rule on the op that JAX lowers to, without the mark of a custom rule."""

    @custom_partitioning
    def product(x, y):
        return x @ y

    product.def_partition(partition=lambda *_: None, sharding_rule=form)
    args = [jax.ShapeDtypeStruct(shape, np.float32) for shape in SHAPES[0]]
    module = pyshardy.load(product, *args, mesh={"x": 2}).text()
    return module.partition("#sdy.op_sharding_rule")[2].partition(">}")[0].partition(", custom")[0]


@pytest.mark.parametrize("name", FORMS)
def test_the_rule_is_that_of_jax(name: str) -> None:
    register_rule("@user", FORMS[name])
    assert str(rule_of(SPEC)).removesuffix(", custom>") == rule_of_jax(FORMS[name])


def test_the_comparison_notices_another_rule() -> None:
    register_rule("@user", "... i j, ... j k -> ... i k")
    assert str(rule_of(SPEC)).removesuffix(", custom>") != rule_of_jax(JAX_RULE)


def test_a_callback_that_fails() -> None:
    register_rule("@user", lambda mesh, args, result: mesh.shape)
    with pytest.raises(InvalidRuleError, match="(?s)calling the callback .* got AttributeError.*the mesh is None"):
        rule_of(SPEC)


def test_a_callback_that_gives_options_with_a_notation() -> None:
    def pair(mesh, args, result):
        return "... i j, ... j k -> ... i k", {"reduction_factors": ("j",), "need_replication_factors": ("i",)}

    register_rule("@user", pair)
    found = rule_of(SPEC)
    unregister_rule("@user")
    register_rule("@user", "... i j, ... j k -> ... i k", reduction="j", need_replication="i")
    assert found == rule_of(SPEC)
    unregister_rule("@user")
    register_rule("@user", lambda mesh, args, result: ("... i j, ... j k -> ... i k", 3))
    with pytest.raises(InvalidRuleError, match="got a tuple, needed a Rule"):
        rule_of(SPEC)
