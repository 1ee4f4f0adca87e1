"""Which attributes become values of pyshardy, and how each kind is read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.notation import format_sharding_list, parse_mesh, parse_sharding, parse_sharding_list, scan_axis
from pyshardy.core.scanner import Scanner
from pyshardy.core.text import quote
from pyshardy.ir.strings import make_string, make_symbol, string_value, symbol_name
from pyshardy.rules.notation import parse_rule


@dataclass(frozen=True, slots=True, eq=False)
class Codec:
    """How to read and build one kind of attribute, and how to write its text if that needs no attribute."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]
    form: Callable[[Any], str] | None = None


def _text_codec(parse: Callable[[str], Any], form: Callable[[Any], str]) -> Codec:
    return Codec(lambda attr: parse(str(attr)), lambda value: ir.Attribute.parse(form(value)), form)


def parse_names(text: str) -> tuple[str, ...]:
    """The names in `#sdy<manual_axes{...}>`; raises `NotationError` at the offending place."""
    scanner = Scanner(text, "reading manual axes")
    scanner.expect("#sdy<manual_axes{")
    names = scanner.comma_list(lambda: scanner.string("an axis name"), "}")
    return tuple(names)


def _scan_axis_list(scanner: Scanner) -> tuple[AxisRef, ...]:
    scanner.expect("{")
    return tuple(scanner.comma_list(lambda: scan_axis(scanner), "}"))


def _parse_axis_list(text: str) -> tuple[AxisRef, ...]:
    scanner = Scanner(text, "reading a list of axes")
    scanner.expect("#sdy<axis_ref_list")
    return _scan_axis_list(scanner)


def _parse_axis_lists(text: str) -> tuple[tuple[AxisRef, ...], ...]:
    scanner = Scanner(text, "reading axes per dimension")
    scanner.expect("#sdy<list_of_axis_ref_lists")
    scanner.expect("[")
    return tuple(scanner.comma_list(lambda: _scan_axis_list(scanner), "]"))


def _format_axis_list(axes: tuple[AxisRef, ...]) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"


def _decode_integer(attr: Any) -> int:
    return ir.IntegerAttr(attr).value


def _integer_codec(width: int) -> Codec:
    return Codec(_decode_integer, lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value))


SHARDING_CODEC = _text_codec(parse_sharding, lambda sharding: f"#sdy.sharding{sharding}")
SHARDINGS = _text_codec(parse_sharding_list, lambda list_: f"#sdy.sharding_per_value{format_sharding_list(list_)}")
RULE_CODEC = _text_codec(parse_rule, lambda rule: f"#sdy.op_sharding_rule{rule}")
MESH = _text_codec(parse_mesh, lambda mesh: f"#sdy.mesh{mesh}")
NAMES = _text_codec(parse_names, lambda names: f"#sdy<manual_axes{{{', '.join(map(quote, names))}}}>")
AXES = _text_codec(_parse_axis_list, lambda axes: f"#sdy<axis_ref_list{_format_axis_list(axes)}>")
AXES_PER_DIM = _text_codec(
    _parse_axis_lists, lambda dims: f"#sdy<list_of_axis_ref_lists[{', '.join(map(_format_axis_list, dims))}]>"
)
STRING_CODEC = Codec(string_value, make_string)
SYMBOL = Codec(symbol_name, make_symbol)
INT32 = _integer_codec(32)
INT64 = _integer_codec(64)
I64_ARRAY = Codec(tuple, lambda values: ir.DenseI64ArrayAttr.get(values))
ANY_OP: dict[str, Codec] = {"sdy.sharding": SHARDINGS, "sdy.sharding_rule": RULE_CODEC}
_ANY_SYMBOL = {"sym_name": STRING_CODEC, "sym_visibility": STRING_CODEC}
_SHARDING_OP = {"sharding": SHARDING_CODEC}
_COLLECTIVE = {"out_sharding": SHARDING_CODEC}
CODECS: dict[str, dict[str, Codec]] = {
    "builtin.module": _ANY_SYMBOL,
    "func.func": {**_ANY_SYMBOL, "sdy.original_func_name": STRING_CODEC},
    "func.call": {"callee": SYMBOL},
    "sdy.mesh": {"mesh": MESH, **_ANY_SYMBOL},
    "sdy.sharding_constraint": _SHARDING_OP,
    "sdy.reshard": _SHARDING_OP,
    "sdy.data_flow_edge": _SHARDING_OP,
    "sdy.manual_computation": {"in_shardings": SHARDINGS, "out_shardings": SHARDINGS, "manual_axes": NAMES},
    "sdy.named_computation": {"in_shardings": SHARDINGS, "out_shardings": SHARDINGS, "name": STRING_CODEC},
    "sdy.sharding_group": {"group_id": INT64},
    "sdy.propagation_barrier": {"allowed_direction": INT32},
    "sdy.all_gather": {**_COLLECTIVE, "gathering_axes": AXES_PER_DIM},
    "sdy.all_slice": {**_COLLECTIVE, "slicing_axes": AXES_PER_DIM},
    "sdy.all_to_all": _COLLECTIVE,
    "sdy.collective_permute": _COLLECTIVE,
    "sdy.all_reduce": {**_COLLECTIVE, "reduction_axes": AXES, "reduction_op": INT32},
    "sdy.reduce_scatter": {**_COLLECTIVE, "reduce_scatter_axes": AXES_PER_DIM, "reduction_op": INT32},
    "sdy.sharded_to_unreduced": {**_COLLECTIVE, "axes": AXES_PER_DIM},
    "sdy.replicated_to_unreduced": {**_COLLECTIVE, "axes": AXES},
}
ARG_CODECS = {"sdy.sharding": SHARDING_CODEC}
LISTS = ("arg_attrs", "res_attrs")
"""Attributes of functions that hold a dictionary for every argument or result."""
NO_CODECS: dict[str, Codec] = {}
