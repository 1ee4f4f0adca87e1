"""Cures by leaving out constraints that the program has: each is tried without."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.source import replaced, syntax_tree
from pyshardy.core.spec import format_spec
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.traffic import frames_of
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.patch import name_of
from pyshardy.report.places import SourcePlace, format_place, user_place

_CONSTRAINT = "sdy.sharding_constraint"


def constraint_cures(module: Module) -> Iterator[Cure]:
    """The program without the constraints of one line each.

    Args:
        module: The program.
    """
    places: dict[SourcePlace, Op] = {}
    for op in walk(module.root):
        place = user_place(frames_of(op, module.name)) if op.name == _CONSTRAINT else None
        if place is not None:
            places.setdefault(place, op)
    for place, op in places.items():
        sharding = op.attrs["sharding"]
        spec = format_spec([str(axis).strip('"') for axis in axes] for axes in sharding.dim_axes)
        yield Cure(
            FindingKind.CONSTRAINT,
            f"the constraint {spec} at {format_place(place)} costs more than it saves",
            "what comes before it and what follows is sharded otherwise",
            place,
            f"leave out the constraint at {format_place(place)}",
            partial(_without, place=place),
            partial(_patch, place),
        )


def _without(module: Module, place: SourcePlace) -> Module:
    root = module.copy_root()
    for op in [op for op in walk(root) if op.name == _CONSTRAINT]:
        if user_place(frames_of(op, module.name)) == place:
            op.result.replace_uses(op.operands[0])
            op.erase()
    return module.with_root(root)


def _patch(place: SourcePlace) -> str:
    """A diff without the call; empty if the line has several, or one that goes over several lines."""
    file, line, _ = place
    tree = syntax_tree(file)
    calls = [
        node
        for node in (() if tree is None else ast.walk(tree))
        if isinstance(node, ast.Call) and name_of(node.func) == "with_sharding_constraint" and node.lineno == line
    ]
    if len(calls) != 1 or not calls[0].args or calls[0].end_lineno != line:
        return ""
    call = calls[0]
    return replaced(file, line, call.col_offset, call.end_col_offset or 0, ast.unparse(call.args[0]))
