"""`pyshardy-tell-copies-apart`: lets only equal functions pass as copies of one function.

Source: docs/semantics/import.md#copies-that-a-program-brings
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import itemgetter

from pyshardy.ir.blocks import Block, Value
from pyshardy.ir.functions import CALL, SHARDING, functions, is_declaration
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.symbols import ORIGINAL_NAME, original_name
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_COMPUTATION = "sdy.named_computation"
_SHARDINGS = (SHARDING, "sharding")
_SHARDINGS_OF_COMPUTATION = (*_SHARDINGS, "in_shardings", "out_shardings")


class TellCopiesApart(Pass):
    """Give functions, and named computations, other original names if they share one but differ in content.

    Functions with one original name are merged at the end. A program may bring such names along.
    """

    name = "pyshardy-tell-copies-apart"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        owners = [function for function in functions(op) if not is_declaration(function)]
        computations = ops_named(op, (_COMPUTATION,))
        if computations or any(ORIGINAL_NAME in function.attrs for function in owners):
            symbols = {inner.attrs["sym_name"]: inner for inner in op.region.block if "sym_name" in inner.attrs}
            while _tell_apart([*owners, *computations], symbols):  # callers of what was told apart now differ too
                pass


def _tell_apart(owners: list[Op], symbols: dict[str, Op]) -> bool:
    """Give each content its own name; return whether any name changed."""
    taken = {*symbols, *map(_name_of, owners)}
    names: dict[str, dict[Hashable, str]] = {}
    has_changed = False
    for owner in owners:
        name = _name_of(owner)
        contents = names.setdefault(name, {})
        content = _content(owner, symbols)
        if content not in contents:
            contents[content] = name if not contents else _free(name, taken)
        if contents[content] != name:
            owner.set_attr("name" if owner.name == _COMPUTATION else ORIGINAL_NAME, contents[content])
            has_changed = True
    return has_changed


def _name_of(owner: Op) -> str:
    return str(owner.attrs["name"]) if owner.name == _COMPUTATION else original_name(owner)


def _free(name: str, taken: set[str]) -> str:
    """A name that nothing has yet, which is then taken."""
    number = 0
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def _content(owner: Op, symbols: dict[str, Op]) -> Hashable:
    """What a function or computation computes: all but names, shardings and places in the source."""
    numbers: dict[Value | Block, int] = {}
    inside = ops_in(owner)
    for op in inside:
        for block in _blocks(op):
            numbers[block] = len(numbers)
            for arg in block.args:
                numbers[arg] = len(numbers)
        for result in op.results if op is not owner else ():
            numbers[result] = len(numbers)
    return tuple(_described(op, numbers, symbols) for op in inside[1:]), _bodies(owner)


def _described(op: Op, numbers: dict[Value | Block, int], symbols: dict[str, Op]) -> Hashable:
    attrs = dict(op.attrs)
    if op.name == CALL:
        attrs["callee"] = original_name(symbols[attrs["callee"]]) if attrs["callee"] in symbols else attrs["callee"]
    for name in _SHARDINGS_OF_COMPUTATION if op.name == _COMPUTATION else _SHARDINGS:
        attrs.pop(name, None)
    return (
        op.name,
        tuple(sorted(attrs.items(), key=itemgetter(0))),
        tuple(numbers[operand] for operand in op.operands),
        tuple(numbers[successor] for successor in op.successors),
        tuple(result.type for result in op.results),
        _bodies(op),
    )


def _bodies(op: Op) -> Hashable:
    """The types of the arguments, and the number of ops, of every block of every region."""
    return tuple(
        tuple((tuple(arg.type for arg in block.args), sum(1 for _ in block)) for block in region.blocks)
        for region in op.regions
    )


def _blocks(op: Op) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)
