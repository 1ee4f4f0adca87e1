"""`pyshardy-import-manual-computations`: turns the functions of manual computations back into manual computations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.notation import parse_sharding_list
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.core.text import quote
from pyshardy.errors import ShardyError
from pyshardy.ir.codecs import parse_names
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING, arg_sharding, function_of_argument
from pyshardy.ir.hlo_attributes import (
    CONSTRAINT_TARGET,
    GLOBAL_TO_LOCAL,
    IN_SHARDINGS,
    LOCAL_TO_GLOBAL,
    MANUAL_AXES,
    MANUAL_BODY,
    OUT_SHARDINGS,
    custom_calls,
    defining_call,
    frontend_attribute,
    target_of,
)
from pyshardy.ir.nodes import Op, Value, clone_region_into
from pyshardy.ir.shardings import check_shardings
from pyshardy.ir.symbols import SymbolTable, calls_in_post_order
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class ImportManualComputations(Pass):
    """Replace calls of functions that are bodies of manual computations by manual computations.

    In HLO the body is a function `@xla.sdy.manual_computation_body...`, called between custom calls
    `@xla.sdy.GlobalToLocalShape` and `@xla.sdy.LocalToGlobalShape`.
    """

    name = "pyshardy-import-manual-computations"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols, meshes = SymbolTable(op), context.meshes
        bodies: dict[str, None] = {}
        for call in calls_in_post_order(op):
            if call.attrs["callee"].startswith(MANUAL_BODY):
                bodies[call.attrs["callee"]] = None
                _check(_import_call(call, symbols.callee(call)), meshes)
        for name in bodies:
            symbols.erase(name)
        for left in custom_calls(op, GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL):
            if left.has_uses() or target_of(left) == LOCAL_TO_GLOBAL:
                raise PassError(left, f"is a @{target_of(left)} without a call of @{MANUAL_BODY}... beside it")
            left.erase()


def _import_call(call: Op, body: Op) -> Op:
    entry = _only_call(call, (defining_call(value, GLOBAL_TO_LOCAL) for value in call.operands), GLOBAL_TO_LOCAL)
    users = [user for result in call.results for user in result.users()]
    leave = _only_call(call, (user if target_of(user) == LOCAL_TO_GLOBAL else None for user in users), LOCAL_TO_GLOBAL)
    taken = [value.index for value in call.operands]
    returned = [value.index for value in leave.operands] if leave is not None else []
    if leave is not None and any(value.defining_op is not call for value in leave.operands):
        raise PassError(leave, "has operands that the body of the manual computation does not return")
    operands, in_shardings = _inputs(entry, taken)
    computation = Op(
        "sdy.manual_computation",
        operands,
        [result.type for result in leave.results] if leave is not None else [],
        {
            "in_shardings": in_shardings,
            "out_shardings": () if leave is None else _listed(leave, OUT_SHARDINGS),
            "manual_axes": manual_axes(entry, call, leave),
        },
        region_count=1,
        location=call.place,
    ).insert_before(call)
    clone_region_into(body.region, computation.region, {})
    _end_body(computation, returned)
    _replace(call, entry, leave, computation)
    return computation


def _check(computation: Op, meshes: Meshes) -> None:
    shardings: list[TensorSharding] = []
    for name, values in (("in_shardings", computation.operands), ("out_shardings", computation.results)):
        check_shardings(computation, computation.attrs[name], [value.type for value in values], meshes)
        shardings += computation.attrs[name]
    for mesh in dict.fromkeys(mesh_of(sharding, meshes) for sharding in shardings):
        unknown = [name for name in computation.attrs["manual_axes"] if name not in mesh.positions]
        if unknown:
            raise PassError(computation, f"has the manual axis {quote(unknown[0])}, and needs axes of the mesh {mesh}")


def _end_body(computation: Op, returned: Sequence[int]) -> None:
    block = computation.region.block
    end = block.terminator
    values = [end.operands[index] for index in returned]
    block.append(Op("sdy.return", values, location=end.place))
    end.erase()


def _replace(call: Op, entry: Op | None, leave: Op | None, computation: Op) -> None:
    if leave is not None:
        for old, new in zip(leave.results, computation.results):
            old.replace_uses(new)
        leave.erase()
    call.erase()
    if entry is not None and not entry.has_uses():
        erase_entry(entry)


def _only_call(call: Op, found: Iterable[Op | None], target: str) -> Op | None:
    """The custom call that all of some values belong to; None if there are no values."""
    distinct = list(dict.fromkeys(found))
    if not distinct:
        return None
    if len(distinct) > 1 or distinct[0] is None:
        raise PassError(call, f"calls the body of a manual computation, and needs exactly one @{target} beside it")
    return distinct[0]


def _inputs(entry: Op | None, taken: Sequence[int]) -> tuple[list[Value], tuple[TensorSharding, ...]]:
    """The global operands of a manual computation, in the order of its body's arguments, and their shardings."""
    if entry is None:
        return [], ()
    if frontend_attribute(entry.attrs, IN_SHARDINGS) is not None:
        shardings = _listed(entry, IN_SHARDINGS)
        return [entry.operands[index] for index in taken], tuple(shardings[index] for index in taken)
    found = [global_operand(entry, index) for index in taken]
    return [value for value, _ in found], tuple(sharding for _, sharding in found)


def global_operand(entry: Op, index: int) -> tuple[Value, TensorSharding]:
    """A tensor that enters a manual computation, and its sharding, from the constraint before the entry.

    Raises:
        PassError: There is neither a constraint nor the sharding of an argument.
    """
    value = entry.operands[index]
    constraint = defining_call(value, CONSTRAINT_TARGET)
    if constraint is not None and SHARDING in constraint.attrs:
        return constraint.operands[0], constraint.attrs[SHARDING][0]
    function = function_of_argument(value)
    known = None if function is None else arg_sharding(function, value.index)
    if known is None:
        raise PassError(entry, f"has operand {index} without a sharding, and needs a @{CONSTRAINT_TARGET} before it")
    return value, known


def erase_entry(entry: Op) -> None:
    """Remove an unused entry and the constraints before it that nothing else uses."""
    constraints = [defining_call(value, CONSTRAINT_TARGET) for value in dict.fromkeys(entry.operands)]
    entry.erase()
    for constraint in dict.fromkeys(constraints):
        if constraint is not None and not constraint.has_uses():
            constraint.erase()


def _listed(op: Op, name: str) -> tuple[TensorSharding, ...]:
    """The shardings that a custom call lists, one per value."""
    text = frontend_attribute(op.attrs, name)
    if text is None:
        found: tuple[TensorSharding, ...] = op.attrs.get(SHARDING) or ()
    else:
        try:
            found = parse_sharding_list(text)
        except ShardyError as error:
            raise PassError(op, f"has {name} = {text}, which cannot be read: {error}") from error
    count = len(op.operands) if name == IN_SHARDINGS else len(op.results)
    if len(found) != count:
        raise PassError(op, f"has {len(found)} shardings, and needs {count}, one per value")
    return found


def manual_axes(*ops: Op | None) -> tuple[str, ...]:
    """The manual axes, from the first op that names any."""
    for op in ops:
        text = None if op is None else frontend_attribute(op.attrs, MANUAL_AXES)
        if op is not None and text is not None:
            try:
                return parse_names(text)
            except ShardyError as error:
                raise PassError(op, f"has {MANUAL_AXES} = {text}, which cannot be read: {error}") from error
    return ()
