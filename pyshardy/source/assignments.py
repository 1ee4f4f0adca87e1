"""Assignments and returned values in Python files, where constraints can be written."""

from __future__ import annotations

import ast
import linecache
from typing import NamedTuple


class SourceSpan(NamedTuple):
    """An expression in a file, as JAX writes it into locations.

    Attributes:
        file: The file.
        line: The first line, from 1.
        column: The column of its beginning in that line, from 0.
        end_line: The last line.
        end_column: The column after its end in that line.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: SourceSpan) -> bool:
        """Whether another expression is this one, or a part of it.

        >>> SourceSpan("f.py", 3, 4, 3, 20).contains(SourceSpan("f.py", 3, 8, 3, 20))
        True
        """
        return (
            self.file == other.file
            and (self.line, self.column) <= (other.line, other.column)
            and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        )


class SourceAssignment(NamedTuple):
    """A statement that gives one value a name, or returns it.

    Attributes:
        name: The name; "" for a returned value.
        span: The expression.
        line: The first line of the statement.
        end_line: Its last line.
        column: Where it begins.
        is_alone: Whether the lines hold no other statement.
    """

    name: str
    span: SourceSpan
    line: int
    end_line: int
    column: int
    is_alone: bool


def read_lines(file: str) -> list[str]:
    """The lines of a Python file or of a notebook's cell, with line ends; empty if it cannot be read."""
    linecache.checkcache(file)
    return linecache.getlines(file)


def assignments(file: str, lines: list[str]) -> dict[SourceSpan, SourceAssignment]:
    """The assignments to a name and the returned values, by expression; empty for a file that is not Python.

    Args:
        file: The file.
        lines: Its lines.

    >>> found = assignments("f.py", ["def f(x):\\n", "    y = x + 1\\n", "    return y * 2\\n"])
    >>> [(one.name, one.line) for one in found.values()]
    [('y', 2), ('', 3)]
    """
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        name, value = _named(node)
        if name is not None and isinstance(node, ast.stmt) and value is not None:
            span = _span(file, value)
            found[span] = SourceAssignment(
                name, span, node.lineno, node.end_lineno or node.lineno, node.col_offset, _is_alone(node, lines)
            )
    return found


def _named(node: ast.AST) -> tuple[str | None, ast.expr | None]:
    if isinstance(node, ast.Return):
        return "", node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return None, None


def _span(file: str, value: ast.expr) -> SourceSpan:
    """Where an expression is; Python's parser counts bytes, as JAX does."""
    return SourceSpan(file, value.lineno, value.col_offset, value.end_lineno or 0, value.end_col_offset or 0)


def _is_alone(node: ast.stmt, lines: list[str]) -> bool:
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    behind = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].strip()
    return not before.strip() and (not behind or behind.startswith(b"#"))
