"""Changes of the user's source where it calls `jax.jit`, as diffs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pyshardy.core.intern import register_cache
from pyshardy.ir.locations import source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.report.patch import file_diff, in_quotes_of
from pyshardy.source.assignments import read_lines
from pyshardy.source.meanings import name_of, value_of
from pyshardy.source.places import SourcePlace, is_library
from pyshardy.source.syntax import syntax_tree, with_imported

_JIT, _FILTER_JIT = "jit", "filter_jit"
_DONATE = "donate"
_PARTIAL = "partial"
_WRAPPERS = frozenset(("vmap", "checkpoint", "remat", _PARTIAL))
"""What makes a function of the name of another one."""
_IN, _OUT = "in_shardings", "out_shardings"
_SPECS = frozenset(("P", "PS", "PartitionSpec", "NamedSharding"))


@lru_cache(maxsize=2)
def user_files(root: Op) -> tuple[str, ...]:
    """The files of the user's program, also of the calls that led to it, those that most ops name first, and imports.

    Args:
        root: The module.
    """
    texts = Counter(str(op.location) for op in walk(root))
    files: Counter[str] = Counter()
    for text, count in texts.items():
        for file in {file for file, _, _ in source_frames(text)}:
            files[file] += count
    found = sorted(file for file in files if not is_library(file))
    return tuple(with_imported(sorted(found, key=lambda file: -files[file])))


register_cache(user_files.cache_clear)


def function_of(module: Module) -> str:
    """The name of the function that a program is."""
    return str(module.root.attrs.get("sym_name", "")).removeprefix("jit_")


class JitCall(NamedTuple):
    """Where a source jits a function.

    Attributes:
        file: The file.
        line: The line where one more argument can be written.
        column: The column there, in bytes.
        has_arguments: Whether there are arguments already.
        name: The function that jits as it is written, such as "jax.jit" or "eqx.filter_jit".
        out: The argument `out_shardings`, if there is one.
        ins: What `in_shardings` gives to each argument, by the argument's name.
        donated: The argument that says what is donated, if there is one.
    """

    file: str
    line: int
    column: int
    has_arguments: bool
    name: str
    out: ast.expr | None
    ins: Mapping[str, ast.expr] = {}
    donated: ast.keyword | None = None

    @property
    def is_equinox(self) -> bool:
        """Whether it is equinox's, which takes other arguments than that of JAX."""
        return self.name.endswith(_FILTER_JIT)

    @property
    def place(self) -> SourcePlace:
        """The place where one more argument can be written."""
        return self.file, self.line, self.column

    def patch(self, argument: str) -> str:
        """A diff that gives it one more argument.

        Args:
            argument: The argument, such as "donate_argnames=('params',)".
        """
        text = f", {argument}" if self.has_arguments else f"({argument})"
        return replaced(self.file, self.line, self.column, self.column, text)

    def donation_patch(self, argument: str) -> str:
        """A diff that says what is donated; empty where that stands on several lines.

        Args:
            argument: The argument that says so, for all that is to be donated.
        """
        word = self.donated
        if word is None:
            return self.patch(argument)
        if word.lineno != word.end_lineno:
            return ""
        return replaced(self.file, word.lineno, word.col_offset, word.end_col_offset or 0, argument)

    def is_spec(self, argument: str) -> bool:
        """Whether `in_shardings` has one spec for an argument, or a variable that is one."""
        tree, node = syntax_tree(self.file), self.ins.get(argument)
        if isinstance(node, ast.Name) and tree is not None:
            node = value_of(tree, node.id)
        return isinstance(node, ast.Call) and name_of(node.func) in _SPECS

    def out_patch(self, shardings: str) -> str:
        """A diff that gives it other `out_shardings`; empty where they stand on several lines.

        Args:
            shardings: The new ones as code.
        """
        if self.out is None:
            return self.patch(f"{_OUT}={shardings}")
        if self.out.lineno != self.out.end_lineno:
            return ""
        return replaced(self.file, self.out.lineno, self.out.col_offset, self.out.end_col_offset or 0, shardings)


def jit_call(files: Iterable[str], function: str) -> JitCall | None:
    """Where a function is jitted, or what another function makes it with; None unless a file does it at one place.

    Args:
        files: Where to look; the first one that jits it counts.
        function: The name of the function.
    """
    trees = {file: tree for file in files if (tree := syntax_tree(file)) is not None}
    names = [function, *(name for tree in trees.values() for name in _makers(tree, function))]
    places = ([*_jits(file, trees, names)] for file in trees)
    found = next(filter(None, places), [])
    return found[0] if len(found) == 1 else None


def _makers(tree: ast.Module, function: str) -> Iterator[str]:
    """The functions of a file that define a function and return it, as `make_step(model)` does."""
    for node in ast.walk(tree):
        inner = list(ast.walk(node)) if isinstance(node, ast.FunctionDef) else []
        is_made = any(isinstance(one, ast.FunctionDef) and one.name == function for one in inner[1:])
        returned = [one.value for one in inner if isinstance(one, ast.Return) and one.value is not None]
        if isinstance(node, ast.FunctionDef) and is_made and any(name_of(one) == function for one in returned):
            yield node.name


def _jits(file: str, trees: Mapping[str, ast.Module], names: Sequence[str]) -> Iterator[JitCall]:
    """The places where a file jits a function, or calls of what makes it."""
    function, *makers = names
    for node in ast.walk(trees[file]):
        if isinstance(node, ast.Call) and _is_jit(node.func) and node.args:
            own, given = _unwrapped(node.args[0])
            if name_of(own) == function or isinstance(own, ast.Call) and name_of(own.func) in makers:
                yield _call(file, node, node.func, _arguments([trees[file], *trees.values()], function)[given:])
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for one in node.decorator_list:
                if _is_jit(one):
                    yield JitCall(file, one.end_lineno or 0, one.end_col_offset or 0, False, ast.unparse(one), None)
                elif isinstance(one, ast.Call) and (_is_jit(one.func) or any(map(_is_jit, one.args[:1]))):
                    yield _call(file, one, one.func if _is_jit(one.func) else one.args[0], _names(node))


def _unwrapped(node: ast.expr) -> tuple[ast.expr, int]:
    """The function that `jax.vmap`, `functools.partial` or the like is called with, and how many arguments it is given.

    What they make has its name and its other arguments.
    """
    given = 0
    while isinstance(node, ast.Call) and name_of(node.func) in _WRAPPERS and node.args:
        given += len(node.args) - 1 if name_of(node.func) == _PARTIAL else 0
        node = node.args[0]
    return node, given


def _arguments(trees: Iterable[ast.Module], function: str) -> list[str]:
    """The arguments of a function; empty unless the first file that has one of this name has it once."""
    defined = (
        [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
        for tree in trees
    )
    found = next(filter(None, defined), [])
    return _names(found[0]) if len(found) == 1 else []


def _names(function: ast.FunctionDef) -> list[str]:
    """The arguments of a function; those of a method without `self`, which JAX does not see."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def _call(file: str, call: ast.Call, function: ast.expr, names: Sequence[str]) -> JitCall:
    """A call that jits a function with arguments of these names."""
    ends = [(one.end_lineno or 0, one.end_col_offset or 0) for one in (*call.args, *(w.value for w in call.keywords))]
    out = next((word.value for word in call.keywords if word.arg == _OUT), None)
    given = next((word.value for word in call.keywords if word.arg == _IN), None)
    donated = next((word for word in call.keywords if (word.arg or "").startswith(_DONATE)), None)
    entries = given.elts if isinstance(given, ast.Tuple | ast.List) else []
    ins = {name: one for name, one in _paired(names, entries) if not leaves_open(one)}
    return JitCall(file, *max(ends), True, ast.unparse(function), out, ins, donated)


def leaves_open(node: ast.AST) -> bool:
    """Whether an entry of `in_shardings` or `out_shardings` leaves some arrays to JAX."""
    if isinstance(node, ast.Constant):
        return node.value is None
    is_spec = isinstance(node, ast.Call) and name_of(node.func) in _SPECS
    return not is_spec and any(map(leaves_open, ast.iter_child_nodes(node)))


def _paired(names: Sequence[str], entries: Sequence[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Arguments with their entries of a tuple, which may have one part of unknown length."""
    unknown = [place for place, one in enumerate(entries) if isinstance(one, ast.Starred)]
    if not unknown:
        yield from zip(names, entries)
    elif len(unknown) == 1 and len(names) >= len(entries) - 1:
        behind = len(entries) - 1 - unknown[0]
        yield from zip(names[: unknown[0]], entries)
        yield from zip(names[len(names) - behind :], entries[unknown[0] + 1 :])


def _is_jit(node: ast.expr) -> bool:
    return name_of(node) in (_JIT, _FILTER_JIT)


def replaced(file: str, line: int, column: int, end: int, text: str) -> str:
    """A diff that replaces a part of a line of a file; columns count bytes."""
    return replaced_all(file, {(line, column, end): text})


def replaced_all(file: str, texts: Mapping[tuple[int, int, int], str]) -> str:
    """A diff that replaces parts of lines of a file.

    Args:
        file: The file.
        texts: The new texts by line, first column and the column after the last; columns count bytes. Strings in them
            get the quotes that the file has most.
    """
    before = read_lines(file)
    after = [*before]
    for (line, column, end), text in sorted(texts.items(), reverse=True):
        whole, new = after[line - 1].encode(), in_quotes_of(before, text).encode()
        after[line - 1] = (whole[:column] + new + whole[end:]).decode()
    return file_diff(file, before, after)
