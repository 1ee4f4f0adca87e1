"""The blocks of a drawn tensor, in rows and layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Range = tuple[int, int]

_FEW = 8
"""The most devices of a block to list one by one."""


class ShardBlock(NamedTuple):
    """A block of a tensor, with its devices.

    Attributes:
        ranges: Per dimension, its start and end.
        devices: The ids of the devices, ascending.
    """

    ranges: tuple[Range, ...]
    devices: tuple[int, ...]

    @property
    def label(self) -> str:
        """The list of devices, with long runs abbreviated.

        >>> ShardBlock(((0, 4),), (0, 1, 4)).label, ShardBlock(((0, 4),), tuple(range(32))).label
        ('0,1,4', '0-31')
        """
        if len(self.devices) <= _FEW:
            return ",".join(map(str, self.devices))
        parts: list[list[int]] = []
        for device in self.devices:
            if parts and parts[-1][-1] == device - 1:
                parts[-1].append(device)
            else:
                parts.append([device])
        return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in parts)


Panels = Sequence[tuple[Range | None, list[list[ShardBlock]]]]
"""The rows of blocks of every layer, and its range of the first of three dimensions; one layer without a range."""
