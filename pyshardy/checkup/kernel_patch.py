"""Kernels called in `jax.shard_map`, as diffs of the user's source."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from pyshardy.checkup.source import replaced
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.report.patch import mesh_in, name_of_class
from pyshardy.source.places import SourcePlace
from pyshardy.source.syntax import name_of, syntax_tree


def kernel_patch(
    path: Sequence[SourcePlace], inputs: Sequence[Dims], outputs: Sequence[Dims], mesh: Mapping[str, int]
) -> str:
    """A diff that calls the function around a kernel in `jax.shard_map`; empty if it is not sure that this is the same.

    It is if the function hands its arguments to the kernel as they are, and a line calls it once. Of several such
    lines the outermost counts, as functions that JAX differentiates by rules of the user call it, too.

    Args:
        path: The user's calls that led to the kernel, innermost first.
        inputs: The axes of its operands.
        outputs: The axes of its results.
        mesh: The sizes of the axes of the mesh.
    """
    function = _function_around(path[0]) if path else None
    if function is None or len(inputs) != len(function.args.args):
        return ""
    for file, line, _ in reversed(path[1:]):
        tree = syntax_tree(file)
        if tree is None:
            continue
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and node.lineno == line and name_of(node.func) == function.name
        ]
        if len(calls) == 1 and len(calls[0].args) == len(inputs) and not calls[0].keywords:
            called = calls[0].func
            code, needed = mesh_in(file, tree, mesh)
            code = _own_mesh(tree, line) or code
            if needed or called.lineno != called.end_lineno:
                return ""
            name = name_of_class(tree, "PartitionSpec")
            ins, outs = ([format_spec(dims, name) for dims in given] for given in (inputs, outputs))
            given = ", ".join(filter(None, [
                ast.unparse(called), f"mesh={code}" if code else "", f"in_specs={_one_or_tuple(ins)}",
                f"out_specs={_one_or_tuple(outs)}", "check_vma=False",
            ]))  # fmt: skip
            return replaced(file, line, called.col_offset, called.end_col_offset or 0, f"jax.shard_map({given})")
    return ""


def _one_or_tuple(specs: Sequence[str]) -> str:
    """One spec, which is that of all, or several."""
    return specs[0] if len(specs) == 1 else f"({', '.join(specs)})"


def _function_around(place: SourcePlace) -> ast.FunctionDef | None:
    """The function that a line is in, if it hands its arguments as they are to what the line calls."""
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
    if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or not names:
        return None
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    handed = [[one.id if isinstance(one, ast.Name) else "" for one in call.args] for call in calls]
    return function if names in handed else None


def _own_mesh(tree: ast.Module, line: int) -> str:
    """The mesh if the function that a line is in gets it; else empty."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [one for one in functions if one.lineno <= line <= (one.end_lineno or 0)]
    return "mesh" if any(given.arg == "mesh" for one in around for given in one.args.args) else ""
