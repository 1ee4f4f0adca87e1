"""Conversion between MLIR attributes and types and pyshardy's values; each distinct one is converted once.

The attributes listed in `_CODECS` become values of `core` and `rules` when a module is read, and are built again when
it is written. Every other attribute stays an MLIR attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.notation import format_sharding_list, parse_mesh, parse_sharding, parse_sharding_list, scan_axis
from pyshardy.core.scanner import Scanner
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import quote, unquote
from pyshardy.errors import InvalidModuleError, UnsupportedVersionError
from pyshardy.ir.attributes import Attributes, freeze
from pyshardy.ir.nodes import ValueType
from pyshardy.ir.strings import check_names, make_string, make_symbol, string_value, symbol_name
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


SHARDING = _text_codec(parse_sharding, lambda sharding: f"#sdy.sharding{sharding}")
SHARDINGS = _text_codec(parse_sharding_list, lambda list_: f"#sdy.sharding_per_value{format_sharding_list(list_)}")
RULE = _text_codec(parse_rule, lambda rule: f"#sdy.op_sharding_rule{rule}")
MESH = _text_codec(parse_mesh, lambda mesh: f"#sdy.mesh{mesh}")
NAMES = _text_codec(parse_names, lambda names: f"#sdy<manual_axes{{{', '.join(map(quote, names))}}}>")
AXES = _text_codec(_parse_axis_list, lambda axes: f"#sdy<axis_ref_list{_format_axis_list(axes)}>")
AXES_PER_DIM = _text_codec(
    _parse_axis_lists, lambda dims: f"#sdy<list_of_axis_ref_lists[{', '.join(map(_format_axis_list, dims))}]>"
)
STRING = Codec(string_value, make_string)
SYMBOL = Codec(symbol_name, make_symbol)
INT32 = _integer_codec(32)
INT64 = _integer_codec(64)
_I64_ARRAY = Codec(tuple, lambda values: ir.DenseI64ArrayAttr.get(values))

_ANY_OP: dict[str, Codec] = {"sdy.sharding": SHARDINGS, "sdy.sharding_rule": RULE}
_ANY_SYMBOL = {"sym_name": STRING, "sym_visibility": STRING}
_SHARDING_OP = {"sharding": SHARDING}
_COLLECTIVE = {"out_sharding": SHARDING}

_CODECS: dict[str, dict[str, Codec]] = {
    "builtin.module": _ANY_SYMBOL,
    "func.func": {**_ANY_SYMBOL, "sdy.original_func_name": STRING},
    "func.call": {"callee": SYMBOL},
    "sdy.mesh": {"mesh": MESH, **_ANY_SYMBOL},
    "sdy.sharding_constraint": _SHARDING_OP,
    "sdy.reshard": _SHARDING_OP,
    "sdy.data_flow_edge": _SHARDING_OP,
    "sdy.manual_computation": {"in_shardings": SHARDINGS, "out_shardings": SHARDINGS, "manual_axes": NAMES},
    "sdy.named_computation": {"in_shardings": SHARDINGS, "out_shardings": SHARDINGS, "name": STRING},
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
ARG_CODECS = {"sdy.sharding": SHARDING}
LISTS = ("arg_attrs", "res_attrs")
"""Attributes of functions that hold a dictionary for every argument or result."""


class AttrTable:
    """The attributes and types of one context; each is converted once in each direction.

    Use it with its context entered.

    Attributes:
        loses_locations: Whether there are locations that MLIR's bytecode does not keep.
    """

    def __init__(self, loses_locations: bool = False) -> None:
        self.loses_locations = loses_locations
        self.has_odd_strings = False
        self._decoded_dicts: dict[Any, Attributes] = {}
        self._decoded: dict[tuple[Codec, Any], Any] = {}
        self._encoded: dict[tuple[Codec, Any], Any] = {}
        self._types: dict[Any, ValueType] = {}
        self._parsed: dict[str, Any] = {}
        self._tensors: dict[tuple[tuple[int, ...], str], ValueType] = {}
        self._likes: dict[tuple[tuple[int, ...], ValueType], ValueType] = {}
        self._with_references: frozenset[str] | None = frozenset(["callee"])

    def names_of_references(self) -> frozenset[str] | None:
        """Names of the attributes that refer to symbols other than meshes; None if any attribute may."""
        return self._with_references

    def type(self, mlir: Any) -> ValueType:
        """The one `ValueType` of an MLIR type."""
        found = self._types.get(mlir)
        if found is None:
            found = self._types[mlir] = _value_type(mlir)
        return found

    def known_types(self) -> Iterable[ValueType]:
        """All types requested so far: those of all values of the modules with this table, and others."""
        return self._types.values()

    def ranked_type(self, shape: tuple[int, ...], like: ValueType) -> ValueType:
        """The tensor type with another shape and the element type of `like`."""
        found = self._likes.get((shape, like))
        if found is None:
            made = _tensor_type(shape, ir.RankedTensorType(like.mlir).element_type)
            found = self._likes[shape, like] = self.type(made)
        return found

    def tensor_type(self, shape: tuple[int, ...], element: str) -> ValueType:
        """The tensor type of a shape and an element type given as text, such as "f32"."""
        found = self._tensors.get((shape, element))
        if found is None:
            found = self._tensors[shape, element] = self.type(_tensor_type(shape, ir.Type.parse(element)))
        return found

    def function_types(self, signature: Any) -> tuple[list[ValueType], list[ValueType]]:
        """The types of arguments and results from a function's `function_type`, whether read or set by a pass."""
        if isinstance(signature, tuple):
            return list(signature[0]), list(signature[1])
        mlir = ir.FunctionType(ir.TypeAttr(signature).value)
        return list(map(self.type, mlir.inputs)), list(map(self.type, mlir.results))

    def i64(self, value: int) -> Any:
        """`value : i64`."""
        return self._encode(INT64, value)

    def i64_array(self, values: tuple[int, ...]) -> Any:
        """`array<i64: values>`."""
        return self._encode(_I64_ARRAY, values)

    def parse(self, text: str) -> Any:
        """An opaque MLIR attribute from its text."""
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = ir.Attribute.parse(text)
            if "@" in text:
                self._with_references = None  # any op may get this attribute
        return found

    def decode_attrs(self, op_name: str, items: list[tuple[str, Any]]) -> Attributes:
        """The attributes of an op: values and opaque attributes."""
        codecs = _CODECS.get(op_name, _NO_CODECS)
        found: dict[str, Any] = {}
        lists = LISTS if op_name == "func.func" else ()
        for name, attr in items:
            if name in lists:
                found[name] = tuple([self._decode_dict(entry) for entry in ir.ArrayAttr(attr)])
                continue
            codec = codecs.get(name) or _ANY_OP.get(name)
            found[name] = value = attr if codec is None else self._decode(codec, attr)
            self._note_references((name,), value)
        return freeze(found)

    def _note_references(self, names: tuple[str, ...], value: Any) -> None:
        known = self._with_references
        if known is not None and not known.issuperset(names) and _refers(value):
            self._with_references = known.union(names)

    def codec(self, op_name: str, name: str) -> Codec | None:
        """The codec of an attribute of an op; None if the attribute stays an MLIR attribute."""
        return _CODECS.get(op_name, _NO_CODECS).get(name) or _ANY_OP.get(name)

    def text(self, codec: Codec | None, value: Any) -> str:
        """The text of an attribute; an older jaxlib's dialect may not be able to read it."""
        if codec is not None:
            return str(self._encode(codec, value)) if codec.form is None else codec.form(value)
        return str(_encode_signature(value) if isinstance(value, tuple) else value)

    def encode_attrs(self, op_name: str, attrs: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `decode_attrs`."""
        codecs = _CODECS.get(op_name, _NO_CODECS)
        found: dict[str, Any] = {}
        for name, value in attrs.items():
            codec = codecs.get(name) or _ANY_OP.get(name)
            found[name] = value if codec is None else self._encode(codec, value)
        if op_name == "func.func":
            self._encode_function(found)
        return found

    def _encode_function(self, attrs: dict[str, Any]) -> None:
        for name in LISTS:
            if name not in attrs:
                continue
            if any(attrs[name]):
                attrs[name] = ir.ArrayAttr.get([self._encode_dict(entry) for entry in attrs[name]])
            else:
                del attrs[name]
        signature = attrs["function_type"]
        if isinstance(signature, tuple):
            attrs["function_type"] = _encode_signature(signature)

    def _decode_dict(self, attr: Any) -> Attributes:
        found = self._decoded_dicts.get(attr)
        if found is None:
            content: dict[str, Any] = {}
            if self.has_odd_strings:
                check_names(attr)
            for index in range(len(attr)):
                entry = attr[index]
                name, value = entry.name, entry.attr
                if name in ARG_CODECS:
                    value = self._decode(ARG_CODECS[name], value)
                elif type(value) not in _WITHOUT_SYMBOLS:
                    self._note_references(LISTS, value)
                content[name] = value
            found = self._decoded_dicts[attr] = freeze(content)
        return found

    def _encode_dict(self, attrs: dict[str, Any]) -> Any:
        encoded = attrs.copy()
        for name, codec in ARG_CODECS.items():
            if name in attrs:
                encoded[name] = self._encode(codec, attrs[name])
        return ir.DictAttr.get(encoded)

    def _decode(self, codec: Codec, attr: Any) -> Any:
        key = (codec, attr)
        found = self._decoded.get(key)
        if found is None:
            found = self._decoded[key] = codec.decode(attr)
        return found

    def _encode(self, codec: Codec, value: Any) -> Any:
        key = (codec, value)
        found = self._encoded.get(key)
        if found is None:
            try:
                found = codec.encode(value)
            except ir.MLIRError as error:
                raise UnsupportedVersionError(
                    "writing an attribute of the sdy dialect",
                    got=_text_of(value),
                    needed="a jaxlib whose dialect can hold it",
                    hint="pip install --upgrade jax jaxlib, to 0.12 or newer",
                ) from error
            self._encoded[key] = found
        return found


_NO_CODECS: dict[str, Codec] = {}
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SYMBOL = rf"@([\w$.]+|{_QUOTED})"
_PATH_IN_TEXT = re.compile(rf"({_SYMBOL}(?:::{_SYMBOL})*)|{_QUOTED}")  # the group is empty for other quoted text


_LARGEST_SIZE = 2**63 - 1
_WITHOUT_SYMBOLS = frozenset((ir.StringAttr, ir.BoolAttr, ir.IntegerAttr, ir.UnitAttr))


def symbols_in(value: Any) -> list[tuple[str, ...]]:
    """The symbols that a node's attribute refers to, at any depth, as paths: `@a::@b` is ("a", "b")."""
    if type(value) in _WITHOUT_SYMBOLS:
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


def _refers(value: Any) -> bool:
    """Whether a node's attribute refers to symbols other than the meshes of shardings."""
    if type(value) in _WITHOUT_SYMBOLS or isinstance(value, TensorSharding):
        return False
    if isinstance(value, tuple):
        return any(map(_refers, value))
    return bool(symbols_in(value))


def string_of(value: Any) -> str | None:
    """The content of an opaque string attribute; None for another attribute, or a string with a type."""
    if type(value) is not ir.StringAttr or type(value.type) is not ir.NoneType:
        return None
    return string_value(value)


def _is_of_dialect(value: Any) -> bool:
    """Whether the bindings have no class for this attribute; constants of complex numbers do not count."""
    return type(value) is ir.Attribute and not isinstance(value.type, ir.ShapedType)


def _unquoted(name: str) -> str:
    return unquote(name[1:-1]) if name.startswith('"') else name


def _encode_signature(signature: tuple[list[ValueType], list[ValueType]]) -> Any:
    """The type of a function, as a pass has set it."""
    inputs, results = ([type.mlir for type in types] for types in signature)
    return ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _text_of(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], TensorSharding):
        return format_sharding_list(value)
    return str(value)


def _tensor_type(shape: tuple[int, ...], element: Any) -> Any:
    """A tensor type; -1 is a dynamic size."""
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [dynamic if size < 0 else size for size in shape]
    if max(sizes, default=0) > _LARGEST_SIZE:
        raise InvalidModuleError(
            "making the type of a tensor",
            got=f"a dimension of {max(sizes)}, with padding or before it is cut",
            needed=f"at most {_LARGEST_SIZE}, as MLIR counts in 64 bits",
        )
    return ir.RankedTensorType.get(sizes, element, loc=ir.Location.unknown())


def _value_type(mlir: Any) -> ValueType:
    try:
        shaped = ir.ShapedType(mlir)  # also for types of dialects, which have no class in the bindings
    except ValueError:
        return ValueType(mlir, None, str(mlir), False, False)
    if not shaped.has_rank:
        return ValueType(mlir, None, str(mlir), True, False)
    shape = tuple(-1 if shaped.is_dynamic_dim(dim) else shaped.get_dim_size(dim) for dim in range(shaped.rank))
    return ValueType(mlir, shape, str(shaped.element_type), True, isinstance(mlir, ir.RankedTensorType))
