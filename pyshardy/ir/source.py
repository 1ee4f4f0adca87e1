"""What nodes were read from: the MLIR module, and the numbers that its ops have in its bytecode."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshardy.ir.mlir_ops import MlirOps

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


class Source:
    """The MLIR module that nodes were read from.

    Args:
        module: The module; it must not change.
        code: Its bytecode.

    Attributes:
        kinds: Per number of an op, its kind.
        locations: Per number of an op, the number of its location in the bytecode.
        blocks: Per number of an op, the number of the block it is in.
        places: Per number of an op, its place there.
        mlir: Finds what is asked for in the module.
        types: The types of values by their numbers in the bytecode.
        arg_places: An argument of a block with each location that any has, by the number of the location in the
            bytecode, -1 for an unknown one.
        names: The names of the ops.
        is_intact: Whether the nodes are as they were read, but for their attributes.
        uses_in_order: Whether the uses of every value, as read, are in the order of the ops, the last one first.
    """

    __slots__ = (
        "module", "code", "kinds", "locations", "blocks", "places", "mlir", "types", "arg_places", "names", "is_intact",
        "uses_in_order", "_found",
    )  # fmt: skip

    def __init__(self, module: Any, code: Any) -> None:
        self.module = module
        self.code = code
        self.kinds: list[Kind] = []
        self.locations = array("I")
        self.blocks = array("i")
        self.places = array("i")
        self.mlir = MlirOps(module)
        self.types: dict[int, ValueType] = {}
        self.arg_places: dict[int, ArgPlace] = {}
        self.names = frozenset(code.names)
        self.is_intact = True
        self.uses_in_order = True
        self._found: dict[int, Any] = {}

    def resize(self, count: int) -> None:
        """Make room for the numbers of so many ops, or give up what is behind them."""
        for numbers in (self.locations, self.blocks, self.places):
            numbers.frombytes(bytes(numbers.itemsize * max(0, count - len(numbers))))
            del numbers[count:]

    def location(self, number: int) -> Any:
        """The MLIR location of an op; many ops have the same."""
        known, key = self._found, self.locations[number]
        found = known.get(key)
        if found is None:
            found = known[key] = self.mlir.op_at(self.blocks[number], self.places[number]).location
        return found


class Place(NamedTuple):
    """An op of an MLIR module, as the location of a node."""

    source: Source
    number: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.location(self.number)


class ArgPlace(NamedTuple):
    """An argument of a block of an MLIR module, as the location of a value: by the numbers of the block and of it."""

    source: Source
    block: int
    arg: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.mlir.block(self.block).arguments[self.arg].location


def location_at(place: Any) -> Any:
    """The MLIR location that something is, or stands for."""
    return place.location() if type(place) is Place or type(place) is ArgPlace else place
