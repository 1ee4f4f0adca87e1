"""How a program uses its inputs. The uses tell which values the inputs may have.

Every input is followed to the ops that compute with its elements: through ops that only move or convert them, also in
functions and loops. That is enough to draw weights that keep magnitudes, and indices within bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.functions import functions, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Region, Value
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.runtime.contractions import CONTRACTIONS, products_summed

_MOVED = {
    "stablehlo.broadcast_in_dim": (0,), "stablehlo.concatenate": None, "stablehlo.convert": (0,),
    "stablehlo.dynamic_slice": (0,), "stablehlo.pad": (0,), "stablehlo.reshape": (0,), "stablehlo.reverse": (0,),
    "stablehlo.slice": (0,), "stablehlo.transpose": (0,), "sdy.reshard": (0,), "sdy.sharding_constraint": (0,),
}  # fmt: skip
"""Ops whose result has elements of operands, each with the numbers of these operands; None for all."""
_MOVED_INDICES = {
    "stablehlo.add": None, "stablehlo.clamp": (1,), "stablehlo.gather": (0,), "stablehlo.select": (1, 2),
    "stablehlo.subtract": (0,),
}  # fmt: skip
"""Ops that indices also go through: `x[i]` adds the size if i is negative."""
_OF_POSITIVE = frozenset(("stablehlo.log", "stablehlo.rsqrt", "stablehlo.sqrt"))
_SCALING = frozenset(("stablehlo.divide", "stablehlo.multiply"))
_CALLING = frozenset(("func.call", "sdy.manual_computation", "sdy.named_computation", "stablehlo.while"))
_RETURNING = frozenset(("func.return", "sdy.return", "stablehlo.return"))


@dataclass(slots=True)
class InputUse:
    """The values that an input may have.

    Attributes:
        fan_in: The largest number of products of its elements that are summed; 1 if it is not a weight.
        size: For indices, the smallest size of the dimensions that they index; None if it is not an index.
        is_not_negative: Whether the program takes a root or logarithm of its elements.
        is_count: Whether it is an exponent, such as the number of a step.
    """

    fan_in: int = 1
    size: int | None = None
    is_not_negative: bool = False
    is_count: bool = False


def input_uses(module: Module) -> dict[int, InputUse]:
    """The values that every input may have, by its number.

    A floating-point input of rank 2 or more that becomes an operand of a product or the kernel of a convolution is a
    weight. If both operands are inputs, the left one is data, as in `x @ w`, and stays data.
    """
    functions_by_name = {function.attrs["sym_name"]: function for function in functions(module.root)}
    found = _Uses(functions_by_name)
    args = main_function(module.root).region.blocks[0].args
    with module.context:
        for arg in args:
            found.follow(arg)
        return {arg.index: found.of(arg) for arg in args}


class _TracedValue(NamedTuple):
    """A value that has elements of an input.

    Attributes:
        value: The value.
        is_changed: Whether they were scaled or something was added to them.
        part: Their part of the last dimension, if that is joined from several values, such as indices into several
            dimensions; None otherwise.
        calls: The calls around this value.
    """

    value: Value
    is_changed: bool = False
    part: int | None = None
    calls: tuple[Op, ...] = ()


@dataclass(slots=True)
class _Reached:
    """An op that elements of an input reach: the operand, and the value before."""

    op: Op
    operand: int
    place: _TracedValue


@dataclass(slots=True)
class _Uses:
    functions: Mapping[str, Op]
    reached: dict[Value, list[_Reached]] = field(default_factory=dict)
    inputs: dict[tuple[Op, int], Value] = field(default_factory=dict)
    """The input that an operand has unchanged elements of."""
    reader: OpSpecReader = field(default_factory=OpSpecReader)

    def follow(self, arg: Value) -> None:
        """Find all ops that the elements of an input reach."""
        is_float = _is_float(arg)
        reached: list[_Reached] = []
        start = _TracedValue(arg)
        seen, pending = {start}, [start]
        while pending:
            place = pending.pop()
            for op, operand in place.value.uses:
                reached.append(_Reached(op, operand, place))
                if not place.is_changed:
                    self.inputs[op, operand] = arg
                for following in self._behind(op, operand, place, is_float):
                    if following not in seen:
                        seen.add(following)
                        pending.append(following)
        self.reached[arg] = reached

    def _behind(self, op: Op, operand: int, place: _TracedValue, is_float: bool) -> Iterator[_TracedValue]:
        """The values that the elements of an operand reach next."""
        if op.name in _CALLING:
            yield from self._inside(op, operand, place)
        elif op.name in _RETURNING:
            yield from _outside(op, operand, place)
        elif op.name == "stablehlo.optimization_barrier":
            yield place._replace(value=op.results[operand])
        elif _moves(op, operand, _MOVED) or (not is_float and _moves(op, operand, _MOVED_INDICES)):
            yield place._replace(value=op.results[0], part=_part(op, operand, place.part))
        elif is_float and (op.name == "stablehlo.add" or _is_scaled(op, operand)):
            yield place._replace(value=op.results[0], is_changed=True)

    def _inside(self, op: Op, operand: int, place: _TracedValue) -> Iterator[_TracedValue]:
        if op.name != "func.call":
            regions: Sequence[Region] = op.regions
        elif (function := self.functions.get(op.attrs["callee"])) is None or op in place.calls:
            return
        else:
            regions, place = function.regions, place._replace(calls=(*place.calls, op))
        for region in regions:
            if region.blocks:
                yield place._replace(value=region.blocks[0].args[operand])

    def of(self, arg: Value) -> InputUse:
        """The values that an input may have."""
        use, reached = InputUse(), self.reached[arg]
        if _is_float(arg):
            if arg.type.rank >= 2:
                use.fan_in = self._fan_in(reached)
            use.is_not_negative = any(place.op.name in _OF_POSITIVE for place in reached)
        else:
            sizes = [size for found in reached for size in _sizes(found.op, found.operand, found.place.part)]
            use.size = max(1, min(sizes)) if sizes else None
        use.is_count = any(place.op.name == "stablehlo.power" and place.operand == 1 for place in reached)
        return use

    def _fan_in(self, reached: list[_Reached]) -> int:
        most = 1
        for place in reached:
            op, operand = place.op, place.operand
            if place.place.is_changed or op.name not in CONTRACTIONS or operand > 1:
                continue
            other = self.inputs.get((op, 1 - operand))
            if operand == 0 and (op.name == "stablehlo.convolution" or (other is not None and _is_float(other))):
                return 1
            most = max(most, products_summed(op, self.reader))
        return most


def _moves(op: Op, operand: int, moved: Mapping[str, tuple[int, ...] | None]) -> bool:
    """Whether the result of an op has elements of an operand."""
    if op.name not in moved:
        return False
    operands = moved[op.name]
    return operands is None or operand in operands


def _outside(op: Op, operand: int, place: _TracedValue) -> Iterator[_TracedValue]:
    """The values that a value returned by a function, a loop or a branch reaches next."""
    around = op.parent_op
    assert around is not None
    if around.name == "func.func":
        if place.calls:
            yield place._replace(value=place.calls[-1].results[operand], calls=place.calls[:-1])
    elif op.block is not around.regions[0].block or around.name != "stablehlo.while":
        yield place._replace(value=around.results[operand])


def _is_float(value: Value) -> bool:
    return value.type.element.startswith(("f", "bf", "complex"))


def _is_scaled(op: Op, operand: int) -> bool:
    """Whether an op multiplies or divides an operand by a single number."""
    if op.name not in _SCALING or (operand == 1 and op.name == "stablehlo.divide"):
        return False
    other = op.operands[1 - operand]
    while (maker := other.defining_op) is not None and maker.name in _MOVED and other.type.rank:
        other = maker.operands[0]
    return not other.type.rank or _is_splat(other.defining_op)


def _is_splat(op: Op | None) -> bool:
    return op is not None and op.name == "stablehlo.constant" and bool(getattr(op.attrs["value"], "is_splat", False))


def _part(op: Op, operand: int, part: int | None) -> int | None:
    """The part of the last dimension that an operand becomes."""
    rank = op.results[0].type.rank
    return operand if op.name == "stablehlo.concatenate" and op.attrs["dimension"].value == rank - 1 else part


def _sizes(op: Op, operand: int, part: int | None) -> Iterator[int]:
    """For every dimension that an operand indexes, the number of values that the index may have."""
    shapes: Any = [value.type.shape for value in op.operands]
    if op.name == "stablehlo.gather" and operand == 1:
        numbers = stablehlo.GatherDimensionNumbers(op.attrs["dimension_numbers"])
        windows = tuple(op.attrs["slice_sizes"])
        yield from (shapes[0][dim] - windows[dim] + 1 for dim in _of_part(numbers.start_index_map, part))
    elif op.name == "stablehlo.scatter" and operand == len(op.operands) // 2:
        yield from _scattered_sizes(op, shapes[0], shapes[-1], part)
    elif op.name == "stablehlo.dynamic_slice" and operand:
        yield shapes[0][operand - 1] - tuple(op.attrs["slice_sizes"])[operand - 1] + 1
    elif op.name == "stablehlo.dynamic_update_slice" and operand > 1:
        yield shapes[0][operand - 2] - shapes[1][operand - 2] + 1
    elif op.name == "stablehlo.case":
        yield len(op.regions)
    elif op.name == "stablehlo.compare":
        yield from _counted(op.operands[1 - operand])


def _of_part(dims: Sequence[int], part: int | None) -> Sequence[int]:
    """The dimension that a component of an index refers to; all if it is unknown."""
    return dims if part is None or part >= len(dims) else dims[part : part + 1]


def _scattered_sizes(op: Op, into: tuple[int, ...], updates: tuple[int, ...], part: int | None) -> Iterator[int]:
    numbers = stablehlo.ScatterDimensionNumbers(op.attrs["scatter_dimension_numbers"])
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [dim for dim in range(len(into)) if dim not in dropped]
    windows = {dim: updates[window] for dim, window in zip(kept, numbers.update_window_dims)}
    return (into[dim] - windows.get(dim, 1) + 1 for dim in _of_part(numbers.scattered_dims_to_operand_dims, part))


def _counted(value: Value) -> Iterator[int]:
    """The size of the dimension along which a value counts, if it does."""
    maker = value.defining_op
    while maker is not None and maker.name in _MOVED and len(maker.operands) == 1:
        maker = maker.operands[0].defining_op
    if maker is not None and maker.name == "stablehlo.iota":
        yield (maker.result.type.shape or ())[maker.attrs["iota_dimension"].value]
