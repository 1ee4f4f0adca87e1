"""Use lists are in MLIR's order, whatever is done to a module.

Source: docs/semantics/propagation.md#order-of-uses
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.read import read_module

from .reading import all_ops

pytestmark = pytest.mark.slow


def random_module(random: Random) -> str:
    """A function of ops with any number of operands, results and regions."""
    count = 0

    def ops(values: list[str], number: int, depth: int) -> list[str]:
        nonlocal count
        lines = []
        for _ in range(number):
            operands = random.choices(values, k=random.randrange(4)) if values else []
            results = random.randrange(3)
            name, count = f"%{count}", count + 1
            regions = []
            if depth and random.random() < 0.2:
                for _ in range(random.randrange(1, 3)):
                    arg = f"%a{count}"
                    count += 1
                    inner = ops([*values, arg], random.randrange(1, 4), depth - 1)
                    regions.append("\n".join(["{", f"^bb0({arg}: i32):", *inner, "}"]))
            types = f"({', '.join(['i32'] * len(operands))}) -> ({', '.join(['i32'] * results)})"
            text = f'"t.op"({", ".join(operands)})' + (f" ({', '.join(regions)})" if regions else "")
            lines.append((f"{name}:{results} = " if results else "") + f"{text} : {types}")
            values = [*values, *(f"{name}#{index}" for index in range(results))]
        return lines

    return "\n".join(['"t.function"() ({', "^bb0(%x: i32, %y: i32):", *ops(["%x", "%y"], 12, 2), "}) : () -> ()"])


class Twins:
    """A module of MLIR and its nodes, to which the same is done."""

    def __init__(self, text: str) -> None:
        self.module = ir.Module.parse(text)
        self.root = read_module(self.module, AttrTable())

    def ops(self) -> list[tuple[Any, Op]]:
        """The ops of both; keyed by nothing, as the hash of an MLIR op depends on its operands."""
        return list(zip(all_ops(self.module.operation), walk(self.root), strict=True))

    def inner(self) -> list[tuple[Any, Op]]:
        """The ops inside the function."""
        return [(theirs, ours) for theirs, ours in self.ops() if ours.enclosing("t.function") is not None]

    def values(self) -> list[tuple[Any, Value]]:
        found = []
        for theirs, ours in self.ops():
            found += list(zip(theirs.results, ours.results, strict=True))
            for region, our_region in zip(theirs.regions, ours.regions, strict=True):
                for block, our_block in zip(region.blocks, our_region.blocks, strict=True):
                    found += list(zip(block.arguments, our_block.args, strict=True))
        return found

    def act(self, random: Random) -> None:
        """Do something to both."""
        (value, our_value), (other, our_other) = random.sample(self.values(), 2)
        (op, ours), (anchor, our_anchor) = random.choices(self.inner(), k=2)
        match random.randrange(6):
            case 0:
                value.replace_all_uses_with(other)
                our_value.replace_uses(our_other)
            case 1:
                value.replace_all_uses_except(other, op)
                our_value.replace_uses(our_other, lambda user, _: user is not ours)
            case 2 if ours.operands:
                index = random.randrange(len(ours.operands))
                op.operands[index] = value
                ours.set_operand(index, our_value)
            case 3 if not is_used_outside(ours):
                op.erase()
                ours.erase()
            case 4 if is_in_order(ours):
                op.clone(ip=ir.InsertionPoint(anchor))
                ours.clone().insert_before(our_anchor)
            case 5 if our_anchor is not ours and ours not in our_anchor.ancestors():
                op.move_before(anchor)
                ours.detach().insert_before(our_anchor)

    def check(self) -> None:
        """Both are the same, with the same use lists."""
        ops = dict(self.ops())
        for value, ours in self.values():
            expected = [(ops[use.owner.operation], use.operand_number) for use in value.uses]
            assert list(reversed(ours.uses)) == expected
            assert ours.users() == [user for user, _ in expected]
        for theirs, our_op in ops.items():
            assert (theirs.name, len(theirs.operands)) == (our_op.name, len(our_op.operands))


def is_used_outside(op: Op) -> bool:
    """Whether what an op defines, itself or inside, is used by anything else."""
    inside = set(walk(op))
    values = [value for inner in inside for value in inner.results]
    values += [arg for inner in inside for region in inner.regions for block in region.blocks for arg in block.args]
    return any(user not in inside for value in values for user in value.users())


def is_in_order(op: Op) -> bool:
    """Whether what is defined by an op or inside it is used after it, as in every valid program."""
    position = {inner: number for number, inner in enumerate(walk(op))}
    for user, number in position.items():
        for value in user.operands:
            owner = value.defining_op
            if owner is not None and owner in position and (position[owner] >= number or owner in user.ancestors()):
                return False
            if owner is None and value.block.parent_op in position and value.block.parent_op not in user.ancestors():
                return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(20))
def test_same_as_mlir(seed: int) -> None:
    random = Random(seed)
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        twins = Twins(random_module(random))
        twins.check()
        for _ in range(20):
            twins.act(random)
            twins.check()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40))
def test_read_again(seed: int) -> None:
    """Use lists that are not in the order in which a module is read stand in its bytecode."""
    random = Random(seed)
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        twins = Twins(random_module(random))
        for _ in range(12):
            twins.act(random)
            if not is_valid(twins.module):
                break
            twins.root = read_module(twins.module, AttrTable())
            twins.check()


def is_valid(module: ir.Module) -> bool:
    try:
        return bool(module.operation.verify())
    except ir.MLIRError:
        return False


def test_a_wrong_order_is_noticed() -> None:
    with make_context(allow_unregistered_dialects=True), ir.Location.unknown():
        twins = Twins(random_module(Random(3)))
        value = next(ours for _, ours in twins.values() if len(ours.uses) > 1)
        user, index = next(iter(value.uses))
        user.set_operand(index, value)
        with pytest.raises(AssertionError):
            twins.check()
