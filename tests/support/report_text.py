"""Tables of summaries and collectives as plain text and as HTML."""

from __future__ import annotations

from pyshardy.costing.traffic import Traffic
from pyshardy.report.printing import html, plain_text
from pyshardy.report.summary import Summary
from pyshardy.report.tables import summary_tables, traffic_tables


def summary_text(summary: Summary) -> str:
    """The tables of a summary as plain text."""
    return plain_text(summary_tables(summary))


def traffic_text(traffic: Traffic) -> str:
    """The tables of the collectives as plain text."""
    return plain_text(traffic_tables(traffic))


def summary_html(summary: Summary) -> str:
    """The tables of a summary as HTML for a notebook cell."""
    return html(summary_tables(summary))
