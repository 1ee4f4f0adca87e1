"""What nodes were read from: the MLIR module, and the numbers that its ops have in its bytecode."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshardy.ir.mlir_ops import all_ops

if TYPE_CHECKING:
    from pyshardy.ir.nodes import ValueType


class Kind:
    """What ops have in common that have one name and the same attributes, in the bytecode they were read from.

    Attributes:
        name: The name; empty for functions, whose attributes hold lists: no two functions are of one kind.
        attrs: The attributes.
        head: The number of the name, encoded.
        mask: The part of the mask that tells which numbers follow in `tail`.
        tail: The numbers of the discardable attributes and of the inherent ones (the properties), encoded.
        properties: The number of the properties, -1 if there are none.
        attributes: The number of the discardable attributes, -1 if there are none.
    """

    __slots__ = ("name", "attrs", "head", "mask", "tail", "attributes", "properties")

    def __init__(
        self, name: str, attrs: dict[str, Any], head: bytes, mask: int, tail: bytes, attributes: int, properties: int
    ) -> None:
        self.name = name
        self.attrs = attrs
        self.head = head
        self.mask = mask
        self.tail = tail
        self.attributes = attributes
        self.properties = properties


@dataclass(slots=True, eq=False)
class Source:
    """The MLIR module that nodes were read from.

    Attributes:
        module: The module; it must not change.
        code: Its bytecode.
        kinds: Per number of an op, its kind.
        locations: Per number of an op, the number of its location in the bytecode.
        types: The types of values by their numbers in the bytecode.
        arg_places: An argument of a block with each location that any has, by the number of the location in the
            bytecode, -1 for an unknown one.
        ops: The ops of the module, every op before what it holds, once someone has asked for one.
    """

    module: Any
    code: Any
    kinds: list[Kind] = field(default_factory=list)
    locations: array[int] = field(default_factory=lambda: array("I"))
    types: dict[int, ValueType] = field(default_factory=dict)
    arg_places: dict[int, ArgPlace] = field(default_factory=dict)
    ops: list[Any] = field(default_factory=list)

    def op(self, number: int) -> Any:
        """An op of the MLIR module."""
        if not self.ops:
            self.ops = all_ops(self.module)
        return self.ops[number]


class Place(NamedTuple):
    """An op of an MLIR module, as the location of a node."""

    source: Source
    number: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.op(self.number).location


class ArgPlace(NamedTuple):
    """An argument of a block of an MLIR module, as the location of a value: by the op, and from there by position."""

    source: Source
    op: int
    region: int
    block: int
    arg: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.op(self.op).regions[self.region].blocks[self.block].arguments[self.arg].location


def location_at(place: Any) -> Any:
    """The MLIR location that something is, or stands for."""
    return place.location() if type(place) is Place or type(place) is ArgPlace else place
