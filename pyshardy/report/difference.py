"""The difference between two results, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyshardy.report.changes import Change, CollectiveChange, Talk, Total
from pyshardy.report.difference_tables import difference_lines
from pyshardy.report.printing import DEFAULTS, Page, TableOptions, html, printed

DIFFERENCE_VERSION = 2
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""


@dataclass(frozen=True)
class Difference:
    """The difference between two results.

    Attributes:
        changes: The tensors with different shardings: inputs, outputs, then results of ops.
        sizes: The bytes per device of inputs and outputs.
        compared: The number of compared inputs and outputs, and of results of ops.
        how: How the results were propagated, if that is relevant.
        find_talk: Computes the difference in communication, which partitions both programs.
    """

    changes: tuple[Change, ...]
    sizes: tuple[Total, ...]
    compared: tuple[int, int]
    how: str = ""
    find_talk: Callable[[], Talk] = field(default=Talk, repr=False, compare=False)

    @cached_property
    def talk(self) -> Talk:
        """The difference in communication. The first use partitions both programs."""
        return self.find_talk()

    @property
    def collectives(self) -> tuple[CollectiveChange, ...]:
        """The added, removed and changed collectives, those that differ most first."""
        return self.talk.collectives

    @property
    def totals(self) -> tuple[Total, ...]:
        """The bytes per device: of inputs, of outputs, sent in collectives, peak memory."""
        return (*self.sizes, *self.talk.totals)

    @property
    def shardings(self) -> tuple[Change, ...]:
        """The tensors that both have, with different shardings."""
        return tuple(change for change in self.changes if change.is_resharded)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.collectives)

    def without_talk(self) -> Difference:
        """The difference without communication, so that nothing is partitioned."""
        return replace(self, find_talk=lambda: Talk(unknown="it was not asked for"))

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON-ready data; the keys are the names of the attributes."""
        return {
            "version": DIFFERENCE_VERSION,
            "changes": [change.to_json() for change in self.changes],
            "collectives": [change.to_json() for change in self.collectives],
            "totals": [total.to_json() for total in self.totals],
            "compared": {"inputs_and_outputs": self.compared[0], "values": self.compared[1]},
            "how": self.how or None,
            "unknown": self.talk.unknown,
        }

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The totals, the shardings and the collectives that differ, for a `rich` console."""
        return Page(lambda width: difference_lines(self, options, width))

    def __str__(self) -> str:
        return printed(self.tables())

    def __repr__(self) -> str:
        count = len(self.shardings)
        return f"<Difference: {count or 'no'} {'sharding differs' if count == 1 else 'shardings differ'}>"

    def _repr_html_(self) -> str:
        return html(self.tables())
