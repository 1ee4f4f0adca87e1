"""The symbols that an attribute refers to."""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import unquote

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SYMBOL = rf"@([\w$.]+|{_QUOTED})"
_PATH_IN_TEXT = re.compile(rf"({_SYMBOL}(?:::{_SYMBOL})*)|{_QUOTED}")  # the group is empty for other quoted text
WITHOUT_SYMBOLS = frozenset((ir.StringAttr, ir.BoolAttr, ir.IntegerAttr, ir.UnitAttr))


def symbols_in(value: Any) -> list[tuple[str, ...]]:
    """The symbols that a node's attribute refers to, at any depth, as paths: `@a::@b` is ("a", "b")."""
    if type(value) in WITHOUT_SYMBOLS:
        return []
    if isinstance(value, TensorSharding):
        return [(value.mesh,)] if isinstance(value.mesh, str) else []
    if isinstance(value, (tuple, list, ir.ArrayAttr)):
        return [path for entry in value for path in symbols_in(entry)]
    if isinstance(value, dict):
        return [path for entry in value.values() for path in symbols_in(entry)]
    if isinstance(value, ir.DictAttr):
        return [path for index in range(len(value)) for path in symbols_in(value[index].attr)]
    if isinstance(value, (ir.FlatSymbolRefAttr, ir.SymbolRefAttr)) or _is_of_dialect(value):
        paths = [found.group(1) for found in _PATH_IN_TEXT.finditer(str(value))]
        return [tuple(map(_unquoted, re.findall(_SYMBOL, path))) for path in paths if path]
    return []


def refers(value: Any) -> bool:
    """Whether a node's attribute refers to symbols other than the meshes of shardings."""
    if type(value) in WITHOUT_SYMBOLS or isinstance(value, TensorSharding):
        return False
    if isinstance(value, tuple):
        return any(map(refers, value))
    return bool(symbols_in(value))


def _is_of_dialect(value: Any) -> bool:
    """Whether the bindings have no class for this attribute; constants of complex numbers do not count."""
    return type(value) is ir.Attribute and not isinstance(value.type, ir.ShapedType)


def _unquoted(name: str) -> str:
    return unquote(name[1:-1]) if name.startswith('"') else name
