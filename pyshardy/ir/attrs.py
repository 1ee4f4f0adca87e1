"""Conversion between MLIR attributes and types and pyshardy's values; each distinct one is converted once.

The attributes listed in `CODECS` become values of `core` and `rules` when a module is read, and are built again when
it is written. Every other attribute stays an MLIR attribute.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.notation import format_sharding_list
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import UnsupportedVersionError
from pyshardy.ir.attributes import Attributes, freeze
from pyshardy.ir.codecs import ANY_OP, ARG_CODECS, CODECS, I64_ARRAY, INT64, LISTS, NO_CODECS, Codec
from pyshardy.ir.mlir_types import signature_type, tensor_type, value_type
from pyshardy.ir.strings import check_names
from pyshardy.ir.symbol_paths import WITHOUT_SYMBOLS, refers
from pyshardy.ir.value_type import ValueType


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
            found = self._types[mlir] = value_type(mlir)
        return found

    def known_types(self) -> Iterable[ValueType]:
        """All types requested so far: those of all values of the modules with this table, and others."""
        return self._types.values()

    def ranked_type(self, shape: tuple[int, ...], like: ValueType) -> ValueType:
        """The tensor type with another shape and the element type of `like`."""
        found = self._likes.get((shape, like))
        if found is None:
            made = tensor_type(shape, ir.RankedTensorType(like.mlir).element_type)
            found = self._likes[shape, like] = self.type(made)
        return found

    def tensor_type(self, shape: tuple[int, ...], element: str) -> ValueType:
        """The tensor type of a shape and an element type given as text, such as "f32"."""
        found = self._tensors.get((shape, element))
        if found is None:
            found = self._tensors[shape, element] = self.type(tensor_type(shape, ir.Type.parse(element)))
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
        return self._encode(I64_ARRAY, values)

    def parse(self, text: str) -> Any:
        """An opaque MLIR attribute from its text."""
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = ir.Attribute.parse(text)
            if "@" in text:
                self._with_references = None  # any op may get this attribute
        return found

    def integers(self, values: Iterable[int], shape: Sequence[int], element: str = "i64") -> Any:
        """A dense attribute of the integers, in row-major order; `element` is i32 or i64.

        Long lists of devices are read five times as fast from bytes as from numbers.
        """
        data = array({"i32": "i", "i64": "q"}[element], values).tobytes().hex()
        return self.parse(f'dense<"0x{data}"> : tensor<{"x".join(map(str, (*shape, element)))}>')

    def device_rows(self, rows: Sequence[Sequence[int]]) -> Any:
        """Lists of devices of equal length, such as replica groups or the pairs of a permutation, as an attribute.

        Args:
            rows: At least one list.
        """
        return self.integers(chain.from_iterable(rows), (len(rows), len(rows[0])))

    def decode_attrs(self, op_name: str, items: list[tuple[str, Any]]) -> Attributes:
        """The attributes of an op: values and opaque attributes."""
        codecs = CODECS.get(op_name, NO_CODECS)
        found: dict[str, Any] = {}
        lists = LISTS if op_name == "func.func" else ()
        for name, attr in items:
            if name in lists:
                found[name] = tuple([self._decode_dict(entry) for entry in ir.ArrayAttr(attr)])
                continue
            codec = codecs.get(name) or ANY_OP.get(name)
            found[name] = value = attr if codec is None else self._decode(codec, attr)
            self._note_references((name,), value)
        return freeze(found)

    def _note_references(self, names: tuple[str, ...], value: Any) -> None:
        known = self._with_references
        if known is not None and not known.issuperset(names) and refers(value):
            self._with_references = known.union(names)

    def codec(self, op_name: str, name: str) -> Codec | None:
        """The codec of an attribute of an op; None if the attribute stays an MLIR attribute."""
        return CODECS.get(op_name, NO_CODECS).get(name) or ANY_OP.get(name)

    def text(self, codec: Codec | None, value: Any) -> str:
        """The text of an attribute; an older jaxlib's dialect may not be able to read it."""
        if codec is not None:
            return str(self._encode(codec, value)) if codec.form is None else codec.form(value)
        return str(signature_type(value) if isinstance(value, tuple) else value)

    def encode_attrs(self, op_name: str, attrs: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `decode_attrs`."""
        codecs = CODECS.get(op_name, NO_CODECS)
        found: dict[str, Any] = {}
        for name, value in attrs.items():
            codec = codecs.get(name) or ANY_OP.get(name)
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
            attrs["function_type"] = signature_type(signature)

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
                elif type(value) not in WITHOUT_SYMBOLS:
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


def _text_of(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], TensorSharding):
        return format_sharding_list(value)
    return str(value)
