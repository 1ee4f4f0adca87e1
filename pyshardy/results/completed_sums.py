"""Collectives of a program that add up the parts of a sum, which passes would add up once more.

Passes complete such a sum before its first use by anything but a reshard, also before such a collective, which would
then add up whole sums. `partition` makes reshards of these collectives. Which they are is known at the start alone,
since XLA's view drops the shardings of ops; so they are marked there.
"""

from __future__ import annotations

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding

_MARK = "pyshardy.completes_sum"
_COLLECTIVES = ("sdy.all_reduce", "sdy.reduce_scatter")


def mark_completed_sums(root: Op, attrs: AttrTable) -> bool:
    """Mark the collectives that complete sums; whether there are any."""
    found = [op for op in ops_named(root, _COLLECTIVES) if _completes(op)]
    for op in found:
        op.set_attr(_MARK, attrs.parse("unit"))
    return bool(found)


def forget_marks(root: Op) -> None:
    """Leave the collectives as the program had them."""
    for op in _marked(root):
        op.remove_attr(_MARK)


def leave_sums_to_passes(root: Op) -> None:
    """Make reshards of the marked collectives."""
    for op in _marked(root):
        op.replace_attrs({"sharding": op.attrs["out_sharding"]})
        op.rename("sdy.reshard")


def _completes(op: Op) -> bool:
    sharding = get_sharding(op.operands[0])
    return sharding is not None and bool(sharding.unreduced)


def _marked(root: Op) -> list[Op]:
    return [op for op in ops_named(root, _COLLECTIVES) if _MARK in op.attrs]
