"""Moves of one dimension, followed shard by shard, give what the op gives on the whole."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.errors import InvalidShardingError
from pyshardy.reshard.halo import Window
from pyshardy.reshard.moves import (
    JoinedPart,
    ShardMove,
    block_size,
    border_move,
    join_move,
    pad_move,
    reverse_move,
    shard_blocks,
    slice_move,
)

_PADDING = -1
_SHARDS = st.integers(2, 9)


def _shards(data: np.ndarray, shards: int) -> list[np.ndarray]:
    shard = -(-len(data) // shards)
    return list(np.append(data, np.full(shard * shards - len(data), _PADDING)).reshape(shards, shard))


def _follow(move: ShardMove, buffers: list[np.ndarray]) -> np.ndarray:
    """The shards of the result, joined."""
    if move.stride > 1:
        buffers = [buffer[phase :: move.stride] for buffer, phase in zip(buffers, move.phases)]
    found = np.full((len(buffers), move.out_size), _PADDING)
    for round_ in (*move.plan.kept, *move.plan.rounds):
        assert round_.size <= move.size
        for piece in round_.pieces:
            part = buffers[piece.source][piece.source_start : piece.source_start + piece.size]
            assert len(part) == piece.size
            found[piece.target, piece.target_start : piece.target_start + piece.size] = part
    if move.dilation == 1:
        return found.reshape(-1)
    results = np.full((len(buffers), move.result_size), _PADDING)
    for result, buffer, offset in zip(results, found, move.offsets):
        result[offset :: move.dilation] = buffer[: len(result[offset :: move.dilation])]
    return results.reshape(-1)


@given(st.integers(1, 60), _SHARDS, st.integers(0, 20), st.integers(0, 20), st.integers(1, 4))
def test_slices(size: int, shards: int, start: int, cut: int, stride: int) -> None:
    data = np.arange(size)
    expected = data[start : size - cut if cut else size : stride]
    assume(len(expected))
    move = slice_move(Window(size, len(expected), shards, -start, 1, stride))
    assert (_follow(move, _shards(data, shards))[: len(expected)] == expected).all()


@given(st.integers(1, 40), _SHARDS, st.integers(-9, 20), st.integers(-9, 20), st.integers(1, 4))
def test_pads(size: int, shards: int, low: int, high: int, dilation: int) -> None:
    data = np.arange(size)
    spread = np.full((size - 1) * dilation + 1, _PADDING)
    spread[::dilation] = data
    padded = np.concatenate([np.full(max(0, low), _PADDING), spread, np.full(max(0, high), _PADDING)])
    expected = padded[max(0, -low) : len(padded) - max(0, -high)]
    assume(len(expected))
    move = pad_move(Window(size, len(expected), shards, low, dilation))
    assert (_follow(move, _shards(data, shards))[: len(expected)] == expected).all()


@given(st.integers(1, 40), _SHARDS)
def test_reversals(size: int, shards: int) -> None:
    data = np.arange(size)
    buffers = [buffer[::-1] for buffer in _shards(data, shards)]
    assert (_follow(reverse_move(size, shards), buffers)[:size] == data[::-1]).all()


@given(st.data(), _SHARDS)
def test_joins(data: st.DataObject, shards: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    whole = [data.draw(st.booleans()) for _ in sizes]
    tensors = [np.arange(size) + 100 * number for number, size in enumerate(sizes)]
    parts = []
    for _ in range(data.draw(st.integers(1, 5))):
        number = data.draw(st.integers(0, len(sizes) - 1))
        first = data.draw(st.integers(0, sizes[number] - 1))
        parts.append(JoinedPart(number, first, data.draw(st.integers(1, sizes[number] - first))))
    held = [[tensor] * shards if one else _shards(tensor, shards) for tensor, one in zip(tensors, whole)]
    move = join_move(tuple(sizes), tuple(whole), tuple(parts), shards)
    expected = np.concatenate([tensors[number][first : first + size] for number, first, size in parts])
    found = _follow(move, [np.concatenate(buffers) for buffers in zip(*held)])
    assert (found[: len(expected)] == expected).all()


_SHAPES = st.sampled_from([(24,), (2, 12), (3, 8), (4, 6), (2, 3, 4), (1, 24), (7, 3), (21,), (3, 7), (1, 21, 1)])


def _blocks(data: np.ndarray, counts: tuple[int, ...]) -> list[np.ndarray]:
    tiles = [-(-size // count) for size, count in zip(data.shape, counts)]
    padding = [(0, tile * count - size) for size, tile, count in zip(data.shape, tiles, counts)]
    padded = np.pad(data, padding, constant_values=_PADDING)
    return [
        padded[tuple(slice(i * tile, (i + 1) * tile) for i, tile in zip(index, tiles))].reshape(-1)
        for index in np.ndindex(*counts)
    ]


@given(_SHAPES, _SHAPES, st.data())
def test_reshapes(shape: tuple[int, ...], out_shape: tuple[int, ...], data: st.DataObject) -> None:
    assume(prod(shape) == prod(out_shape))
    counts = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in shape)
    out_counts = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in out_shape)
    assume(prod(counts) == prod(out_counts))
    held, wanted = shard_blocks(shape, counts), shard_blocks(out_shape, out_counts)
    if held is None or wanted is None:
        assert max(prod(shape), prod(out_shape)) > 8
        return
    move = border_move(held, wanted, block_size(shape, counts), block_size(out_shape, out_counts))
    numbers = np.arange(prod(shape))
    found = _follow(move, _blocks(numbers.reshape(shape), counts)).reshape(prod(out_counts), -1)
    expected = np.stack(_blocks(numbers.reshape(out_shape), out_counts))
    assert (found[expected != _PADDING] == expected[expected != _PADDING]).all()


def test_a_wrong_move_is_noticed() -> None:
    right, wrong = (slice_move(Window(12, 4, 4, low)) for low in (-4, -5))
    data = np.arange(12)
    assert (_follow(right, _shards(data, 4)) == data[4:8]).all()
    assert not (_follow(wrong, _shards(data, 4)) == data[4:8]).all()


@pytest.mark.slow_cases("4096")
@pytest.mark.parametrize("shards", [8, 64, 512, 4096])
def test_the_number_of_rounds_does_not_grow(shards: int) -> None:
    size = 96 * shards
    third = JoinedPart(0, 0, size // 3)
    moves = {
        "slice": slice_move(Window(size, size // 3, shards, -size // 3)),
        "slice elsewhere": slice_move(Window(size, size // 3 - 5, shards, -size // 3 - 7)),
        "pad": pad_move(Window(size // 3, size, shards, size // 3)),
        "reverse": reverse_move(size - 5, shards),
        "join": join_move((size // 3,) * 3, (False,) * 3, tuple(third._replace(tensor=n) for n in range(3)), shards),
    }
    for name, move in moves.items():
        assert len(move.plan.rounds) <= 4, name
        assert move.sent <= 96, name


def test_one_all_to_all_in_place_of_many_rounds() -> None:
    narrow = slice_move(Window(96 * 64, 64, 64, -8))
    assert narrow.is_all_to_all
    assert narrow.sent == 63
    assert not slice_move(Window(96 * 64, 32 * 64, 64, -8)).is_all_to_all


def test_too_many_shards_are_refused() -> None:
    with pytest.raises(InvalidShardingError, match="what shards need of each other"):
        reverse_move(2**21, 2**21)
