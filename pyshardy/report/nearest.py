"""The plan of experts that is nearest to a plan, what differs, and what the difference saves."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration

_MOST = 8
_SAME = 1e-4
"""The share of a step below which two times are called the same."""


@dataclass(frozen=True, slots=True)
class NearestExpert:
    """The plan of experts that is nearest to a plan.

    Attributes:
        name: What experts call it.
        seconds: Estimated time of a step with it.
        bytes: Estimated peak memory of a device with it.
        fits: Whether the peak is within the limit.
        changes: What the plan has in the place of what the experts have, in words.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    changes: tuple[str, ...] = ()

    def lines(self, seconds: float, bytes: float) -> list[str]:
        """Sentences on the experts' plan beside a plan.

        Args:
            seconds: The time of a step with the plan.
            bytes: The peak memory of a device with the plan.

        >>> NearestExpert("data over data", 0.012, 2048.0, True, ("w: P('model') instead of P()",)).lines(0.009, 1024.0)
        ['nearest plan of experts: data over data, 12.0 ms, peak 2.0 KiB', 'changed, for 3.0 ms (25.0 %) less:', \
"  w: P('model') instead of P()"]
        """
        fit = "" if self.fits else ", which does not fit"
        figures = f"{format_duration(self.seconds)}, peak {format_bytes(round(self.bytes))}{fit}"
        said = [f"nearest plan of experts: {self.name}, {figures}"]
        if not self.changes:
            return [*said, "nothing is changed: it is the plan"]
        more = len(self.changes) - _MOST
        shown = self.changes if more <= 1 else self.changes[:_MOST]
        rest = [] if more <= 1 else [f"  and {more} more changes"]
        gain = _gain(self.seconds - seconds, self.seconds, self.bytes - bytes)
        return [*said, f"changed, for {gain}:", *(f"  {change}" for change in shown), *rest]


def _gain(saved: float, seconds: float, bytes: float) -> str:
    """What changes save, in words; the bytes where they save no time.

    >>> _gain(0.003, 0.012, 0.0), _gain(0.0, 0.012, -1024.0)
    ('3.0 ms (25.0 %) less', 'the same time, 1.0 KiB more')
    """
    if saved > _SAME * seconds:
        return f"{format_duration(saved)} ({100 * saved / seconds:.1f} %) less"
    time = "the same time" if saved >= -_SAME * seconds else f"{format_duration(-saved)} more"
    return f"{time}, {format_bytes(round(abs(bytes)))} {'less' if bytes >= 0 else 'more'}"
