"""Changes of the user's source where it calls `jax.jit` or writes a `PartitionSpec`, as diffs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from pyshardy.autopartition.space import Dims
from pyshardy.core.spec import format_spec
from pyshardy.ir.locations import source_frames
from pyshardy.ir.nodes import Op, walk
from pyshardy.report.assignments import read_lines
from pyshardy.report.patch import file_diff, name_of
from pyshardy.report.places import is_library
from pyshardy.report.rules import without_end

_SPECS = frozenset(("P", "PS", "PartitionSpec"))


def user_files(root: Op) -> list[str]:
    """The files of the user's program, also of the calls that led to it, those that most ops name first.

    Args:
        root: The module.
    """
    texts = Counter(str(op.location) for op in walk(root))
    files: Counter[str] = Counter()
    for text, count in texts.items():
        for file in {file for file, _, _ in source_frames(text)}:
            files[file] += count
    found = sorted(file for file in files if not is_library(file))
    return sorted(found, key=lambda file: -files[file])


def jit_patch(files: Iterable[str], function: str, argument: str) -> str:
    """A diff that gives the `jax.jit` of a function one more argument; empty unless a file calls it at one place.

    Args:
        files: Where to look; the first one that has it counts.
        function: The name of the function.
        argument: The argument, such as "donate_argnames=('params',)".
    """
    places = ((file, [*_jits(syntax_tree(file), function)]) for file in files)
    file, found = next(((file, found) for file, found in places if found), ("", []))
    if len(found) != 1:
        return ""
    line, column, is_call = found[0]
    return replaced(file, line, column, column, f", {argument}" if is_call else f"({argument})")


def syntax_tree(file: str) -> ast.Module | None:
    """The syntax of a file; None if it cannot be read, or is not Python."""
    try:
        return ast.parse("".join(read_lines(file)))
    except (SyntaxError, ValueError):
        return None


def _jits(tree: ast.Module | None, function: str) -> Iterator[tuple[int, int, bool]]:
    """Where to write one more argument of `jit`: the line, the column, and whether it has arguments already."""
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Call) and _is_jit(node.func) and node.args and name_of(node.args[0]) == function:
            yield _end(node)
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for one in node.decorator_list:
                if _is_jit(one):
                    yield (one.end_lineno or 0, one.end_col_offset or 0, False)
                elif isinstance(one, ast.Call) and (_is_jit(one.func) or any(map(_is_jit, one.args[:1]))):
                    yield _end(one)


def _end(call: ast.Call) -> tuple[int, int, bool]:
    """Behind the last argument of a call."""
    ends = [(one.end_lineno or 0, one.end_col_offset or 0) for one in (*call.args, *(w.value for w in call.keywords))]
    return (*max(ends), True)


def _is_jit(node: ast.expr) -> bool:
    return name_of(node) == "jit"


def spec_patch(files: Iterable[str], key: str, old: Dims, new: Dims) -> str:
    """A diff that changes the spec of an input; empty unless one entry or argument of this name has the old spec.

    Args:
        files: Where to look; the first one that has it counts.
        key: The last part of the input's name.
        old: The axes that it has.
        new: The axes to write.
    """
    wanted = without_end(old)
    places = ((file, [one for one in _specs(syntax_tree(file), key) if _axes(one) == wanted]) for file in files)
    file, found = next(((file, found) for file, found in places if found), ("", []))
    if len(found) != 1 or found[0].lineno != found[0].end_lineno:
        return ""
    call = found[0]
    called = ast.unparse(call.func)
    return replaced(file, call.lineno, call.col_offset, call.end_col_offset or 0, format_spec(new, called))


def _specs(tree: ast.Module | None, key: str) -> Iterator[ast.Call]:
    """The specs that a dictionary or a call gives to a name."""
    for node in () if tree is None else ast.walk(tree):
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [(one.value, value) for one, value in zip(node.keys, node.values) if isinstance(one, ast.Constant)]
        elif isinstance(node, ast.Call):
            pairs = [(word.arg, word.value) for word in node.keywords]
        for name, value in pairs:
            for one in ast.walk(value) if name == key else ():
                if isinstance(one, ast.Call) and name_of(one.func) in _SPECS:
                    yield one


def _axes(call: ast.Call) -> Dims | None:
    """The axes in a call of `PartitionSpec`; None if they are not written out."""
    try:
        dims = [ast.literal_eval(one) for one in call.args]
    except ValueError:
        return None
    return without_end(tuple(() if dim is None else (dim,) if isinstance(dim, str) else tuple(dim) for dim in dims))


def replaced(file: str, line: int, column: int, end: int, text: str) -> str:
    """A diff that replaces a part of a line of a file; columns count bytes."""
    before = read_lines(file)
    whole = before[line - 1].encode()
    after = [*before]
    after[line - 1] = (whole[:column] + text.encode() + whole[end:]).decode()
    return file_diff(file, before, after)
