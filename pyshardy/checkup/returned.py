"""The shardings of a program's outputs as code: the tree that `jax.jit` takes as `out_shardings`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyshardy.checkup.source import JitCall
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.report.patch import mesh_variable, name_of_class
from pyshardy.source.syntax import syntax_tree

_NAME = re.compile(r"result((?:\[\d+\]|\['[^']*'\])*)")
_PART = re.compile(r"\[(?:(\d+)|'([^']*)')\]")
_NONE = "None"

_Path = tuple[int | str, ...]


def returned_patch(call: JitCall | None, outputs: Mapping[str, Dims | None]) -> str:
    """A diff that gives the `jax.jit` of a function shardings of all its outputs.

    Args:
        call: Where the function is jitted; None if that is unknown.
        outputs: The axes of each output by its name; None for one that JAX may shard as it likes.

    Returns:
        The diff; empty where the outputs are other trees than tuples of dictionaries, or equinox jits the function.
    """
    tree = syntax_tree(call.file) if call is not None else None
    if call is None or tree is None or call.is_equinox:
        return ""
    mesh = mesh_variable(tree)
    spec, sharding = (name_of_class(tree, name) for name in ("PartitionSpec", "NamedSharding"))

    def text(axes: Dims | None) -> str:
        if axes is None:
            return _NONE
        return f"{sharding}({mesh}, {format_spec(axes, spec)})" if mesh else format_spec(axes, spec)

    leaves: list[tuple[_Path, str]] = []
    for name, axes in outputs.items():
        found = _NAME.fullmatch(name)
        if found is None:
            return ""
        parts = _PART.findall(found[1])
        leaves.append((tuple(int(number) if number else key for number, key in parts), text(axes)))
    code = _tree(leaves, 0)
    return call.out_patch(code) if code else ""


def _tree(leaves: Sequence[tuple[_Path, str]], depth: int) -> str:
    """A tree of outputs as code; equal shardings are written once. Empty if it cannot be written.

    >>> _tree([((0, "v"), "a"), ((0, "w"), "b"), ((1,), "None")], 0)
    "({'v': a, 'w': b}, None)"
    """
    if len({text for _, text in leaves}) == 1:
        return leaves[0][1]
    branches: dict[int | str, list[tuple[_Path, str]]] = {}
    for path, text in leaves:
        if len(path) <= depth:
            return ""
        branches.setdefault(path[depth], []).append((path, text))
    inner = {key: _tree(branch, depth + 1) for key, branch in branches.items()}
    if not all(inner.values()):
        return ""
    if all(isinstance(key, str) for key in inner):
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in inner.items()) + "}"
    if depth or list(inner) != list(range(len(inner))):  # a list or a tuple: names do not say which
        return ""
    return f"({', '.join(inner.values())}{',' if len(inner) == 1 else ''})"
