"""The rule of every op, from the traits of ops and the rules of users.

The first op that needs a function imports it. The function takes an `OpSpec` and whether propagation is
conservative, and returns a rule or None.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyshardy.core.intern import register_cache
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidRuleError, UsageError
from pyshardy.rules.ops import OPS, ops_that
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule
from pyshardy.rules.traits import SILENT, function_of_trait, names_function
from pyshardy.rules.user_rules import USER_RULES, user_rule_of

RULES: Final = {name: traits.rule for name, traits in OPS.items() if traits.rule and names_function(traits.rule)}
"""The functions that make the rules of ops, by `OpSpec.key`."""
NO_RULE: Final = ops_that(lambda traits: traits.rule == SILENT)
"""Ops without a rule on purpose: other means carry shardings across them, or they stop propagation."""


def rule_of(spec: OpSpec, conservative: bool = False) -> Rule | None:
    """The sharding rule of an op; None if it has none, and then nothing propagates through it.

    Args:
        spec: The op.
        conservative: Whether to hold back dimensions that move data between devices when they are sharded.

    Raises:
        InvalidRuleError: A dynamic dimension, or a missing operand, result or attribute.

    >>> print(rule_of(OpSpec("stablehlo.dot", [(4, 8), (8, 16)], [(4, 16)])))
    <([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}>
    >>> rule_of(OpSpec("stablehlo.iota", [], [(4,)])) is None
    True
    """
    if not isinstance(spec, OpSpec):
        raise UsageError("looking up a sharding rule", got=named_type(spec), needed="an OpSpec")
    return _cached_rule(spec, bool(conservative))


def is_known(spec: OpSpec) -> bool:
    """Whether the op has a rule, or has none on purpose; False for ops that deserve a warning.

    >>> is_known(OpSpec("stablehlo.while", [], [])), is_known(OpSpec("stablehlo.rng", [], [(4,)]))
    (True, False)
    """
    key = spec.key
    return key in RULES or key in NO_RULE or key in USER_RULES


def is_known_name(name: str) -> bool:
    """Whether ops of this name have a rule, or have none on purpose, whatever their attributes."""
    return name in RULES or name in NO_RULE


@lru_cache(maxsize=16384)
def _cached_rule(spec: OpSpec, conservative: bool) -> Rule | None:
    key = spec.key
    if not (key in RULES or key in USER_RULES) or not spec.operand_shapes or not spec.result_shapes:
        return None
    try:
        _check_static(spec)
        return _build(key, spec, conservative)
    except InvalidRuleError as error:
        raise error.located(f"{error.doing}, for {key}", str(spec)) from None
    except (IndexError, StopIteration) as error:
        raise InvalidRuleError(
            f"building the sharding rule of {key}",
            where=str(spec),
            got="operands and results of these shapes",
            needed="the shapes that this op requires",
        ) from error


register_cache(_cached_rule.cache_clear)


def _build(key: str, spec: OpSpec, conservative: bool) -> Rule | None:
    if key in USER_RULES:
        return user_rule_of(spec, conservative)
    found: Rule | None = function_of_trait("rule", RULES[key])(spec, conservative)
    return found


def _check_static(spec: OpSpec) -> None:
    if not spec.is_static:
        raise InvalidRuleError(
            "building a sharding rule", got="a dynamic dimension", needed="operands and results of static shape"
        )
