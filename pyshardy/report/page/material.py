"""The input of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyshardy.costing.peak import Peak
from pyshardy.costing.traffic import Traffic
from pyshardy.explain.collectives import ExplainedCollectives
from pyshardy.explain.why import Why
from pyshardy.report.diagnosis import Diagnosis
from pyshardy.report.summary import Summary


@dataclass(frozen=True, slots=True)
class PageInput:
    """A result as the input of a page.

    Attributes:
        source: The source of the program, such as the name of a file.
        summary: The summary of the result.
        why: Explains its values.
        traffic: The collectives of the program of one device.
        found: The distinct collectives with their reasons.
        hints: Helpful annotations, by the reason of the collective.
        memory: The peak memory of a device; None if unknown.
        cost: Additional figures for the overview, each a name and a text.
        diagnosis: What costs most; None if nobody looked.
        run: What `run_data` says of an estimated run; None if nobody asked.
        plan: What `plan_data` says of the plan that gave the shardings; None without one.
    """

    source: str
    summary: Summary
    why: Why
    traffic: Traffic
    found: Sequence[ExplainedCollectives] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    memory: Peak | None = None
    cost: tuple[tuple[str, str], ...] = ()
    diagnosis: Diagnosis | None = None
    run: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
