"""A program with fewer layers: of each family of repeated layers the first and the last stay, and some of the others.

The result is a program with so few layers: the arguments and results of the other layers are also left out. An op that
used a value of an omitted layer uses that of the nearest layer before it; behind a backward pass, which runs the last
layer first, it uses that of the layer in the middle, which is the one that stands for those that are omitted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from jaxlib.mlir import ir

from pyshardy.costing.further_layers import FIRST, LAST, MIDDLE
from pyshardy.ir.attributes import NO_ATTRS
from pyshardy.ir.functions import main_function, return_op, signature
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.searching.autopartition.stretches import Stretch
from pyshardy.searching.program.layers import LayerFamily, PlacedStretch, ops_in_layer_order

BETWEEN: Final = 3
"""A kind of part of a stretch beside its three layers: ops between layers belong to the stretch after them."""
_ALIAS: Final = "tf.aliasing_output"


class Part(NamedTuple):
    """The part of a short program that an op is in, as its location says.

    Attributes:
        stretch: The number of the stretch of equal layers.
        kind: `FIRST`, `MIDDLE`, `LAST` or `BETWEEN`.
        offset: The place in its layer, a number that no op of another stretch has; -1 between layers.
    """

    stretch: int
    kind: int
    offset: int


def part_of(op: Op) -> Part | None:
    """The part of a short program that an op is in, or serves if a pass made the op; None if it is unknown."""
    found = part_in(op.location)
    return None if found is None else Part(*found)


class Short(NamedTuple):
    """A short program.

    Attributes:
        root: The module.
        inputs: The positions of its arguments among those of the whole program.
        outputs: The positions of its results among those of the whole program.
    """

    root: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def shorten(root: Op, families: Sequence[LayerFamily], middle: Mapping[int, int]) -> Short:
    """A program with two layers of most families, and more of some. The context must be entered.

    If there are any families, the locations of ops say their parts.

    Args:
        root: The module; it does not change.
        families: Its families of layers.
        middle: How many layers stay between the first and the last one, by the number of the family.
    """
    return _Shortener(root, families, middle).shortened()


class _Shortener:
    def __init__(self, root: Op, families: Sequence[LayerFamily], middle: Mapping[int, int]) -> None:
        self.root, self.main = root, main_function(root)
        self.ops = ops_in_layer_order(root, families)
        self.parts: dict[Op, Part] = {}
        self.stand_in: dict[Op, Op] = {}
        self.later: dict[Op, dict[Op, Op]] = {}
        """By the last op of a layer those that its ops stand for from there on."""
        self.gone: set[Op] = set()
        self.has_layers = bool(families)
        self._choose(families, middle)
        self._choose_copies()

    def _choose(self, families: Sequence[LayerFamily], middle: Mapping[int, int]) -> None:
        """Decide of every op whether it stays, and in which part it is."""
        ops = self.ops
        found = _in_order(families)
        place = 0
        for number, (stretch, placed, family) in enumerate(found):
            count = middle.get(families.index(family), 0)
            for op in ops[place : stretch.start]:
                self.parts[op] = Part(number, BETWEEN, -1)
            latest = -1
            left_out: list[int] = []
            for round_ in range(stretch.rounds):
                start = stretch.start + round_ * stretch.period
                kind = _kind(placed.layer(round_), family, count)
                if kind is None:
                    left_out.append(start)
                elif kind == MIDDLE and placed.sign < 0:
                    self._let_stand_for(start, left_out, stretch.period)
                    left_out = []
                for offset in range(stretch.period):
                    op = ops[start + offset]
                    if kind is None:
                        self.stand_in[op] = ops[latest + offset]
                    else:
                        self.parts[op] = Part(number, kind, stretch.start + offset)
                latest = start if kind is not None else latest
            place = stretch.end
        for op in ops[place:]:
            self.parts[op] = Part(len(found), BETWEEN, -1)

    def _let_stand_for(self, start: int, left_out: Iterable[int], period: int) -> None:
        """Let the layer that starts at an op stand for layers before it, for what follows."""
        ops = self.ops
        self.later[ops[start + period - 1]] = {
            ops[other + offset]: ops[start + offset] for other in left_out for offset in range(period)
        }

    def _choose_copies(self) -> None:
        """Put ops before all layers that prepare the weights of one layer, such as bf16 copies, into that layer."""
        numbers = {op: number for number, op in enumerate(self.ops)}
        for op in reversed(self.ops):
            if self.parts.get(op) is None or self.parts[op].offset != -1 or not _is_copy_of_argument(op, numbers):
                continue
            uses = [(user, operand) for value in op.results for user, operand in value.uses]
            if not uses or any(user not in numbers for user, _ in uses):
                continue
            kept = [(self.parts[user], operand) for user, operand in uses if user in self.parts]
            if not kept:
                self.gone.add(op)
                del self.parts[op]
            elif BETWEEN not in (kinds := {part.kind for part, _ in kept}) and len(kinds) == 1:
                part, operand = min(kept)
                self.parts[op] = part._replace(offset=(part.offset + 1) * len(self.ops) + operand)

    def shortened(self) -> Short:
        new = Op("builtin.module", attrs=self.root.attrs, region_count=1, location=self.root.place)
        new.source, new.number = self.root.source, self.root.number  # so that it is written as bytecode
        top = new.region.add_block()
        for op in self.root.region.block:
            if op is not self.main:
                top.append(op.clone())
        function = Op("func.func", attrs=self.main.attrs, region_count=1, location=self.main.place)
        top.append(function)
        inputs, outputs = self._fill(function)
        self._set_border(function, inputs, outputs)
        return Short(new, tuple(inputs), tuple(outputs))

    def _fill(self, function: Op) -> tuple[list[int], list[int]]:
        """Fill a function with what stays; the positions of its arguments and results."""
        block, mapping = function.region.add_block(), dict[Value, Value]()
        dropped = self._dropped_arguments()
        inputs = []
        for argument in self.main.region.blocks[0].args:
            if argument not in dropped:
                mapping[argument] = block.add_arg(argument.type, argument.place)
                inputs.append(argument.index)
        for op in self.ops:
            part = self.parts.get(op)
            if op in self.gone:
                continue
            if part is None:
                for result, other in zip(op.results, self.stand_in[op].results):
                    mapping[result] = mapping[other]
                continue
            copy = block.append(op.clone(mapping))
            if self.has_layers:
                copy.location = with_part(copy.location, part)
            for left_out, own in self.later.get(op, {}).items():
                mapping.update((old, mapping[new]) for old, new in zip(left_out.results, own.results))
        end = return_op(self.main)
        outputs = [
            index
            for index, value in enumerate(end.operands)
            if value not in dropped and (value.defining_op is None or value.defining_op in self.parts)
        ]
        block.append(Op(end.name, [mapping[end.operands[index]] for index in outputs], (), end.attrs, 0, end.place))
        return inputs, outputs

    def _dropped_arguments(self) -> set[Value]:
        """The arguments that only ops use that are left out."""
        left_out = {value for op in (*self.stand_in, *self.gone) for value in _used(op) if value.defining_op is None}
        return left_out.difference(value for op in self.parts for value in _used(op))

    def _set_border(self, function: Op, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        place_of = {index: place for place, index in enumerate(outputs)}
        for kind, kept in (("arg_attrs", inputs), ("res_attrs", outputs)):
            entries = function.attrs.get(kind)
            if entries:
                function.set_attr(kind, tuple([_renumbered(entries[index], place_of) for index in kept]))
        function.set_attr("function_type", signature(function))


class LayerRun(NamedTuple):
    """What a short program leaves out of a stretch.

    Attributes:
        family: The number of its kind of layers.
        sign: -1 if the last layer runs first; else 1.
        size: How many layers there are.
    """

    family: int
    sign: int
    size: int


def layer_runs(families: Sequence[LayerFamily]) -> list[LayerRun]:
    """The stretches, by their numbers."""
    return [LayerRun(families.index(one), placed.sign, one.size) for _, placed, one in _in_order(families)]


def _in_order(families: Sequence[LayerFamily]) -> list[tuple[Stretch, PlacedStretch, LayerFamily]]:
    return sorted((placed.stretch, placed, family) for family in families for placed in family.stretches)


def _kind(layer: int, family: LayerFamily, middle: int) -> int | None:
    """The kind of a layer; None if it is left out."""
    if not family.first <= layer <= family.last:
        return BETWEEN
    if layer in (family.first, family.last):
        return FIRST if layer == family.first else LAST
    return MIDDLE if layer <= family.first + middle else None


def _is_copy_of_argument(op: Op, top: Container[Op]) -> bool:
    """Whether ops of one operand each make a value from an argument of the function."""
    made: Op | None = op
    while made is not None:
        if made not in top or len(made.operands) != 1 or made.regions:
            return False
        made = made.operands[0].defining_op
    return True


def _used(op: Op) -> Sequence[Value]:
    return [value for one in walk(op) for value in one.operands] if op.regions else op.operands


def _renumbered(attrs: Any, place_of: dict[int, int]) -> Any:
    """The attributes of an argument, whose memory a result takes that has another number, or none."""
    alias = attrs.get(_ALIAS) if attrs else None
    if alias is None:
        return attrs or NO_ATTRS
    place = place_of.get(int(alias))
    if place is None:
        return attrs.without(_ALIAS)
    return attrs.with_value(_ALIAS, ir.IntegerAttr.get(alias.type, place))


def with_part(location: Any, part: Sequence[int]) -> Any:
    """A location that also says a part. The context must be entered.

    Args:
        location: The location of an op; None if it has none.
        part: The part, as numbers.
    """
    location = ir.Location.unknown() if location is None else location
    return ir.Location.fused([location], ir.DenseI64ArrayAttr.get(list(part)))


def part_in(location: Any) -> tuple[int, ...] | None:
    """The part that a location says, or the first of several; None if it says none.

    >>> from pyshardy.ir.context import make_context
    >>> with make_context():
    ...     part_in(ir.Location.name("cause", with_part(ir.Location.unknown(), (0, 1, -1))))
    (0, 1, -1)
    """
    while isinstance(location, ir.NameLoc):
        location = location.child_loc
    if not isinstance(location, ir.FusedLoc):
        return None
    metadata = None if location.metadata is None else location.metadata.maybe_downcast()
    if isinstance(metadata, ir.DenseI64ArrayAttr):
        return tuple([int(number) for number in metadata])
    return next((part for part in map(part_in, location.locations) if part is not None), None)
