"""Kernels called in `jax.shard_map`, as diffs of the user's source."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.report.patch import mesh_in, name_of_class
from pyshardy.source.meanings import name_of
from pyshardy.source.places import SourcePlace, format_place
from pyshardy.source.syntax import syntax_tree


class KernelCall(NamedTuple):
    """The line that calls the function around a kernel.

    Attributes:
        file: The file.
        call: The call.
    """

    file: str
    call: ast.Call

    @property
    def line(self) -> tuple[str, int]:
        """The file and the line."""
        return self.file, self.call.lineno

    @property
    def text(self) -> str:
        """The function and its place, in words."""
        return f"`{name_of(self.call.func)}` at {format_place((*self.line, 0))}"

    def patch(self, inputs: Sequence[Dims], outputs: Sequence[Dims], mesh: Mapping[str, int]) -> str:
        """A diff that makes the call one of `jax.shard_map`; empty if it is not sure that this is the same.

        Args:
            inputs: The axes of the operands.
            outputs: The axes of the results.
            mesh: The sizes of the axes of the mesh.
        """
        tree, called = syntax_tree(self.file), self.call.func
        if tree is None:
            return ""
        code, needed = mesh_in(self.file, tree, mesh)
        code = _own_mesh(tree, self.call.lineno) or code
        if needed or called.lineno != called.end_lineno:
            return ""
        name = name_of_class(tree, "PartitionSpec")
        ins, outs = ([format_spec(dims, name) for dims in given] for given in (inputs, outputs))
        given = ", ".join(filter(None, [
            ast.unparse(called), f"mesh={code}" if code else "", f"in_specs={_one_or_tuple(ins)}",
            f"out_specs={_one_or_tuple(outs)}", "check_vma=False",
        ]))  # fmt: skip
        return replaced(
            self.file, called.lineno, called.col_offset, called.end_col_offset or 0, f"jax.shard_map({given})"
        )


def kernel_call(path: Sequence[SourcePlace], count: int) -> KernelCall | None:
    """The line that calls the function around a kernel; None if it is not sure which.

    The function hands its arguments to the kernel as they are, maybe through others, and a line calls it once. Of
    several such lines the outermost counts, as functions that JAX differentiates by rules of the user call it, too.

    Args:
        path: The user's calls that led to the kernel, innermost first.
        count: The number of operands of the kernel.
    """
    around = ((depth, _function_around(place, count)) for depth, place in enumerate(path))
    depth, function = next(((depth, one) for depth, one in around if one is not None), (0, None))
    if function is None:
        return None
    for file, line, _ in reversed(path[depth + 1 :]):
        tree = syntax_tree(file)
        calls = [
            node
            for node in (() if tree is None else ast.walk(tree))
            if isinstance(node, ast.Call) and node.lineno == line and name_of(node.func) == function.name
        ]
        if len(calls) == 1 and len(calls[0].args) == count and not calls[0].keywords:
            return KernelCall(file, calls[0])
    return None


def _one_or_tuple(specs: Sequence[str]) -> str:
    """One spec, which is that of all, or several."""
    return specs[0] if len(specs) == 1 else f"({', '.join(specs)})"


def _function_around(place: SourcePlace, count: int) -> ast.FunctionDef | None:
    """The function that a line is in, if it hands its arguments, as many as these, as they are to what the line calls.

    Others may come before them, such as the name of the kernel.
    """
    file, line, _ = place
    tree = syntax_tree(file)
    around = [
        node
        for node in (() if tree is None else ast.walk(tree))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return None
    function = max(around, key=lambda node: node.lineno)
    given = function.args
    names = [one.arg for one in given.args]
    if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or len(names) != count:
        return None
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    handed = [[one.id if isinstance(one, ast.Name) else "" for one in call.args[-count:]] for call in calls]
    return function if names in handed else None


def _own_mesh(tree: ast.Module, line: int) -> str:
    """The mesh if the function that a line is in gets it; else empty."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [one for one in functions if one.lineno <= line <= (one.end_lineno or 0)]
    return "mesh" if any(given.arg == "mesh" for one in around for given in one.args.args) else ""
