"""Moves pieces between shards in rounds of collective-permutes, inside a manual computation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.devices import replica_groups
from pyshardy.ir.nodes import Value
from pyshardy.reshard.exchange_plan import Piece, Round
from pyshardy.reshard.moves import ShardMove
from pyshardy.transforms.builder import zero_text
from pyshardy.transforms.exchanges.exchange import group_index
from pyshardy.transforms.exchanges.sharded_op import Body


def move(body: Body, value: Value, padding: Value, dim: int, axes: Axes, wanted: ShardMove) -> Value:
    """Move data along one dimension; return the shard of the result, with padding where no data arrives.

    Args:
        body: The inside of the computation.
        value: The data of this device. If several tensors are concatenated, their shards one after the other.
        padding: A scalar.
        dim: The dimension.
        axes: The axes that shard it.
        wanted: The move.
    """
    return _Mover(body, padding, dim, axes, wanted).run(value)


def gather_line(body: Body, value: Value, dim: int, axes: Axes, wanted: ShardMove, size: int) -> Value:
    """The whole target interval of a move on every device, as the sum of the contributions of all devices.

    Args:
        body: The inside of the computation.
        value: The data of this device.
        dim: The dimension.
        axes: The axes that shard it.
        wanted: The move of a single tensor.
        size: The number of elements of the target interval.
    """
    nothing = body.plain.splat(nothing_text(value.type.element), body.plain.like((), value.type))
    return _Mover(body, nothing, dim, axes, wanted).everywhere(value, size)


def nothing_text(element: str) -> str:
    """The identity of addition, which keeps even the sign of a zero.

    >>> nothing_text("f32"), nothing_text("complex<f32>"), nothing_text("i8"), nothing_text("i1")
    ('-0.0', '(-0.0,-0.0)', '0', 'false')
    """
    return zero_text(element).replace("0.0", "-0.0")


class _Mover:
    """One move of one value."""

    def __init__(self, body: Body, padding: Value, dim: int, axes: Axes, wanted: ShardMove) -> None:
        self.builder = body.plain
        self.env = body.sharded.env
        self.padding = padding
        self.dim = dim
        self.move = wanted
        self.groups = replica_groups(axes, body.sharded.mesh)
        self.shards = len(self.groups[0])
        self.make_index: Callable[[], Value] = lambda: group_index(body.plain, axes, body.sharded.mesh)
        self.index: Value | None = None

        self.rank = 0

    def run(self, value: Value) -> Value:
        self.rank = value.type.rank
        if self.move.stride > 1:
            value = self._take_every(value)
        found: Value | None = None
        if self.move.is_all_to_all:
            return self._by_all_to_all(value)
        for round_ in self.move.plan.kept:
            found = self._put(self._part(value, round_), found, round_)
        for round_ in self.move.plan.rounds:
            sent = self.builder.permute(self._part(value, round_), self._pairs(round_), self.env.next_channel())
            found = self._put(sent, found, round_)
        found = found or self._nothing(value, self.move.out_size)
        return self._spread(found) if self.move.dilation > 1 else found

    def _nothing(self, like: Value, size: int) -> Value:
        """A buffer of padding."""
        return self.builder.broadcast(self.padding, self._shape(like, size))

    def everywhere(self, value: Value, size: int) -> Value:
        """The whole target interval, as the sum of the contributions of all devices."""
        self.rank = value.type.rank
        if self.move.stride > 1:
            value = self._take_every(value)
        line = self._on_line(value, size)
        bounds = [[span.first for span in self.move.held], [span.end for span in self.move.held]]
        part = self.builder.select(self._mask(line, bounds), line, self._nothing(value, size))
        return self.builder.all_reduce(part, self.groups, self.env.channels.next())

    def _on_line(self, value: Value, size: int) -> Value:
        """The elements of this device at their positions in the target interval; the other elements are undefined."""
        room = self._size(value)
        value = self.builder.pad(value, self.padding, self._at(size), self._at(size))
        starts = [size - min(max(span.origin, -room), size) for span in self.move.held]
        return self._cut(value, dict(enumerate(starts)), size)

    def _by_all_to_all(self, value: Value) -> Value:
        """Every device sends every other device its elements of that device's result."""
        room = self.move.out_size
        line, result = self._on_line(value, room * self.shards), self._nothing(value, room)
        sent = self.builder.all_to_all(line, self.groups, self.dim, self.env.next_channel())
        pieces = [piece for round_ in (*self.move.plan.kept, *self.move.plan.rounds) for piece in round_.pieces]
        by_target: dict[int, list[Piece]] = {}
        for piece in pieces:
            by_target.setdefault(piece.target, []).append(piece)
        for number in range(max(map(len, by_target.values()))):
            chosen = {target: found[number] for target, found in by_target.items() if number < len(found)}
            part = self._cut(sent, {target: piece.source * room for target, piece in chosen.items()}, room)
            bounds = [[0] * self.shards, [0] * self.shards]
            for target, piece in chosen.items():
                bounds[0][target], bounds[1][target] = piece.target_start, piece.target_start + piece.size
            result = self.builder.select(self._mask(result, bounds), part, result)
        return result

    def _pairs(self, round_: Round) -> list[tuple[int, int]]:
        return sorted((group[piece.source], group[piece.target]) for piece in round_.pieces for group in self.groups)

    def _part(self, value: Value, round_: Round) -> Value:
        """The part that every shard sends in a round."""
        last = self.move.size - round_.size
        return self._cut(value, {piece.source: min(piece.source_start, last) for piece in round_.pieces}, round_.size)

    def _put(self, sent: Value, found: Value | None, round_: Round) -> Value:
        """The result so far, with the received elements at their positions."""
        builder, size, room = self.builder, round_.size, self.move.out_size
        last = self.move.size - size
        shifts = {piece.target: _place(piece, last) for piece in round_.pieces}
        low, high = max(0, -min(shifts.values())), max(0, max(shifts.values()) + room - size)
        if low or high:
            sent = builder.pad(sent, self.padding, self._at(low), self._at(high))
        placed = self._cut(sent, {target: low + shift for target, shift in shifts.items()}, room)
        firsts = {piece.target: piece.target_start for piece in round_.pieces}
        ends = {piece.target: piece.target_start + piece.size for piece in round_.pieces}
        if len(ends) == self.shards and set(firsts.values()) == {0} and set(ends.values()) == {room}:
            return placed
        found = found or self._nothing(placed, room)
        bounds = [[table.get(shard, 0) for shard in range(self.shards)] for table in (firsts, ends)]
        return builder.select(self._mask(found, bounds), placed, found)

    def _mask(self, found: Value, per_shard: Sequence[Sequence[int]]) -> Value:
        """A mask of the elements between two positions that depend on the shard."""
        builder, shape = self.builder, found.type.shape or ()
        places = builder.iota(builder.type([self._size(found)], "i32"), 0)
        first, end = (builder.broadcast(self._entry(numbers), [self._size(found)]) for numbers in per_shard)
        inside = builder.combine("and", builder.compare("GE", places, first), builder.compare("LT", places, end))
        return builder.broadcast(inside, shape, [self.dim])

    def _take_every(self, value: Value) -> Value:
        """Every n-th element of a shard, from the first one that moves."""
        stride, size = self.move.stride, self.move.size
        missing = size * stride - self._size(value)
        if missing > 0:
            value = self.builder.pad(value, self.padding, self._at(0), self._at(missing))
        width = (size - 1) * stride + 1
        value = self._cut(value, dict(enumerate(self.move.phases)), width)
        strides = [stride if other == self.dim else 1 for other in range(self.rank)]
        return self.builder.slice(value, self._at(0), value.type.shape or (), strides)

    def _spread(self, value: Value) -> Value:
        """The elements with interior padding between them."""
        dilation, count, room = self.move.dilation, self.move.out_size, self.move.result_size
        width = (count - 1) * dilation + 1
        low, high = self._at(dilation - 1), self._at(max(0, room - width))
        value = self.builder.pad(value, self.padding, low, high, self._at(dilation - 1))
        starts = {shard: dilation - 1 - offset for shard, offset in enumerate(self.move.offsets)}
        return self._cut(value, starts, room)

    def _cut(self, value: Value, starts: Mapping[int, int], size: int) -> Value:
        """`size` elements from a start that depends on the shard; any elements on shards without a start."""
        shape = self._shape(value, size)
        numbers = set(starts.values())
        if len(numbers) == 1:
            (start,) = numbers
            if start == 0 and shape == list(value.type.shape or ()):
                return value
            limits = [start + size if other == self.dim else end for other, end in enumerate(shape)]
            return self.builder.slice(value, self._at(start), limits)
        place, zero = self._entry(_extended(starts, self.shards)), self._number(0)
        places = [place if other == self.dim else zero for other in range(self.rank)]
        return self.builder.dynamic_slice(value, places, shape)

    def _entry(self, numbers: Sequence[int]) -> Value:
        """The entry of this shard in a list with one number per shard."""
        first, step = numbers[0], numbers[1] - numbers[0]
        if not any(number - first for number in numbers):
            return self._number(first)
        if self.index is None:
            self.index = self.make_index()
        if any(number != first + shard * step for shard, number in enumerate(numbers)):
            return self.builder.entry(numbers, self.index)
        scaled = self.index if step == 1 else self.builder.combine("multiply", self.index, self._number(step))
        return self.builder.combine("add", scaled, self._number(first)) if first else scaled

    def _number(self, number: int) -> Value:
        return self.builder.position(number)

    def _shape(self, value: Value, size: int) -> list[int]:
        return [size if other == self.dim else old for other, old in enumerate(value.type.shape or ())]

    def _size(self, value: Value) -> int:
        return (value.type.shape or ())[self.dim]

    def _at(self, number: int) -> list[int]:
        return [number if other == self.dim else 0 for other in range(self.rank)]


def _extended(starts: Mapping[int, int], shards: int) -> list[int]:
    """One start per shard. Missing starts may be anything, so they continue the line through two known ones."""
    (one, first), (two, second) = sorted(starts.items())[:2]
    step, rest = divmod(second - first, two - one)
    step = 0 if rest else step
    return [starts.get(shard, max(0, first + (shard - one) * step)) for shard in range(shards)]


def _place(piece: Piece, last: int) -> int:
    """The position in the sent buffer of the first element of the receive buffer; may be negative."""
    return piece.source_start - min(piece.source_start, last) - piece.target_start
