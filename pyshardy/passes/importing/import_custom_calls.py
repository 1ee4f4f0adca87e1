"""`pyshardy-import-custom-calls`: turns custom calls that stand for ops of the dialect into those ops."""

from __future__ import annotations

import re

from pyshardy.core.scanner import int64
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING, set_result_sharding
from pyshardy.ir.hlo_attributes import (
    BARRIER_TARGET,
    CONSTRAINT_TARGET,
    FUNC_RESULT,
    GROUP_ID,
    GROUP_TARGET,
    custom_calls,
    frontend_attribute,
)
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

DIRECTION = "xla.sdy.allowed_direction"
_INTEGER = re.compile(r"(-?\d+)(?: : i(?:64|32))?")


class ImportCustomCalls(Pass):
    """Turn custom calls into constraints, groups and barriers.

    `@Sharding` is a constraint, or puts its operand into a group. Without a sharding and a group, it has no effect.
    `@xla.sdy.FuncResultSharding` gives the sharding of a function's result. If its function was inlined, it becomes a
    constraint with open dimensions.
    """

    name = "pyshardy-import-custom-calls"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for call in custom_calls(op, FUNC_RESULT):
            _check_types(call)
            _import_result(call)
        for call in custom_calls(op, CONSTRAINT_TARGET):
            _check_types(call)
            _import_constraint(call)
        for call in custom_calls(op, GROUP_TARGET):
            _check_types(call, result_count=0)
            group = Op("sdy.sharding_group", call.operands, (), {"group_id": _number(call, GROUP_ID)})
            _replace(call, group)
        for call in custom_calls(op, BARRIER_TARGET):
            _check_types(call)
            types = [result.type for result in call.results]
            _replace(call, Op("sdy.propagation_barrier", call.operands, types, {"allowed_direction": _direction(call)}))


def _check_types(call: Op, result_count: int = 1) -> None:
    """Refuse a call unless it takes one tensor, and returns one of the same type, or nothing if it should not."""
    types = [value.type for value in (*call.operands, *call.results)]
    if len(call.operands) != 1 or len(call.results) != result_count or types[1:] != types[:1] * result_count:
        needed = "one tensor and returns one of the same type" if result_count else "one tensor and returns nothing"
        given = ", ".join(str(value.type) for value in call.operands)
        made = ", ".join(str(value.type) for value in call.results)
        raise PassError(call, f"is ({given}) -> ({made}), needed a call that takes {needed}")


def _import_constraint(call: Op) -> None:
    if frontend_attribute(call.attrs, GROUP_ID) is not None:
        attrs = {"group_id": _number(call, GROUP_ID)}
        Op("sdy.sharding_group", call.operands, (), attrs, location=call.place).insert_before(call)
    shardings = call.attrs.get(SHARDING)
    if not shardings:
        _drop(call)
    else:
        _constrain(call, shardings[0])


def _constrain(call: Op, sharding: TensorSharding) -> None:
    _replace(call, Op("sdy.sharding_constraint", call.operands, [call.result.type], {"sharding": sharding}))


def _import_result(call: Op) -> None:
    shardings = call.attrs.get(SHARDING)
    if not shardings:
        raise PassError(call, "lacks the sharding that the result of the function has")
    for user in call.result.users():
        if user.name == "stablehlo.reshape" and not user.has_uses():
            user.erase()  # in HLO it marks the sharding of the root; nothing reads it
    uses = call.result.uses
    if any(user.name != "func.return" for user, _ in uses):
        _constrain(call, shardings[0].opened())
        return
    for user, index in uses:
        function = user.parent_op
        assert function is not None
        set_result_sharding(function, index, shardings[0])
    _drop(call)


def _drop(call: Op) -> None:
    """Use the operand instead of the result."""
    call.result.replace_uses(call.operands[0])
    call.erase()


def _replace(call: Op, new: Op) -> None:
    new.location = call.location
    new.insert_before(call)
    for old, result in zip(call.results, new.results):
        old.replace_uses(result)
    call.erase()


def _number(call: Op, name: str) -> int:
    text = frontend_attribute(call.attrs, name) or ""
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise PassError(call, f"has {name} = '{text}', and needs a number")
    number = int64(match[1])
    if number is None:
        raise PassError(call, f"has {name} = '{text}', and needs a number of 64 bits")
    return number


def _direction(call: Op) -> int:
    found = _number(call, DIRECTION)
    if found not in range(4):
        raise PassError(call, f"has {DIRECTION} = {found}, and needs a number from 0 to 3")
    return found
