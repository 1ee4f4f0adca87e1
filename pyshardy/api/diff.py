"""`diff`: the difference between two results, programs or annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, overload

from pyshardy.api.propagate import PropagateKeywords, propagate
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.difference import Difference
from pyshardy.report.plan_difference import PlanDifference, plan_difference
from pyshardy.results.compare import compare_results
from pyshardy.results.plan import Plan
from pyshardy.results.verbs import Result

_DOING = "comparing"


@overload
def diff(before: Plan, after: Plan) -> PlanDifference: ...


@overload
def diff(before: Any, after: Any, *, program: Any = None, **keywords: Unpack[PropagateKeywords]) -> Difference: ...


def diff(
    before: Any, after: Any, *, program: Any = None, **keywords: Unpack[PropagateKeywords]
) -> Difference | PlanDifference:
    """Compare two results, programs, annotations of one program, or plans.

    Inputs and outputs are aligned by name, results of ops by source line, name scope and op, and collectives by the op
    that needs them. Layers are aligned with layers, even if one program has more of them.

    Args:
        before: A result of `propagate` or `partition`, or anything that they take; or annotations by name, as for
            `pyshardy.annotate`; or a plan of `search`.
        after: The same.
        program: The program that annotations apply to; by default the other argument.
        keywords: The options for programs that are not propagated yet, as for `propagate`.

    Raises:
        UsageError: There are annotations without a program, a plan beside something else, or an argument cannot be
            loaded.
        PassError: A module breaks a requirement of propagation; the error names the op.

    >>> program = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> found = diff(program, {"arg0": None})
    >>> [(change.name, change.bytes_before, change.bytes_after) for change in found.shardings]
    [('arg0', 16, 32), ('result', 16, 32), ('`tanh` at the text:4', None, None)]
    >>> found.collectives
    ()
    """
    sides = before, after
    if any(isinstance(side, Plan) for side in sides):
        return _of_plans(before, after)
    if program is None:
        program = next((side for side in sides if not _is_annotations(side)), None)
    base = None
    if any(map(_is_annotations, sides)):
        if program is None:
            needed = "a program or a result as one of the two, or the argument program"
            raise UsageError(_DOING, got="annotations alone", needed=needed)
        base = _result(program, keywords)
    elif not any(program is side for side in sides):
        needed = "the argument program only together with annotations"
        raise UsageError(_DOING, got=f"program={named_type(program)} without annotations", needed=needed)
    if base is not None and (before is program or before is base) and _is_annotations(after):
        return base.edit(after).difference
    one, other = (_side(side, program, base, keywords) for side in sides)
    return compare_results(one, other)


def _of_plans(before: Any, after: Any) -> PlanDifference:
    if not isinstance(before, Plan) or not isinstance(after, Plan):
        other = after if isinstance(before, Plan) else before
        hint = "plan.apply() gives the program of a plan"
        raise UsageError(_DOING, got=f"a plan and {named_type(other)}", needed="two plans", hint=hint)
    return plan_difference(before.summary, after.summary)


def _is_annotations(side: Any) -> bool:
    return isinstance(side, Mapping)


def _side(side: Any, program: Any, base: Result | None, keywords: PropagateKeywords) -> Result:
    """The result for one of the arguments of `diff`."""
    if _is_annotations(side):
        assert base is not None
        return base.edit(side).result if side else base
    return base if base is not None and side is program else _result(side, keywords)


def _result(program: Any, keywords: PropagateKeywords) -> Result:
    if isinstance(program, Result) and not keywords:
        return program
    return propagate(program, **keywords)
