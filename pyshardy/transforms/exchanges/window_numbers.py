"""The windows of an op along its dimensions, and the intervals that shards need for them."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.ir.constants import margins_of
from pyshardy.ir.nodes import Op
from pyshardy.reshard.window_halo import Stretches


class WindowDim(NamedTuple):
    """How windows move along one dimension.

    Attributes:
        low: The low padding; negative if elements of the input are dropped.
        high: The high padding.
        stride: The window stride.
        dilation: The dilation of the input.
        spread: The dilation of the window.
        is_reversed: Whether the kernel is reversed.
    """

    low: int
    high: int
    stride: int
    dilation: int
    spread: int
    is_reversed: bool = False


class DilationNames(NamedTuple):
    """The names of an op's attributes for dilations.

    Attributes:
        dilation: That of the input.
        spread: That of the window.
    """

    dilation: str
    spread: str


def window_dims(op: Op, rank: int, names: DilationNames) -> list[WindowDim]:
    """The windows along every dimension.

    Args:
        op: The op.
        rank: The number of dimensions of a window.
        names: The names of its attributes for dilations.
    """
    margins = margins_of(op.attrs.get("padding"), rank)
    strides, dilations, spreads = (_list(op, name, rank) for name in ("window_strides", *names))
    reversal = op.attrs.get("window_reversal")
    flags = [False] * rank if reversal is None else [bool(reversal[place]) for place in range(rank)]
    return [WindowDim(*margins[at], strides[at], dilations[at], spreads[at], flags[at]) for at in range(rank)]


def _list(op: Op, name: str, rank: int) -> list[int]:
    attr = op.attrs.get(name)
    return [1] * rank if attr is None else list(attr)


def of_outputs(window: WindowDim, size: int, taps: int, out_size: int, shards: int) -> Stretches:
    """The intervals that shards need if each computes a part of the output.

    >>> of_outputs(WindowDim(1, 1, 1, 1, 1), size=16, taps=3, out_size=16, shards=4)
    Stretches(size=16, shards=4, first=-1, step=4, extent=6, used=4, dilation=1)
    """
    out_shard = -(-out_size // shards)
    extent = (out_shard - 1) * window.stride + (taps - 1) * window.spread + 1
    used = -(-out_size // out_shard)
    return Stretches(size, shards, -window.low, out_shard * window.stride, extent, used, window.dilation)


def of_taps(window: WindowDim, size: int, taps: int, out_size: int, shards: int) -> Stretches:
    """The intervals that shards need if each has a part of the kernel and computes a partial sum.

    >>> of_taps(WindowDim(1, 1, 1, 1, 1), size=16, taps=16, out_size=3, shards=4)
    Stretches(size=16, shards=4, first=-1, step=4, extent=6, used=4, dilation=1)
    """
    shard = -(-taps // shards)
    extent = (out_size - 1) * window.stride + (shard - 1) * window.spread + 1
    used, step = -(-taps // shard), shard * window.spread
    first = -window.low
    if window.is_reversed:
        first, step = first + (taps - shard) * window.spread, -step
    return Stretches(size, shards, first, step, extent, used, window.dilation)
