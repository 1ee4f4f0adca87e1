"""`pyshardy-legalize-chlo`: lowers ops of CHLO as XLA does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyshardy.ir.functions import main_function, return_op
from pyshardy.ir.hlo import CONVERTER_ERRORS, from_hlo, to_hlo
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.read import read_module
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

RENAMED = {"chlo.erf": "mhlo.erf", "chlo.top_k": "mhlo.topk"}
"""The ops that XLA does not expand, and its names for them."""
_Kind = tuple[Any, ...]


class LegalizeChlo(Pass):
    """Lower ops of CHLO as XLA does: to ops of StableHLO, or to a single op of MHLO if XLA has one.

    An op that XLA's converter cannot read, such as `chlo.mulhi`, stays.
    """

    name = "pyshardy-legalize-chlo"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        others: dict[_Kind, list[Op]] = {}
        for found in ops_in(op):
            if not found.name.startswith("chlo."):
                continue
            if found.name == "chlo.square":
                _square(found)
            elif found.name in RENAMED:
                found.rename(RENAMED[found.name])
            else:
                others.setdefault(_kind(found), []).append(found)
        kinds = {kind: ops for kind, ops in others.items() if _is_static(ops[0])}
        for templates, several in _with_templates(list(kinds.values()), context):
            for number, ops in enumerate(several):
                for found in ops:
                    templates.replace(number, found)


def _with_templates(kinds: list[list[Op]], context: PassContext) -> Iterator[tuple[_Templates, list[list[Op]]]]:
    """What XLA makes of ops of several kinds, with the ops; those that it cannot convert are left out."""
    if not kinds:
        return
    try:
        found = _Templates([ops[0] for ops in kinds], context)
    except CONVERTER_ERRORS:
        if len(kinds) > 1:
            for ops in kinds:
                yield from _with_templates([ops], context)
        return
    yield found, kinds


def _kind(op: Op) -> _Kind:
    types = [value.type for value in (*op.operands, *op.results)]
    return (op.name, len(op.operands), *types, *sorted((name, str(attr)) for name, attr in op.attrs.items()))


def _is_static(op: Op) -> bool:
    """Whether XLA supports the op: it has no dynamic dimensions."""
    return all(value.type.is_ranked_tensor and value.type.is_static for value in (*op.operands, *op.results))


def _square(op: Op) -> None:
    value = op.operands[0]
    made = Op("stablehlo.multiply", [value, value], [op.result.type], None, 0, op.place).insert_before(op)
    op.result.replace_uses(made.result)
    op.erase()


class _Templates:
    """Functions with XLA's expansion of some ops, one function per op.

    Args:
        ops: The ops, one of each kind.
        context: What passes share.
    """

    def __init__(self, ops: Sequence[Op], context: PassContext) -> None:
        root = read_module(from_hlo(to_hlo(_text_of(ops))), context.attrs)
        main = main_function(root)
        self.args = main.region.block.args
        self.returned = return_op(main).operands
        self.first_arg: list[int] = []
        self.first_result: list[int] = []
        args = results = 0
        for op in ops:
            self.first_arg.append(args)
            self.first_result.append(results)
            args, results = args + len(op.operands), results + len(op.results)

    def replace(self, number: int, op: Op) -> None:
        """Replace an op by a copy of a template."""
        first = self.first_arg[number]
        mapping: dict[Value, Value] = dict(zip(self.args[first:], op.operands))
        start = self.first_result[number]
        for index, result in enumerate(op.results):
            result.replace_uses(_copied(self.returned[start + index], mapping, op))
        op.erase()


def _copied(value: Value, mapping: dict[Value, Value], anchor: Op) -> Value:
    """Copy a value of a template, and all that it is computed from, before `anchor`; return the copy."""
    pending = [value]
    while pending:
        owner = pending[-1].owner
        if pending[-1] in mapping:
            pending.pop()
            continue
        assert isinstance(owner, Op)
        missing = [operand for operand in owner.operands if operand not in mapping]
        if missing:
            pending += reversed(missing)
            continue
        copy = owner.clone(mapping)
        copy._location = anchor.place
        copy.insert_before(anchor)
        pending.pop()
    return mapping[value]


def _text_of(ops: Sequence[Op]) -> str:
    """A module with one op of each kind, on separate arguments."""
    args, lines, results, types = [], [], [], []
    for number, op in enumerate(ops):
        names = [f"%a{number}_{index}" for index in range(len(op.operands))]
        args += [f"{name}: {value.type}" for name, value in zip(names, op.operands)]
        attrs = ", ".join(f'"{name}" = {attr}' for name, attr in op.attrs.items() if name != "sdy.sharding")
        made = [f"%r{number}#{index}" for index in range(len(op.results))]
        signature = f"({', '.join(str(v.type) for v in op.operands)}) -> ({', '.join(str(v.type) for v in op.results)})"
        count = f":{len(op.results)}" if len(op.results) > 1 else ""
        lines.append(f'  %r{number}{count} = "{op.name}"({", ".join(names)}) {{{attrs}}} : {signature}')
        results += made if len(made) > 1 else [f"%r{number}"]
        types += [str(value.type) for value in op.results]
    body = "\n".join(lines)
    result = ", ".join(types)
    return (
        f"func.func @main({', '.join(args)}) -> ({result}) {{\n{body}\n  return {', '.join(results)} : {result}\n}}\n"
    )
