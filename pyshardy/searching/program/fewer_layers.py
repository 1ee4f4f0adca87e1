"""Versions of a program with a few of its repeated layers, whose sizes follow a line in the number of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyshardy.errors import UsageError
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.trip_counts import LOOP
from pyshardy.searching.program.layers import LayerFamily, find_families
from pyshardy.searching.program.shorten import shorten

_FEWEST, _BASE, _MORE = 2, 5, 7
"""The numbers of layers of the versions. With only 2 and 3 layers, the memory of the whole program was wrong by up to
14 %."""
LEAST_LAYERS: Final = 12
"""A program with fewer layers has no version that is much shorter."""


class LayerGroup(NamedTuple):
    """Families with as many layers as each other, such as layers forward and their parts of the optimizer.

    Attributes:
        size: The number of layers.
        families: The numbers of the families. One more or less counts as equal: the first or the last layer may differ.
    """

    size: int
    families: tuple[int, ...]


class FewerLayers:
    """A program with repeated layers.

    Args:
        module: The program.

    Attributes:
        groups: Its groups of families.

    Raises:
        UsageError: It has no repeated layers outside of loops, or too few.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        with module.context:
            self._families = find_families(module.root)
        self.groups = layer_groups(self._families)
        if not self.groups:
            has_loop = any(ops_named(function, (LOOP,)) for function in functions(module.root))
            raise UsageError(
                "compiling a program with fewer of its layers",
                got="layers in a loop, of which one is compiled anyway" if has_loop else "no layers that repeat",
                needed=f"at least {LEAST_LAYERS} layers that are unrolled",
                hint="compile it whole",
            )

    def versions(self) -> list[tuple[int, ...]]:
        """The numbers of layers of each group, for versions that tell what a layer of each group adds."""
        count = len(self.groups)
        more = [tuple(_MORE if at == one else _BASE for at in range(count)) for one in range(count)]
        return [(_FEWEST,) * count, (_BASE,) * count, *more]

    def with_layers(self, layers: Sequence[int]) -> Module:
        """A version with so many layers of each group."""
        middle = {number: family.size - 2 for number, family in enumerate(self._families)}
        for group, count in zip(self.groups, layers, strict=True):
            dropped = group.size - count
            middle |= {number: max(0, self._families[number].size - dropped - 2) for number in group.families}
        with self.module.context:
            return self.module.with_root(shorten(self.module.root, self._families, middle).root)


def layer_groups(families: Sequence[LayerFamily]) -> tuple[LayerGroup, ...]:
    """The groups of families with enough layers; families whose sizes differ by one are of one group."""
    found: list[LayerGroup] = []
    for number in sorted(range(len(families)), key=lambda number: (-families[number].size, number)):
        size = families[number].size
        if found and found[-1].size - size <= 1:
            found[-1] = LayerGroup(found[-1].size, (*found[-1].families, number))
        else:
            found.append(LayerGroup(size, (number,)))
    return tuple(group for group in found if group.size >= LEAST_LAYERS)
