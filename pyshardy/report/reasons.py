"""Why a plan has a rule: what the best other sharding costs, and which collectives the rule makes."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration

_MOST = 3


@dataclass(frozen=True, slots=True)
class RuleCollective:
    """Collectives that a rule makes, or spares if the numbers are negative, beside the same arrays kept whole.

    Attributes:
        kind: The kind, such as "all_gather".
        axes: The mesh axes, such as "data+model".
        count: How many more run in a step.
        bytes: How many more bytes every device sends for them in a step.
    """

    kind: str
    axes: str
    count: int
    bytes: int

    @property
    def text(self) -> str:
        """In words.

        >>> RuleCollective("all_gather", "data", -3, -2048).text
        '3 all_gather over data (2.0 KiB)'
        """
        number = str(abs(self.count)) if self.count else "larger"
        return f"{number} {self.kind} over {self.axes} ({format_bytes(abs(self.bytes))})"

    @property
    def is_more(self) -> bool:
        """Whether the rule makes them; else it spares them."""
        return self.bytes > 0 or (self.bytes == 0 and self.count > 0)


@dataclass(frozen=True, slots=True)
class PlanReason:
    """What one decision is worth.

    Attributes:
        decision: The decision in words: a rule.
        seconds: How much longer a step takes with the best other decision; negative if it is faster.
        bytes: How much more memory a device needs with it; negative if it needs less.
        instead: The best other decision in words; empty if there is none.
        is_exact: Whether the figures are exact estimates, not rough ones.
        collectives: What changes in the collectives if the arrays of the rule are sharded by it and not whole, the most
            bytes first.
        communication_seconds: How much longer collectives take with the other decision, hidden or not.
    """

    decision: str
    seconds: float
    bytes: float
    instead: str = ""
    is_exact: bool = True
    collectives: tuple[RuleCollective, ...] = ()
    communication_seconds: float = 0.0

    @property
    def sentences(self) -> list[str]:
        """Why, in sentences.

        >>> PlanReason("P('data') for x", 0.012, -1024.0, "P('model')", False).sentences
        ["P('data') for x: with P('model') about 12.0 ms longer, 1.0 KiB less"]
        >>> PlanReason("P() for x", 0.0, 0.0, "P('model')", communication_seconds=0.001).sentences
        ["P() for x: with P('model') the same time, 0 B more, and 1.0 ms more in collectives"]
        """
        said = f"{self.decision}: no other sharding was priced"
        if self.instead:
            said = f"{self.decision}: with {self.instead} {self._worth()}"
        made = [one.text for one in self.collectives if one.is_more]
        spared = [one.text for one in self.collectives if not one.is_more]
        texts = [f"{verb} {_joined(some)}" for verb, some in (("makes", made), ("spares", spared)) if some]
        return [said, *(f"  {text}" for text in texts)]

    def _worth(self) -> str:
        about = "" if self.is_exact else "about "
        memory = f"{format_bytes(round(abs(self.bytes)))} {'more' if self.bytes >= 0 else 'less'}"
        if self.bytes <= 0 and round(self.seconds * 1e9) <= 0 < round(self.communication_seconds * 1e9):
            memory += f", and {format_duration(self.communication_seconds)} more in collectives"
        if not round(abs(self.seconds) * 1e9):
            return f"{about}the same time, {memory}"
        return f"{about}{format_duration(abs(self.seconds))} {'longer' if self.seconds >= 0 else 'less'}, {memory}"


def _joined(texts: list[str]) -> str:
    more = len(texts) - _MOST
    return ", ".join(texts) if more <= 0 else f"{', '.join(texts[:_MOST])} and {more} more"
