"""Loops that keep values of all their steps for the gradient, and `jax.checkpoint` around what they run."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.locations import source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.trip_counts import LOOP
from pyshardy.report.patch import imports_jax
from pyshardy.source.assignments import read_lines
from pyshardy.source.meanings import name_of
from pyshardy.source.places import SourcePlace, is_library
from pyshardy.source.syntax import syntax_tree

_SCAN = "scan"
_EMPTY = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.constant"))
"""What makes the arrays that a loop fills."""
_AGAIN = frozenset(("checkpoint", "remat", "filter_checkpoint"))
"""What computes values again instead of keeping them."""


class KeepingLoop(NamedTuple):
    """A loop that keeps values of all its steps.

    Attributes:
        place: Its line.
        bytes: The bytes of these on all devices.
    """

    place: SourcePlace
    bytes: int

    def patch(self) -> str:
        """A diff that computes them again; empty unless the line has one `jax.lax.scan` that does not yet."""
        file, line, _ = self.place
        tree = syntax_tree(file)
        nodes = [] if tree is None else list(ast.walk(tree))
        calls = [one for one in nodes if isinstance(one, ast.Call) and name_of(one.func) == _SCAN and one.args]
        own = [one.args[0] for one in calls if one.lineno == line]
        if tree is None or len(own) != 1 or own[0].lineno != own[0].end_lineno or not imports_jax(tree):
            return ""
        function, end = own[0], own[0].end_col_offset or 0
        defined = [one for one in nodes if isinstance(one, ast.FunctionDef) and one.name == name_of(function)]
        if any(name_of(one) in _AGAIN for node in (function, *defined) for one in ast.walk(node)):
            return ""
        text = read_lines(file)[function.lineno - 1].encode()[function.col_offset : end].decode()
        return replaced(file, function.lineno, function.col_offset, end, f"jax.checkpoint({text})")


def keeping_loop(module: Module) -> KeepingLoop | None:
    """The loop of the user's that keeps most; None if no loop keeps values.

    Args:
        module: The program.
    """
    found = []
    for op in ops_named(module.root, (LOOP,)):
        frames = [frame for frame in source_frames(op.location, module.name) if not is_library(frame[0])]
        if frames and (kept := _kept_bytes(op)):
            found.append(KeepingLoop(frames[0], kept))
    return max(found, key=lambda one: one.bytes, default=None)


def _kept_bytes(loop: Op) -> int:
    """The bytes of the arrays that a loop fills."""
    pairs = [(one.defining_op, result.type) for one, result in zip(loop.operands, loop.results)]
    made = [type_ for op, type_ in pairs if op is not None and op.name in _EMPTY and type_.shape]
    return sum(known_bytes(one.shape, one.element) for one in made)
