"""Comparing the rules of every op of a module with the reference's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jaxlib.mlir import ir

from pyshardy.errors import InvalidRuleError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.read import read_module
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule
from pyshardy.rules.table import rule_of
from support.reference import run_reference

from .rule_instances import module_of

RuleOf = Callable[[OpSpec, bool], Rule | None]


def reference_rules(text: str, conservative: bool) -> list[Rule | None]:
    """The reference's rule of every op of a module, in order."""
    option = "{conservative-propagation=true}" if conservative else ""
    result = run_reference(text, f"func.func(sdy-populate-op-sharding-rules{option})")
    with make_context(), ir.Location.unknown():
        return [op.attrs.get("sdy.sharding_rule") for op in _ops(result)]


def specs_of(text: str) -> list[OpSpec]:
    """The description of every op of a module, in order."""
    with make_context(), ir.Location.unknown():
        reader = OpSpecReader()
        return [reader.spec(op) for op in _ops(text)]


def _ops(text: str) -> Iterator[Op]:
    return walk(read_module(ir.Module.parse(text), AttrTable()))


def differences(functions: Sequence[str], conservative: bool, rule_of: RuleOf = rule_of) -> list[str]:
    """What is different between the reference's rules and those of `rule_of`, op by op; empty if nothing is.

    A function that the reference refuses counts as a difference: the generator has to make valid ones.
    """
    text = module_of(functions)
    try:
        expected = reference_rules(text, conservative)
    except (ir.MLIRError, ValueError) as error:
        if len(functions) == 1:
            return [f"the reference refuses\n{functions[0]}{error}"]
        return [line for function in functions for line in differences([function], conservative, rule_of)]
    specs = specs_of(text)
    assert len(specs) == len(expected)
    found = []
    for spec, wanted in zip(specs, expected):
        given = _answer(spec, conservative, rule_of)
        if given is not wanted:
            found.append(f"{spec!r}\n  expected {wanted}\n  given    {given}")
    return found


def _answer(spec: OpSpec, conservative: bool, rule_of: RuleOf) -> Rule | InvalidRuleError | None:
    try:
        return rule_of(spec, conservative)
    except InvalidRuleError as error:
        return error
