"""What a page is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyshardy.costing.peak import Peak
from pyshardy.explain.collectives import Found
from pyshardy.explain.why import Why
from pyshardy.report.summary import Summary
from pyshardy.report.traffic import Traffic


@dataclass(frozen=True)
class Material:
    """A result as the data that a page is made from.

    Attributes:
        source: What was read, such as the name of a file.
        summary: The result from outside.
        why: Explains its values.
        traffic: The collectives of the program of one device.
        found: The same with reasons, those that are alike once.
        hints: Annotations that help, by the reason of the collective.
        memory: What a device holds at the most; None if it is not known.
        cost: Further figures for the overview, each a name and a text.
    """

    source: str
    summary: Summary
    why: Why
    traffic: Traffic
    found: Sequence[Found] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    memory: Peak | None = None
    cost: tuple[tuple[str, str], ...] = ()
