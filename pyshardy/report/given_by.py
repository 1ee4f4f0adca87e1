"""Who gave tensors their shardings, as cells of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from pyshardy.report.folding import fold
from pyshardy.report.layout import Cell
from pyshardy.report.summary import Summary

_MOST_ORIGINS = 2
"""So many annotations are named that a sharding comes from."""
_KEY = re.compile(r"(?=[.\[])")
_NUMBER = re.compile(r"\d+")

Shorten = Callable[[str], str]


class Given(Protocol):
    """What tells who gave a tensor its sharding."""

    @property
    def given_by(self) -> str:
        """Who."""

    @property
    def is_inferred(self) -> bool:
        """Whether it was propagation."""

    @property
    def origins(self) -> tuple[str, ...]:
        """The annotations that it comes from."""


def given_by_cell(rows: Sequence[Given], shorten: Shorten = str) -> Cell:
    """Who gave tensors that share a row their sharding; where propagation did, from where, if that is known.

    Args:
        rows: The tensors.
        shorten: The name of an annotated tensor where there is less room.
    """
    row = rows[0]
    if not row.is_inferred:
        return Cell(row.given_by)
    origins = dict.fromkeys(origin for row in rows for origin in row.origins)
    short = _listed(list(dict.fromkeys(map(shorten, origins))))
    return Cell(_listed(list(origins)) or row.given_by, short or None, shortest="inferred")


def _listed(origins: Sequence[str]) -> str:
    """Names, those of layers as one."""
    names = [found.name for found in fold((origin, None) for origin in origins)]
    more = f" and {len(names) - _MOST_ORIGINS} more" if len(names) > _MOST_ORIGINS else ""
    return ", ".join(names[:_MOST_ORIGINS]) + more


class ShortNames:
    """Names of annotated inputs and outputs by their last keys, as `annotate` takes them: `*['w1']`.

    As many keys are kept as it takes to tell a name, but for the number of the layer, from those beside it and from
    those of everything else that is annotated. `params['layers'][3]['w1']` is `*['w1']` though there is also
    `state['layers'][3]['w1']`, unless that is annotated too.

    Args:
        summary: The program.

    >>> from dataclasses import replace
    >>> from pyshardy.report.summary import TensorRow
    >>> row = TensorRow("x", (8,), "f32", None, (8,), 32, 32, 32, False)
    >>> names = ["net['up']['w']", "net['up']['b']", "net['down']['w']", "state['up']['b']"]
    >>> short = ShortNames(Summary("net", (), tuple(replace(row, name=name) for name in names), (), 0, 0))
    >>> [short(name) for name in [*names, "net.py:31"]]
    ["*['up']['w']", "*['b']", "*['down']['w']", "*['b']", 'net.py:31']
    """

    def __init__(self, summary: Summary) -> None:
        rows = (*summary.inputs, *summary.outputs)
        self._known = {row.name for row in rows}
        self._beside: dict[str, set[str]] = {}
        for row in rows:
            self._beside.setdefault(_keys(row.name)[0], set()).add(_skeleton(row.name))
        self._annotated = {_skeleton(row.name) for row in rows if row.given_by == "user"}

    def __call__(self, name: str) -> str:
        """The short form of a name; what is no input or output, such as a line, stays as it is."""
        keys = _keys(name)
        if name not in self._known or len(keys) < 2:
            return name
        whole = _skeleton(name)
        others = (self._beside[keys[0]] | self._annotated) - {whole}
        for count in range(1, len(keys)):
            end = "".join(keys[-count:])
            if not any(other.endswith(_skeleton(end)) for other in others):
                return f"*{end}" if len(end) + 1 < len(name) else name
        return name


def _keys(name: str) -> list[str]:
    return _KEY.split(name)


def _skeleton(name: str) -> str:
    """A name but for its numbers."""
    return _NUMBER.sub("#", name)
