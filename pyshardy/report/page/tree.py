"""The ops of a program as a tree: by name scope, function and source line, with repeated parts folded.

A node is a list: name, kind, the number of parts that it stands for, and its children: nodes or numbers of ops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pyshardy.core.folding import fold_names
from pyshardy.core.scopes import user_scopes
from pyshardy.explain.subject import Label
from pyshardy.report.page.material import PageInput
from pyshardy.report.page.program import hidden_ops
from pyshardy.report.page.tables import Tables

SCOPE, LINE, OP, FOLDED = 0, 1, 2, 3
"""Kinds of nodes: a scope or function, a source line, equal ops, equal scopes."""
_BACKWARD = "transpose("
_PHASES = ("forward", "backward", "other ops")


@dataclass(slots=True)
class _Node:
    name: str
    kind: int
    below: dict[tuple[int, Hashable], _Node] = field(default_factory=dict)
    ops: list[int] = field(default_factory=list)

    def child(self, name: str, kind: int, key: Hashable = None) -> _Node:
        """The child of this name, created if it is missing."""
        return self.below.setdefault((kind, key or name), _Node(name, kind))

    @property
    def shape(self) -> Hashable:
        """The content without its own names; equal for equal layers."""
        if self.kind == OP:
            return next(iter(self.below), None), len(self.ops)
        return tuple((key, node.shape) for key, node in self.below.items())


def tree(material: PageInput, tables: Tables, tensors: Sequence[int]) -> list[Any]:
    """The top nodes.

    Args:
        material: The result.
        tables: The table of texts.
        tensors: The tensor of every value.
    """
    subject = material.why.subject
    program, hidden = subject.program, set(hidden_ops(material))
    shown = [op for op in range(subject.op_count) if op not in hidden]
    has_backward = any(_BACKWARD in (subject.labels[op].scope or "") for op in shown)
    top = _Node("", SCOPE)
    for phase in _PHASES if has_backward else ():
        top.child(phase, SCOPE)
    paths: dict[Label, list[tuple[str, int]]] = {}
    for op in shown:
        label = subject.labels[op]
        if label not in paths:
            paths[label] = path_of(label, has_backward)
        node = top
        for name, kind in paths[label]:
            node = node.child(name, kind)
        operands = tuple([tensors[value] for value in program.operands[op]])
        alike = label.name, operands, tuple([tensors[value] for value in program.results[op]])
        node.child(label.name, OP, alike).ops.append(op)
    return [_node(node, tables) for node in _folded(node for node in top.below.values() if node.below)]


def path_of(label: Label, has_phases: bool) -> list[tuple[str, int]]:
    """The scopes and the line of an op, from the outside in.

    Args:
        label: The label of the op.
        has_phases: Whether the program has a backward pass.

    >>> path_of(Label("stablehlo.add", "jit(f)/transpose(jvp(mlp))/add", "block", "src/model.py", 41), True)
    [('backward', 0), ('mlp', 0), ('model.py:41', 1)]
    """
    scope = label.scope or ""
    phase = _PHASES[1] if _BACKWARD in scope else _PHASES[0] if "jvp(" in scope else _PHASES[2]
    functions = [part for part in (label.function or "").split(".") if part and not part.startswith("<")]
    names = user_scopes(label.scope) or functions[-1:]
    path = [(name, SCOPE) for name in ([phase] if has_phases else []) + names]
    line = "no source line" if label.file is None else f"{PurePath(label.file).name}:{label.line}"
    return [*path, (line, LINE)]


def _folded(nodes: Iterable[_Node]) -> list[_Node | tuple[str, list[_Node]]]:
    """The nodes in order. Equal scopes whose names differ only in a number are folded."""
    listed = list(nodes)
    found: list[_Node | tuple[str, list[_Node]]] = []
    for folded in fold_names(
        (node.name, (node.kind, node.shape) if node.kind == SCOPE else id(node)) for node in listed
    ):
        members = [listed[member] for member in folded.members]
        found.append(members[0] if len(members) == 1 else (folded.name, members))
    return found


def _node(node: _Node | tuple[str, list[_Node]], tables: Tables) -> list[Any]:
    if isinstance(node, tuple):
        return [tables.text(node[0]), FOLDED, len(node[1]), [_node(member, tables) for member in node[1]]]
    below = node.ops if node.kind == OP else [_node(one, tables) for one in _folded(node.below.values())]
    return [tables.text(node.name), node.kind, len(node.ops) or 1, below]
