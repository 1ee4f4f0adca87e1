"""Channel handles for collectives.

Source: docs/semantics/partitioner.md#channels
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with

CHANNEL = "channel_handle"


class Channels:
    """Makes channel handles, numbered in order of the calls from one above the largest in the module.

    The module is searched on the first request.

    Args:
        root: The module.
        attrs: The attributes of the context.
    """

    def __init__(self, root: Op, attrs: AttrTable) -> None:
        self._attrs = attrs
        self._root = root
        self._numbers: Iterator[int] | None = None

    def next(self) -> Any:
        """A new `#stablehlo.channel_handle<...>`."""
        if self._numbers is None:
            self._numbers = count(max([0, *map(_number, ops_with(self._root, CHANNEL))]) + 1)
        return self._attrs.parse(f"#stablehlo.channel_handle<handle = {next(self._numbers)}, type = 1>")


def _number(op: Op) -> int:
    """The channel number of an op."""
    return int(stablehlo.ChannelHandle(op.attrs[CHANNEL]).handle)
