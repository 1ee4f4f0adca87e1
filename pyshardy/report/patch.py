"""Constraints as a patch of the user's source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import NamedTuple

from pyshardy.core.spec import format_spec
from pyshardy.report.constraints import PlanConstraint
from pyshardy.source.assignments import SourceAssignment, assignments, read_lines
from pyshardy.source.constraining import CONSTRAIN, SPECS
from pyshardy.source.imports import imports_of
from pyshardy.source.meanings import name_of
from pyshardy.source.places import short_path
from pyshardy.source.syntax import syntax_tree

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")
_MESHES = frozenset(("make_mesh", "Mesh", "AbstractMesh"))


def patch(constraints: Sequence[PlanConstraint], mesh: Mapping[str, int] | None = None) -> str:
    """A unified diff for `patch -p1`, after a list of the constraints that it cannot hold.

    It adds a line after an assignment, and wraps a returned value. For other statements, and for files that cannot be
    read or have changed, the list says "after FILE:LINE: ...".

    Args:
        constraints: The constraints.
        mesh: The sizes of the axes of their mesh, for files that have no mesh; else these need a context.
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
            diffs.append(file_diff(file, lines, patched(lines, fitting, file, mesh)))
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


def in_quotes_of(lines: Sequence[str], code: str) -> str:
    """Code whose strings have the quotes that most strings of a file have.

    Args:
        lines: The lines of the file.
        code: The code, with strings in single quotes.

    >>> in_quotes_of(['axes = "data", "model"\\n'], "P('data')")
    'P("data")'
    """
    text = "".join(lines)
    return code.replace("'", '"') if text.count('"') > text.count("'") and '"' not in code else code


def patched(
    lines: Sequence[str],
    constraints: Iterable[tuple[SourceAssignment, PlanConstraint]],
    file: str = "",
    mesh: Mapping[str, int] | None = None,
) -> list[str]:
    """The lines of a file with constraints.

    Args:
        lines: The lines as they are, with their ends.
        constraints: The statements, and the constraints of what they make.
        file: The file.
        mesh: The sizes of the axes of the mesh.

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
    written, needed = mesh_in(file, tree, mesh)
    named = f"{name_of_class(tree, 'NamedSharding')}({written}, " if written else ""
    for statement, one in sorted(constraints, key=lambda pair: pair[0].line, reverse=True):
        spec = in_quotes_of(lines, f"{named}{format_spec(one.axes, spec_name)}{')' if named else ''}")
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
    imports = [*([] if imports_jax(tree) else ["import jax\n"]), *([needed] if needed else [])]
    found[_first_import(tree) : _first_import(tree)] = imports
    return found


def mesh_in(file: str, tree: ast.Module, mesh: Mapping[str, int] | None) -> tuple[str, str]:
    """The mesh as code in a file, and the import that this needs; empty if constraints there are by specs alone.

    It is the file's own, or that of a file that it imports from, or else one without devices.

    Args:
        file: The file.
        tree: Its syntax.
        mesh: The sizes of the axes of the mesh.
    """
    own = mesh_variable(tree)
    if own or not mesh or _constrains_by_specs(tree):
        return own, ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for other, module in imports_of(file, tree):
        known = syntax_tree(other)
        name = "" if known is None else mesh_variable(known)
        if name and name in _imported(tree, module):
            return name, ""
        if name and name not in names:
            return name, f"from {module} import {name}\n"
    auto = f"(jax.sharding.AxisType.Auto,) * {len(mesh)}"
    return f"jax.sharding.AbstractMesh({tuple(mesh.values())}, {tuple(mesh)}, {auto})", ""


def _imported(tree: ast.Module, module: str) -> set[str]:
    """The names that a file imports from a module."""
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    here = [node for node in nodes if "." * node.level + (node.module or "") == module]
    return {alias.name for node in here for alias in node.names if alias.asname is None}


def _constrains_by_specs(tree: ast.Module) -> bool:
    """Whether a file hands specs without a mesh to `with_sharding_constraint`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_of(node.func) == CONSTRAIN]
    specs = [one.args[1] for one in calls if len(one.args) > 1]
    return any(isinstance(one, ast.Call) and name_of(one.func) in SPECS for one in specs)


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
    """The variable of the file that holds the mesh; empty if there is none.

    Outside a context, `with_sharding_constraint` does not take a `PartitionSpec` alone, and a context that the file
    opens need not be around the step.
    """
    made = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        if isinstance(target := node.targets[0] if isinstance(node, ast.Assign) else node.target, ast.Name)
        if name_of(node.value.func) in _MESHES
    ]
    return made[0] if len(made) == 1 else ""


def imports_jax(tree: ast.Module) -> bool:
    """Whether a file imports `jax` under its own name."""
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


class _Edit(NamedTuple):
    """Lines that replace those of a file from `first` to before `last`."""

    first: int
    last: int
    lines: tuple[str, ...]


def merged_patches(patches: Sequence[str]) -> str:
    """One diff for several of the same files as they are, for `patch -p1` and `git apply`.

    Args:
        patches: The diffs. If two of them change the same words, both stay, one behind the other.

    >>> one, two = ("--- a/f.py\\n+++ b/f.py\\n@@ -1,2 +1,2 @@\\n-x = 1\\n+x = 2\\n y\\n",
    ...             "--- a/f.py\\n+++ b/f.py\\n@@ -1,2 +1,3 @@\\n x = 1\\n y\\n+z\\n")
    >>> print(merged_patches([one, two]), end="")
    --- a/f.py
    +++ b/f.py
    @@ -1,2 +1,3 @@
    -x = 1
    +x = 2
     y
    +z
    """
    given = [text for text in patches if text]
    if len(given) < 2:
        return "".join(given)
    files: dict[tuple[str, str], tuple[dict[int, str], list[_Edit]]] = {}
    for text in given:
        for names, lines, edits in _parsed_patch(text):
            known, others = files.setdefault(names, ({}, []))
            known |= lines
            for edit in edits:
                if edit not in others:
                    joined = _joined(known, others, edit)
                    if joined is None:
                        return "".join(patches)
                    others[:] = joined
    return "".join(_diff_of(names, known, edits) for names, (known, edits) in files.items())


def changed_places(patch: str) -> list[tuple[str, int]]:
    """The files and lines that a diff changes, in its order.

    Args:
        patch: The diff.

    >>> changed_places("--- a/f.py\\n+++ b/f.py\\n@@ -1,2 +1,2 @@\\n x = 1\\n-y = 2\\n+y = 3\\n")
    [('f.py', 2)]
    """
    return [(old.removeprefix("a/"), edit.first + 1) for (old, _), _, edits in _parsed_patch(patch) for edit in edits]


def _parsed_patch(text: str) -> Iterator[tuple[tuple[str, str], dict[int, str], list[_Edit]]]:
    """The files of a diff: their names, the old lines that it shows, by number, and the edits."""
    lines = text.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines[:-1]) if line[:4] == "--- " and lines[at + 1][:4] == "+++ "]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        old: dict[int, str] = {}
        edits: list[_Edit] = []
        at = 0
        for line in lines[start + 2 : end]:
            hunk = _HUNK.match(line)
            if hunk:
                at = int(hunk[1]) - (hunk[2] != "0")
            elif line[0] == "+":
                last = edits.pop() if edits and edits[-1].last == at else _Edit(at, at, ())
                edits.append(_Edit(last.first, at, (*last.lines, line[1:])))
            else:
                old[at] = line[1:]
                at += 1
                if line[0] == "-":
                    last = edits.pop() if edits and edits[-1].last == at - 1 else _Edit(at - 1, at - 1, ())
                    edits.append(_Edit(last.first, at, last.lines))
        yield (lines[start][4:].rstrip(), lines[start + 1][4:].rstrip()), old, edits


def _joined(old: Mapping[int, str], edits: Sequence[_Edit], new: _Edit) -> list[_Edit] | None:
    """Edits with one more; None if it changes words that another one changes."""
    clashing = [one for one in edits if one.first < new.last and new.first < one.last or one[:2] == new[:2]]
    if not clashing:
        return sorted([*edits, new])
    if len(clashing) > 1 or clashing[0][:2] != new[:2]:
        return None
    one = clashing[0]
    if one.first == one.last:
        both = _Edit(one.first, one.last, (*one.lines, *new.lines))
    elif one.last - one.first == len(one.lines) == len(new.lines) == 1:
        line = _both(old[one.first], one.lines[0], new.lines[0])
        if line is None:
            return None
        both = _Edit(one.first, one.last, (line,))
    else:
        return None
    return sorted([*(other for other in edits if other is not one), both])


def _both(old: str, one: str, other: str) -> str | None:
    """A line with the changes of two others; None if they overlap.

    >>> _both("f(a)", "f(a, b)", "f(a, c)"), _both("f(a)", "g(a)", "h(a)")
    ('f(a, b, c)', None)
    """
    changes = [
        (start, end, text[first:last])
        for text in (one, other)
        for tag, start, end, first, last in SequenceMatcher(None, old, text, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    found, done = [], 0
    for start, end, text in sorted(changes, key=lambda change: change[:2]):
        if start < done:
            return None
        found += [old[done:start], text]
        done = end
    return "".join([*found, old[done:]])


def _diff_of(names: tuple[str, str], old: Mapping[int, str], edits: Sequence[_Edit]) -> str:
    """A diff of the lines that are known of a file; between stretches of them lines are left out."""
    stretches: list[list[int]] = []
    for number in sorted(old):
        if stretches and stretches[-1][-1] == number - 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    found, shift = [f"--- {names[0]}\n+++ {names[1]}\n"], 0
    for numbers in stretches or [[]]:
        first, end = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
        here = [one for one in edits if first <= one.first and one.last <= end]
        body: list[str] = []
        at = first
        for one in here:
            body += [f" {old[number]}" for number in range(at, one.first)]
            body += [f"-{old[number]}" for number in range(one.first, one.last)]
            body += [f"+{line}" for line in one.lines]
            at = one.last
        body += [f" {old[number]}" for number in range(at, end)]
        count = len(numbers) + sum(len(one.lines) - (one.last - one.first) for one in here)
        starts = first + bool(numbers), first + shift + bool(count)
        found.append(f"@@ -{starts[0]}{_size(len(numbers))} +{starts[1]}{_size(count)} @@\n")
        found += [line if line.endswith("\n") else f"{line}\n" for line in body]
        shift += count - len(numbers)
    return "".join(found)


def _size(count: int) -> str:
    return "" if count == 1 else f",{count}"
