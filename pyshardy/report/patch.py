"""Constraints as a patch of the user's source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from difflib import unified_diff

from pyshardy.core.spec import format_spec
from pyshardy.report.constraints import PlanConstraint
from pyshardy.source.assignments import SourceAssignment, assignments, read_lines
from pyshardy.source.places import short_path
from pyshardy.source.syntax import name_of

_CONTEXTS = frozenset(("set_mesh", "use_mesh", "use_abstract_mesh"))
_MESHES = frozenset(("make_mesh", "Mesh", "AbstractMesh"))


def patch(constraints: Sequence[PlanConstraint]) -> str:
    """A unified diff for `patch -p1`, after a list of the constraints that it cannot hold.

    It adds a line after an assignment, and wraps a returned value. For other statements, and for files that cannot be
    read or have changed, the list says "after FILE:LINE: ...".

    Args:
        constraints: The constraints.
    """
    left_out: list[str] = []
    diffs: list[str] = []
    for file in dict.fromkeys(one.file for one in constraints):
        lines = read_lines(file)
        known = assignments(file, lines)
        here = [one for one in constraints if one.file == file]
        fitting = [(known[one.span], one) for one in here if one.span in known and known[one.span].is_alone]
        left_out += [f"after {one.place}: {one.text}\n" for one in here if one not in [other for _, other in fitting]]
        if fitting:
            diffs.append(file_diff(file, lines, patched(lines, fitting)))
    return "".join([*left_out, *diffs])


def file_diff(file: str, before: Sequence[str], after: Sequence[str]) -> str:
    """The unified diff of a file, for `patch -p1` in the current directory.

    Args:
        file: The file.
        before: Its lines, with their ends.
        after: Its new lines.
    """
    path = short_path(file)
    names = (f"a/{path}", f"b/{path}") if not path.startswith("/") else (path, path)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in unified_diff(before, after, *names))


def patched(lines: Sequence[str], constraints: Iterable[tuple[SourceAssignment, PlanConstraint]]) -> list[str]:
    """The lines of a file with constraints.

    Args:
        lines: The lines as they are, with their ends.
        constraints: The statements, and the constraints of what they make.

    >>> from pyshardy.source.assignments import SourceSpan
    >>> lines = ["import jax\\n", "def f(x):\\n", "    y = x + 1\\n", "    return y\\n"]
    >>> span = SourceSpan("f.py", 3, 8, 3, 13)
    >>> one = PlanConstraint("y", "f", *span, (8,), "f32", (("data",),), 1, 0.0, 0.0)
    >>> print("".join(patched(lines, [(assignments("f.py", lines)[span], one)])), end="")
    import jax
    def f(x):
        y = x + 1
        y = jax.lax.with_sharding_constraint(y, jax.sharding.PartitionSpec('data'))
        return y
    """
    found = [*lines]
    tree = ast.parse("".join(lines))
    spec_name = name_of_class(tree, "PartitionSpec")
    mesh = mesh_variable(tree)
    named = f"{name_of_class(tree, 'NamedSharding')}({mesh}, " if mesh else ""
    for statement, one in sorted(constraints, key=lambda pair: pair[0].line, reverse=True):
        spec = f"{named}{format_spec(one.axes, spec_name)}{')' if named else ''}"
        if statement.name:
            indent = found[statement.line - 1].encode()[: statement.column].decode()
            end = found[statement.end_line - 1]
            if not end.endswith("\n"):
                found[statement.end_line - 1] = f"{end}\n"
            call = f"jax.lax.with_sharding_constraint({statement.name}, {spec})"
            found.insert(statement.end_line, f"{indent}{statement.name} = {call}\n")
        else:
            _put(found, one.end_line, one.end_column, f", {spec})")
            _put(found, one.line, one.column, "jax.lax.with_sharding_constraint(")
    if not _has_jax(tree):
        found.insert(_first_import(tree), "import jax\n")
    return found


def _put(lines: list[str], line: int, column: int, text: str) -> None:
    whole = lines[line - 1].encode()
    lines[line - 1] = (whole[:column] + text.encode() + whole[column:]).decode()


def name_of_class(tree: ast.Module, what: str) -> str:
    """The name that a class of `jax.sharding` has in the file."""
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == what:
                return alias.asname or alias.name
    return f"jax.sharding.{what}"


def mesh_variable(tree: ast.Module) -> str:
    """The variable of the file that holds the mesh; empty if there is none, or if a context has it.

    Without a context, `with_sharding_constraint` does not take a `PartitionSpec` alone.
    """
    names = {name_of(node) for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))}
    if names & _CONTEXTS:
        return ""
    made = [
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name)
        if name_of(node.value.func) in _MESHES
    ]
    return made[0] if len(made) == 1 else ""


def _has_jax(tree: ast.Module) -> bool:
    names = [alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    return any(alias.asname == "jax" or (alias.asname is None and alias.name.split(".")[0] == "jax") for alias in names)


def _first_import(tree: ast.Module) -> int:
    """How many lines are before the first import, or the first statement behind the file's docstring."""
    for node in tree.body:
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_future and not is_docstring:
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            return min([node.lineno, *(one.lineno for one in decorators)]) - 1
    return 0
