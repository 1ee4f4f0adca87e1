"""Adds the layers for which one layer stands, as kernels: no pass and no fusion runs for them.

A short program has three layers of a kind: the first, one in the middle, and the last. The middle one stands for
several. Here it becomes as many. A layer reads values of the layer before it; in the backward pass, of the layer after
it. Each copy then reads those of its own neighbour. A value that all layers read stays one value.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.launches import Launches
from pyshardy.costing.program import CostInput, CostOp
from pyshardy.costing.roofline import Roofline
from pyshardy.errors import UsageError

FIRST, MIDDLE, LAST = range(3)
"""The layers of a short program, in the order of the forward pass."""


class Layer(NamedTuple):
    """The position of an op in the layers of a short program.

    Attributes:
        family: The number of the kind of layers.
        stretch: The number of the part of the program with one run of ops for each layer, such as the backward pass.
        sign: -1 if that part runs the last layer first; else 1.
        place: `FIRST`, `MIDDLE` or `LAST`.
        op: A number that the same op has in all three layers, and no other op.
        times: How many layers its own stands for; 1 but in the middle.
    """

    family: int
    stretch: int
    sign: int
    place: int
    op: int
    times: int


OUTSIDE: Final = Layer(-1, -1, 1, FIRST, -1, 1)
"""The position of an op outside all layers."""
LayerOf = Callable[[CostOp], "Layer | None"]
"""The position of an op; None if it is where its operands are."""
_MOST_OPS: Final = 1 << 32
"""Ops without a known position have numbers further from 0 than this."""


def with_further_layers(launches: Launches, layer_of: LayerOf) -> Launches:
    """The kernels of all layers, and the inputs.

    Args:
        launches: The kernels of a short program.
        layer_of: The position of an op.
    """
    layers = _layers(launches.block.kernels, layer_of)
    if all(layer.times == 1 for layer in layers):
        return launches
    return _Repeated(launches, layers).launches()


def _layers(kernels: Sequence[Kernel], layer_of: LayerOf) -> list[Layer]:
    """The position of every kernel; if unknown, that of the last kernel that it reads from, else of one that reads it.

    What it reads of earlier kernels may be made once for all layers, such as the numbers that an argmax compares.
    """
    own = [layer_of(kernel.root) for kernel in kernels]
    reader: dict[int, Layer] = {}
    for kernel, layer in zip(reversed(kernels), reversed(own)):
        if layer is not None:
            reader.update((value, layer) for value in kernel.reads)
    maker: dict[int, tuple[int, Layer]] = {}
    found = []
    nearby = 0
    for at, (kernel, layer) in enumerate(zip(kernels, own)):
        nearby = nearby + 1 if layer is None else 0
        if layer is None:
            _, layer = max((maker[value] for value in kernel.reads if value in maker), default=(-1, None))
            if layer is None:
                layer = next((reader[value] for value in kernel.writes if value in reader), OUTSIDE)
            layer = layer._replace(op=-nearby * _MOST_OPS - layer.op)
        found.append(layer)
        maker.update((value, (at, layer)) for value in kernel.writes)
    return [*_told_apart(found)]


def _told_apart(layers: Iterable[Layer]) -> Iterator[Layer]:
    """The positions with a number of its own for each kernel, as several kernels may come from one op."""
    counts: Counter[tuple[int, int]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    for layer in layers:
        place = layer.place, layer.op
        nth = layer.op, counts[place]
        counts[place] += 1
        yield layer._replace(op=numbers.setdefault(nth, len(numbers)))


class _Repeated:
    """A block with all its layers. The layers of the middle are numbered from 1, which is there already."""

    def __init__(self, launches: Launches, layers: Sequence[Layer]) -> None:
        self.old, self.block, self.layers = launches, launches.block, layers
        self.tensors = list(launches.flat.tensors)
        self.copies: dict[tuple[int, int], int] = {}
        self.made: dict[int, tuple[Layer, int]] = {}
        self.value_at: dict[tuple[int, int, int], int] = {}
        self.needs_at: dict[tuple[int, int], set[int]] = {}
        for kernel, layer in zip(self.block.kernels, layers):
            self.needs_at.setdefault((layer.place, layer.op), set()).update(kernel.needs)
            for result, value in enumerate(kernel.writes):
                self.made[value] = layer, result
                self.value_at.setdefault((layer.place, layer.op, result), value)
        self.middle = {value: layer for value, (layer, _) in self.made.items() if layer.times > 1}
        self.middle.update(self._arguments())

    def _arguments(self) -> Iterator[tuple[int, Layer]]:
        """The arguments that the layer in the middle alone reads, with the position of a reader."""
        readers: dict[int, list[Layer]] = {value: [] for value in self.block.arguments}
        for kernel, layer in zip(self.block.kernels, self.layers):
            for value in kernel.reads:
                if value in readers:
                    readers[value].append(layer)
        for value, found in readers.items():
            if found and all(layer.times > 1 for layer in found):
                yield value, found[0]

    def launches(self) -> Launches:
        """The kernels of all layers."""
        kernels = in_order([kernel for _, kernel in sorted(self._kernels(), key=lambda pair: pair[0])])
        arguments, inputs, results = self._border()
        flat = self.old.flat
        uniform, constants = (
            known.union(new for (value, _), new in self.copies.items() if value in known)
            for known in (flat.uniform, flat.constants)
        )
        return self.old._replace(
            program=replace(self.old.program, inputs=inputs),
            flat=flat._replace(tensors=self.tensors, uniform=uniform, constants=constants),
            block=Kernels(arguments, tuple(kernels), results),
            roofline=Roofline(self.old.topology.hardware, self.tensors),
        )

    def _kernels(self) -> Iterator[tuple[tuple[int, int, int], Kernel]]:
        """The kernels with their places. A run of kernels in the middle comes layer by layer."""
        at = 0
        for _, run in groupby(self.layers, lambda layer: (layer.family, layer.times > 1)):
            layers = [*run]
            sign = max(layers, key=lambda layer: layer.stretch).sign
            for offset, layer in enumerate(layers):
                kernel = self.block.kernels[at + offset]
                for number in range(1, layer.times + 1):
                    yield (at, sign * number, offset), self._copy(kernel, layer, number)
            at += len(layers)

    def _copy(self, kernel: Kernel, layer: Layer, number: int) -> Kernel:
        """A kernel of a layer with this number."""
        new = {value: self._read(value, layer, number) for value in kernel.needs}
        if number > 1:
            new.update((value, self._number(value, number)) for value in kernel.writes)
        elif all(value == other for value, other in new.items()):
            return kernel
        return kernel._replace(
            ops=tuple([_renamed(op, new) for op in kernel.ops]),
            reads=tuple([new[value] for value in kernel.reads]),
            writes=tuple([new.get(value, value) for value in kernel.writes]),
            in_place=frozenset([new[value] for value in kernel.in_place]),
            waits=tuple([new[value] for value in kernel.waits]),
        )

    def _read(self, value: int, reader: Layer, number: int) -> int:
        """What a kernel in a layer with this number reads instead of a value."""
        own = self.middle.get(value)
        if reader.times == 1 or (own is not None and own.family != reader.family):
            if own is None:
                return value
            is_last = reader.place == LAST if own.family == reader.family else own.sign > 0
            return self._number(value, own.times if is_last else 1)
        if own is not None:
            return self._number(value, number)
        made, result = self.made.get(value, (OUTSIDE, 0))
        near = number + made.place - MIDDLE
        if made.family != reader.family or near in (0, reader.times + 1):
            return value
        twin = self.value_at.get((MIDDLE, made.op, result))
        return value if twin is None or not self._follows(twin, made, reader) else self._number(twin, near)

    def _follows(self, twin: int, made: Layer, reader: Layer) -> bool:
        """Whether every layer reads a value of the layer beside it.

        The first and the last layer tell: one of them reads the value of the layer in the middle.

        Args:
            twin: The value of the layer in the middle.
            made: The layer beside it that made what it reads.
            reader: The position of what reads it in the middle.
        """
        other = self.needs_at.get((LAST if made.place == FIRST else FIRST, reader.op))
        return twin in other if other is not None else made.place == FIRST or reader.sign < 0

    def _number(self, value: int, number: int) -> int:
        """The value of a layer with this number that is like one of layer 1."""
        if number == 1:
            return value
        if (value, number) not in self.copies:
            self.copies[value, number] = len(self.tensors)
            self.tensors.append(self.tensors[value])
        return self.copies[value, number]

    def _border(self) -> tuple[tuple[int, ...], tuple[CostInput, ...], tuple[int, ...]]:
        """The arguments, what is known of them, and the results."""
        results = [*self._by_layer(self.block.results)]
        place_of = {pair: place for place, pair in enumerate(results)}
        arguments = [*self._by_layer(self.block.arguments)]
        inputs = []
        for at, number in arguments:
            entry = self.old.program.inputs[at]
            alias = None if entry.alias is None else place_of.get((entry.alias, number))
            inputs.append(entry._replace(alias=alias))
        return (
            tuple([self._number(self.block.arguments[at], number) for at, number in arguments]),
            tuple(inputs),
            tuple([self._number(self.block.results[at], number) for at, number in results]),
        )

    def _by_layer(self, values: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The places of values and the numbers of layers. A run of values of the middle comes layer by layer."""
        at = 0
        for count, run in groupby(values, lambda value: self.middle[value].times if value in self.middle else 1):
            length = len([*run])
            for number in range(1, count + 1):
                yield from ((at + offset, number) for offset in range(length))
            at += length


def _renamed(op: CostOp, new: Mapping[int, int]) -> CostOp:
    operands = tuple([new.get(value, value) for value in op.operands])
    results = tuple([new.get(value, value) for value in op.results])
    return op if (operands, results) == (op.operands, op.results) else op._replace(operands=operands, results=results)


def in_order(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Kernels in an order in which they can run. The given order is changed only where it must be.

    Raises:
        UsageError: There is no such order.
    """
    makers = {value: at for at, kernel in enumerate(kernels) for value in kernel.writes}
    waits = [{makers[value] for value in kernel.needs if value in makers} for kernel in kernels]
    if all(maker < at for at, makers_of in enumerate(waits) for maker in makers_of):
        return list(kernels)
    order = [*_sorted(waits)]
    if len(order) < len(kernels):
        raise UsageError("repeating layers", got="layers that wait for each other", needed="layers in an order")
    return [kernels[at] for at in order]


def _sorted(waits: Sequence[Collection[int]]) -> Iterator[int]:
    """The numbers of items, each after those that it waits for. Of several that may come next, the first comes."""
    users: list[list[int]] = [[] for _ in waits]
    for at, makers in enumerate(waits):
        for maker in makers:
            users[maker].append(at)
    left = [len(makers) for makers in waits]
    ready = [at for at, count in enumerate(left) if not count]
    while ready:
        at = heapq.heappop(ready)
        yield at
        for user in users[at]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, user)
