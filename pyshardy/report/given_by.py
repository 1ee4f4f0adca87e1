"""The origins of shardings, as cells of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from pyshardy.core.folding import fold_names
from pyshardy.report.layout import Cell
from pyshardy.report.summary import Summary

_MOST_ORIGINS = 2
"""The most annotations to name as the origin of a sharding."""
_KEY = re.compile(r"(?=[.\[])")
_NUMBER = re.compile(r"\d+")

Shorten = Callable[[str], str]


class OriginData(Protocol):
    """The data from which the origin of a sharding is described."""

    @property
    def given_by(self) -> str:
        """The kind of origin."""

    @property
    def is_inferred(self) -> bool:
        """Whether the origin is propagation."""

    @property
    def origins(self) -> tuple[str, ...]:
        """The annotations that the sharding comes from."""


def given_by_cell(rows: Sequence[OriginData], shorten: Shorten = str) -> Cell:
    """The origin of the shardings of tensors that share a row; for propagation, the annotations, if known.

    Args:
        rows: The tensors.
        shorten: Gives a shorter name of an annotated tensor, for narrow tables.
    """
    row = rows[0]
    if not row.is_inferred:
        return Cell(row.given_by)
    origins = dict.fromkeys(origin for row in rows for origin in row.origins)
    short = _listed(list(dict.fromkeys(map(shorten, origins))))
    return Cell(_listed(list(origins)) or row.given_by, short or None, shortest="inferred")


def _listed(origins: Sequence[str]) -> str:
    """A list of names, with those of layers folded."""
    names = [found.name for found in fold_names((origin, None) for origin in origins)]
    more = f" and {len(names) - _MOST_ORIGINS} more" if len(names) > _MOST_ORIGINS else ""
    return ", ".join(names[:_MOST_ORIGINS]) + more


class ShortNames:
    """Names of annotated inputs and outputs by their last keys, as `annotate` takes them: `*['w1']`.

    A short name keeps the keys that distinguish it from the names beside it and from all other annotated names. The
    number of the layer does not count. `params['layers'][3]['w1']` becomes `*['w1']` even if there is also
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
        """The short form of a name; anything but an input or output, such as a line, does not change."""
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
    """A name with its numbers replaced."""
    return _NUMBER.sub("#", name)
