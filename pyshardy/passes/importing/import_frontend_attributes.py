"""`pyshardy-import-frontend-attributes`: imports Shardy's attributes from the strings that carry them through HLO."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from jaxlib.mlir import ir

from pyshardy.core.notation import parse_mesh, parse_sharding, parse_sharding_list
from pyshardy.errors import ShardyError
from pyshardy.ir.attribute_text import read_attribute
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.codecs import LISTS
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE, SHARDING, change_border_attrs, functions, is_declaration, signature
from pyshardy.ir.hlo_attributes import (
    FRONTEND_ATTRIBUTES,
    FRONTEND_RULE,
    FRONTEND_SHARDING,
    HLO_SHARDING,
    MESHES,
    frontend_attribute,
    keeps_sharding,
    with_frontend_attribute,
)
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shardings import ModuleMeshes, check_shardings
from pyshardy.ir.strings import check_names, is_utf8, readable
from pyshardy.passes.base import Pass
from pyshardy.rules.notation import parse_rule
from pyshardy.transforms.context import PassContext

_T = TypeVar("_T")


class ImportFrontendAttributes(Pass):
    """Turn `xla.sdy.*` strings in `mhlo.frontend_attributes` into meshes, shardings and rules.

    A module with these attributes also has `mhlo.sharding`, which is less precise; the pass removes it. As in XLA, the
    only ops that keep a sharding are custom calls for ops of the dialect, Python callbacks, and communication with the
    host.
    """

    name = "pyshardy-import-frontend-attributes"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        import_frontend_attributes(op, context)


def import_frontend_attributes(root: Op, context: PassContext) -> None:
    """Import frontend attributes; without meshes among them, import only rules."""
    meshes = frontend_attribute(root.attrs, MESHES)
    if meshes is not None:
        _import_meshes(root, meshes, context)
        root.replace_attrs(with_frontend_attribute(root.attrs, MESHES, None))
    known = context.meshes
    for function in functions(root):
        before = function.attrs
        change_border_attrs(function, partial(_import_entry, function, meshes is not None))
        if function.attrs is not before and not is_declaration(function):
            _check_borders(function, known)
    names = (FRONTEND_ATTRIBUTES,) if meshes is None else (FRONTEND_ATTRIBUTES, HLO_SHARDING)
    for name in names:
        for op in ops_with(root, name):
            _import_op(op, meshes is not None, known)


def _import_meshes(root: Op, text: str, context: PassContext) -> None:
    entries = read_attribute(root, MESHES, text)
    if not isinstance(entries, ir.DictAttr):
        raise PassError(root, f"has {MESHES} = {text}, and needs names with meshes in braces")
    check_names(entries)
    known = context.meshes
    last: Op | None = None
    for index in range(len(entries)):
        name, mesh = entries[index].name, _read(root, MESHES, str(entries[index].attr), parse_mesh)
        if name in known:
            if known[name] is not mesh:
                raise PassError(root, f"has two meshes @{name}: {known[name]} as an op, {mesh} in {MESHES}")
            continue
        op = Op("sdy.mesh", attrs={"sym_name": name, "mesh": mesh}, location=root.place)
        last = root.region.block.prepend(op) if last is None else op.insert_after(last)


def _import_entry(function: Op, has_meshes: bool, entry: Attributes) -> Attributes:
    """The attributes of an argument or result, with the frontend attributes imported."""
    text = frontend_attribute(entry, FRONTEND_SHARDING)
    if text is not None:
        entry = entry.with_value(SHARDING, _read(function, FRONTEND_SHARDING, text, parse_sharding))
        entry = with_frontend_attribute(entry, FRONTEND_SHARDING, None)
    return entry.without(HLO_SHARDING) if has_meshes or text is not None else entry


def _check_borders(function: Op, meshes: ModuleMeshes) -> None:
    for kind, types in zip(LISTS, signature(function)):
        entries = function.attrs.get(kind) or ()
        for type, sharding in zip(types, [entry.get(SHARDING) for entry in entries]):
            if sharding is not None:
                check_shardings(function, (sharding,), (type,), meshes)


def _import_op(op: Op, has_meshes: bool, meshes: ModuleMeshes) -> None:
    attrs = op.attrs
    rule = frontend_attribute(attrs, FRONTEND_RULE)
    if rule is not None:
        if op.name != "stablehlo.get_tuple_element":
            attrs = attrs.with_value(RULE, _read(op, FRONTEND_RULE, rule, parse_rule))
        attrs = with_frontend_attribute(attrs, FRONTEND_RULE, None)
    text = frontend_attribute(attrs, FRONTEND_SHARDING)
    if text is not None:
        if keeps_sharding(op):
            shardings = _read(op, FRONTEND_SHARDING, text, _parse_list)
            check_shardings(op, shardings, [result.type for result in op.results], meshes)
            attrs = attrs.with_value(SHARDING, shardings)
        attrs = with_frontend_attribute(attrs, FRONTEND_SHARDING, None)
    op.attrs = attrs.without(HLO_SHARDING) if has_meshes or text is not None else attrs


def _parse_list(text: str) -> Any:
    return parse_sharding_list(text) if text.lstrip().startswith("#sdy.sharding_per_value") else (parse_sharding(text),)


def _read(op: Op, name: str, text: str, parse: Callable[[str], _T]) -> _T:
    """Read the text of an attribute; errors point at the op."""
    if not is_utf8(text):
        raise PassError(op, f"has {name} = {readable(text)}, which is not UTF-8")
    try:
        return parse(text)
    except ShardyError as error:
        raise PassError(op, f"has {name} = {text}, which cannot be read: {error}") from error
