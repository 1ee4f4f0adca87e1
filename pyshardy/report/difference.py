"""What differs between two results, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyshardy.report.changes import Change, CollectiveChange, Talk, Total
from pyshardy.report.difference_tables import difference_lines
from pyshardy.report.printing import DEFAULTS, Page, TableOptions, html, printed

DIFFERENCE_VERSION = 1
"""The version of what `to_json` gives; it grows when a key goes or changes its meaning."""


@dataclass(frozen=True)
class Difference:
    """What differs between two results.

    Attributes:
        changes: The tensors that are sharded otherwise: inputs, outputs, then what ops compute.
        sizes: The bytes that a device holds of inputs and outputs.
        compared: How many inputs and outputs, and how many values of ops, were compared.
        how: What was propagated for it, if that is of interest.
        find_talk: Finds out what the devices send otherwise, which takes partitioning both.
    """

    changes: tuple[Change, ...]
    sizes: tuple[Total, ...]
    compared: tuple[int, int]
    how: str = ""
    find_talk: Callable[[], Talk] = field(default=Talk, repr=False, compare=False)

    @cached_property
    def talk(self) -> Talk:
        """What the devices send otherwise; both programs are partitioned when it is first asked for."""
        return self.find_talk()

    @property
    def collectives(self) -> tuple[CollectiveChange, ...]:
        """The collectives that came, went or changed, those that differ most first."""
        return self.talk.collectives

    @property
    def totals(self) -> tuple[Total, ...]:
        """Bytes on one device: of inputs, of outputs, sent in collectives, held at most."""
        return (*self.sizes, *self.talk.totals)

    @property
    def shardings(self) -> tuple[Change, ...]:
        """The tensors that both have and shard otherwise."""
        return tuple(change for change in self.changes if change.is_resharded)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.collectives)

    def without_talk(self) -> Difference:
        """The same without what the devices send, for which nothing is partitioned then."""
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
