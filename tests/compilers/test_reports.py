"""Programs of public reports beside XLA for TPUs and GPUs: what is offered is as good as what their threads found."""

from __future__ import annotations

import pytest
from public_reports.programs import REPORTS, Report
from public_reports.replay import replay
from public_reports.test_replay import check

from pyshardy.compilers.plugins import is_installed

ASKED = [report for report in REPORTS if not report.by_memory]
COMPILERS = ("tpu:v5e:2x4", "cuda:h100:8")
"""Each program is asked of one of them; `docs/public-reports.md` has both."""


@pytest.mark.parametrize(
    ("report", "compiler"),
    [(report, COMPILERS[number % 2]) for number, report in enumerate(ASKED)],
    ids=[report.program.__name__ for report in ASKED],
)
def test_a_way_is_as_good_as_the_threads(report: Report, compiler: str) -> None:
    if not is_installed(compiler.partition(":")[0]):
        pytest.skip(f"the compiler {compiler} is not installed beside this Python")
    check(report, replay(report, compiler))
