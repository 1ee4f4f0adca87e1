"""What is offered for programs of public reports is as good as what their threads found, but for known cases."""

from __future__ import annotations

import pytest
from public_reports.programs import REPORTS, Report
from public_reports.replay import PAGE, Replayed, line, replay

WORSE = {"gradients of weights in a scan": "a constraint of what the loop passes to its body has no line to stand at"}
"""Reports for which the best way that is offered is worse, each with the reason."""


def check(report: Report, found: Replayed) -> None:
    """Assert that a way is offered that is as good as the thread's, or that its page says otherwise."""
    assert found.is_as_good or not found.has_fix or report.name in WORSE


@pytest.mark.parametrize("report", REPORTS, ids=[report.program.__name__ for report in REPORTS])
def test_a_way_is_as_good_as_the_threads(report: Report) -> None:
    found = replay(report)
    check(report, found)
    assert found.is_as_good or found.has_fix == (report.name in WORSE)


def test_worse_ways_are_noticed() -> None:
    with pytest.raises(AssertionError):
        check(REPORTS[0], Replayed(before=100_000, mended=0, offered=50_000, ways=("a way",)))
    check(REPORTS[0], Replayed(before=100_000, mended=100_000, offered=100_000, ways=()))


def test_the_page_has_every_report() -> None:
    text = PAGE.read_text()
    assert all(report.name in text and report.url in text for report in REPORTS)
    assert "**worse**" in line(REPORTS[0], "none", Replayed(100_000, 0, 50_000, ()))
    assert text.count("**worse**") == len(WORSE)
