"""The stand-ins for the `sdy` dialect in modules that were HLO: strings in attributes, and custom calls."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import arg_attrs, functions, is_declaration, result_attrs, result_count
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.strings import check_names, string_of
from pyshardy.rules.properties import CUSTOM_CALL

HLO_SHARDING = "mhlo.sharding"
FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"
MESHES = "xla.sdy.meshes"
FRONTEND_SHARDING = "xla.sdy.sharding"
FRONTEND_RULE = "xla.sdy.sharding_rule"
IN_SHARDINGS = "xla.sdy.in_shardings"
OUT_SHARDINGS = "xla.sdy.out_shardings"
MANUAL_AXES = "xla.sdy.manual_axes"
GROUP_ID = "xla.sdy.sharding_group_id"
GLOBAL_TO_LOCAL = "xla.sdy.GlobalToLocalShape"
LOCAL_TO_GLOBAL = "xla.sdy.LocalToGlobalShape"
FULL_TO_SHARD = "SPMDFullToShardShape"
SHARD_TO_FULL = "SPMDShardToFullShape"
CONSTRAINT_TARGET = "Sharding"
FUNC_RESULT = "xla.sdy.FuncResultSharding"
GROUP_TARGET = "xla.sdy.ShardingGroup"
BARRIER_TARGET = "xla.sdy.PropagationBarrier"
MANUAL_BODY = "xla.sdy.manual_computation_body"
IMPORTED_TARGETS = frozenset(
    (
        CONSTRAINT_TARGET,
        FUNC_RESULT,
        GROUP_TARGET,
        BARRIER_TARGET,
        GLOBAL_TO_LOCAL,
        LOCAL_TO_GLOBAL,
        FULL_TO_SHARD,
        SHARD_TO_FULL,
    )
)
"""The custom calls that stand for ops of the `sdy` dialect."""
_KEEP_THEIRS = frozenset(("stablehlo.send", "stablehlo.recv", "stablehlo.after_all"))


def target_of(op: Op) -> str | None:
    """The name of the target of a custom call; None for another op."""
    return string_of(op.attrs.get("call_target_name")) if op.name == CUSTOM_CALL else None


def custom_calls(root: Op, *targets: str) -> list[Op]:
    """The custom calls of some targets, in program order."""
    return [op for op in ops_with(root, "call_target_name") if target_of(op) in targets]


def defining_call(value: Value, target: str) -> Op | None:
    """The custom call with this target that defines a value, if there is one."""
    op = value.defining_op
    return op if op is not None and target_of(op) == target else None


def keeps_sharding(op: Op) -> bool:
    """Whether XLA keeps the sharding of an op when it passes the module to Shardy.

    It does for custom calls that stand for `sdy` ops, for communication with the host and for Python callbacks.
    """
    if op.name in _KEEP_THEIRS:
        return True
    target = target_of(op)
    return target is not None and (target in IMPORTED_TARGETS or ("python" in target and "callback" in target))


def frontend_attribute(attrs: dict[str, Any], name: str) -> str | None:
    """The text of a frontend attribute; None if there is none of this name."""
    found = attrs.get(FRONTEND_ATTRIBUTES)
    if not isinstance(found, ir.DictAttr) or name not in found:
        return None
    return string_of(found[name])


def with_frontend_attribute(attrs: Attributes, name: str, text: str | None) -> Attributes:
    """Attributes with a frontend attribute set, or removed if `text` is None; an empty dictionary is removed too."""
    found = attrs.get(FRONTEND_ATTRIBUTES)
    entries: dict[str, Any] = {}
    if isinstance(found, ir.DictAttr):
        check_names(found)
        entries = {found[index].name: found[index].attr for index in range(len(found))}
    entries.pop(name, None)
    if text is not None:
        entries[name] = ir.StringAttr.get(text)
    if entries:
        return attrs.with_value(FRONTEND_ATTRIBUTES, ir.DictAttr.get(entries))
    return attrs.without(FRONTEND_ATTRIBUTES)


def tuple_types(type: Any) -> list[Any] | None:
    """The MLIR types inside a tuple type; None for another type."""
    if not isinstance(type, ir.TupleType):
        return None
    return [type.get_type(index) for index in range(type.num_types)]


def is_annotated(root: Op) -> bool:
    """Whether a module has sharding annotations in HLO's form rather than in the `sdy` dialect."""
    if frontend_attribute(root.attrs, MESHES) is not None:
        return True
    for op in ops_with(root, HLO_SHARDING, (CUSTOM_CALL,)):
        if HLO_SHARDING in op.attrs or target_of(op) in IMPORTED_TARGETS:
            return True
    return any(HLO_SHARDING in attrs for function in functions(root) for attrs in border_attributes(function))


def border_attributes(function: Op) -> list[Attributes]:
    """The attributes of every argument and result of a function that has any."""
    if is_declaration(function):
        return [entry for name in ("arg_attrs", "res_attrs") for entry in function.attrs.get(name) or ()]
    arguments = [arg_attrs(function, arg.index) for arg in function.region.blocks[0].args]
    return arguments + [result_attrs(function, index) for index in range(result_count(function))]
