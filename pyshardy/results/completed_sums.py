"""Collectives in the program that add up partial sums; the passes would add them up a second time.

The passes complete a partial sum before its first use by anything but a reshard. Such a collective is a use too, so it
would add up complete sums. `partition` turns these collectives into reshards instead. XLA's view drops the shardings of
ops, so the collectives are found and marked at the start.
"""

from __future__ import annotations

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding

_MARK = "pyshardy.completes_sum"
_COLLECTIVES = ("sdy.all_reduce", "sdy.reduce_scatter")


def mark_completed_sums(root: Op, attrs: AttrTable) -> None:
    """Mark the collectives that complete sums."""
    for op in ops_named(root, _COLLECTIVES):
        if _completes(op):
            op.set_attr(_MARK, attrs.parse("unit"))


def forget_marks(root: Op) -> None:
    """Remove the marks."""
    for op in _marked(root):
        op.remove_attr(_MARK)


def leave_sums_to_passes(root: Op) -> None:
    """Turn the marked collectives into reshards."""
    for op in _marked(root):
        op.replace_attrs({"sharding": op.attrs["out_sharding"]})
        op.rename("sdy.reshard")


def _completes(op: Op) -> bool:
    sharding = get_sharding(op.operands[0])
    return sharding is not None and bool(sharding.unreduced)


def _marked(root: Op) -> list[Op]:
    return [op for op in ops_named(root, _COLLECTIVES) if _MARK in op.attrs]
