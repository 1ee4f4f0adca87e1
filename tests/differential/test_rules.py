"""The rule of every op is that of the reference, for random valid instances of every op."""

from __future__ import annotations

import pytest

from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.table import RULES, rule_of
from support.reference import jaxlib_version

from .rule_compare import differences, reference_rules, specs_of
from .rule_instances import KINDS, instances, module_of

INSTANCES_PER_KIND = 75
NOT_OF_THE_REFERENCE = {"mhlo.erf", "mhlo.topk"}
"""Ops that have a rule here alone: these two XLA's view makes, and test_xla_view.py compares where they lead."""
CHANGED_IN_0_12 = ("reshape", "convolution", "pad", "dynamic_update_slice", "topk")
_OLD = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="jaxlib 0.12 changed the rule of this op; pyshardy gives the new one everywhere"
)


def test_there_are_3000_instances() -> None:
    assert INSTANCES_PER_KIND * len(KINDS) >= 3000


@pytest.mark.parametrize("conservative", [False, True], ids=["normal", "conservative"])
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=_OLD if kind in CHANGED_IN_0_12 else ()) for kind in KINDS])
def test_rules_are_those_of_the_reference(kind: str, conservative: bool) -> None:
    found = differences(instances(kind, INSTANCES_PER_KIND, seed=1), conservative)
    assert not found, "\n".join(found[:5])


def test_instances_reach_every_entry_of_the_table() -> None:
    text = module_of([function for kind in KINDS for function in instances(kind, 500, seed=1)])
    names = {spec.name if spec.target is None else f"@{spec.target}" for spec in specs_of(text)}
    missing = sorted(set(RULES) - names - NOT_OF_THE_REFERENCE)
    assert not missing, (
        f"{missing} need instances in rule_instances.py; in NOT_OF_THE_REFERENCE what the reference has no rule for"
    )
    assert not NOT_OF_THE_REFERENCE & names


def test_instances_reach_every_kind_of_factor() -> None:
    text = module_of([function for kind in KINDS for function in instances(kind, INSTANCES_PER_KIND, seed=1)])
    rules = [rule for rule in reference_rules(text, conservative=False) if rule is not None]
    assert {kind for rule in rules for kind in rule.kinds} == set(FactorKind)
    assert any(rule.blocked for rule in rules)
    assert any(rule.has_compound_dims for rule in rules)
    assert any(0 in rule.factor_sizes for rule in rules)


def test_instances_are_the_same_for_the_same_seed() -> None:
    assert instances("gather", 5, seed=3) == instances("gather", 5, seed=3) != instances("gather", 5, seed=4)


def _spoiled(spec: OpSpec, conservative: bool) -> Rule | None:
    rule = rule_of(spec, conservative)
    if rule is None or spec.name != "stablehlo.transpose":
        return rule
    return Rule(rule.factor_sizes, rule.operands, rule.results, rule.kinds, blocked=[0], is_custom=False)


def test_the_comparison_sees_a_wrong_rule() -> None:
    function = next(text for text in instances("transpose", 50, seed=1) if "tensor<f32>" not in text)
    assert differences([function], conservative=False) == []
    (found,) = differences([function], conservative=False, rule_of=_spoiled)
    assert "blocked_propagation={i}" in found


def test_the_comparison_sees_a_missing_and_a_superfluous_rule() -> None:
    functions = instances("transpose", 1, seed=1) + instances("without_rule", 1, seed=1)
    assert differences(functions, False, rule_of=lambda spec, conservative: None)
    wrong = Rule((4,), [[[0]]], [[[0]]])
    assert len(differences(functions, False, rule_of=lambda spec, conservative: wrong)) == len(
        specs_of(module_of(functions))
    )


def test_the_comparison_sees_an_instance_that_is_not_valid() -> None:
    broken = instances("transpose", 1, seed=1)[0].replace("permutation", "permutations")
    (found,) = differences([broken, *instances("dot", 3, seed=1)], conservative=False)
    assert found.startswith("the reference refuses")
