"""The source of nodes: the MLIR module, and the numbers of its ops in its bytecode."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshardy.core.needs import Need
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.locations import with_need
from pyshardy.ir.mlir_ops import MlirOps

if TYPE_CHECKING:
    from pyshardy.ir.value_type import ValueType


class SourceKind:
    """Ops with one name and the same attributes, in the bytecode that they were read from.

    Attributes:
        op_name: The name.
        attrs: The attributes.
        name: The number of the name.
        attributes: The number of the discardable attributes, -1 if there are none.
        properties: The number of the inherent attributes, -1 if there are none.
    """

    __slots__ = ("op_name", "attrs", "name", "attributes", "properties")

    def __init__(self, op_name: str, attrs: Attributes, name: int, attributes: int, properties: int) -> None:
        self.op_name = op_name
        self.attrs = attrs
        self.name = name
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
        places: Per number of an op, its position in that block.
        mlir: Finds ops and blocks in the module.
        types: The types of values by their numbers in the bytecode.
        arg_places: For each location of block arguments, one argument with it, by the number of the location in the
            bytecode; -1 for an unknown location.
    """

    __slots__ = (
        "module", "code", "kinds", "locations", "blocks", "places", "mlir", "types", "arg_places", "_found",
    )  # fmt: skip

    def __init__(self, module: Any, code: Any) -> None:
        self.module = module
        self.code = code
        self.kinds: list[SourceKind] = []
        self.locations = array("I")
        self.blocks = array("i")
        self.places = array("i")
        self.mlir = MlirOps(module)
        self.types: dict[int, ValueType] = {}
        self.arg_places: dict[int, ArgPlace] = {}
        self._found: dict[int, Any] = {}

    def resize(self, count: int) -> None:
        """Make room for `count` ops, or drop the room after them."""
        for numbers in (self.locations, self.blocks, self.places):
            numbers.frombytes(bytes(numbers.itemsize * max(0, count - len(numbers))))
            del numbers[count:]

    def location(self, number: int) -> Any:
        """The MLIR location of an op; many ops share one."""
        known, key = self._found, self.locations[number]
        found = known.get(key)
        if found is None:
            found = known[key] = self.mlir.op_at(self.blocks[number], self.places[number]).location
        return found


class OpPlace(NamedTuple):
    """An op of an MLIR module, from which a node gets its location."""

    source: Source
    number: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.location(self.number)


class ArgPlace(NamedTuple):
    """A block argument of an MLIR module, from which a value gets its location: the numbers of block and argument."""

    source: Source
    block: int
    arg: int

    def location(self) -> Any:
        """The MLIR location."""
        return self.source.mlir.block(self.block).arguments[self.arg].location


class NeedPlace(NamedTuple):
    """The place of a collective, and of what it is made from: a location, and what the collective is for."""

    made: Any
    need: Need

    def location(self) -> Any:
        """The MLIR location, which names the need, too: XLA shows it in profiles as the name of the collective."""
        return self.made


def place_for(place: Any, need: Need) -> NeedPlace:
    """The place of a collective that the op at another place needs."""
    return NeedPlace(with_need(location_at(place), need), need)


def location_at(place: Any) -> Any:
    """The MLIR location that an object is, or provides."""
    return place.location() if type(place) in _PLACES else place


_PLACES = (OpPlace, ArgPlace, NeedPlace)


def location_identity(place: Any) -> Hashable:
    """What tells locations apart, without making them: ops that were read with one location have one identity.

    It holds as long as the place, or another with the same location, is alive.
    """
    if type(place) is OpPlace:
        return id(place.source), place.source.locations[place.number]
    return id(place)
