"""Which of the cures that pay is chosen."""

from __future__ import annotations

import pytest

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.doctor import _best, _Tried
from pyshardy.report.diagnosis import Figures, FindingKind


def tried(kind: FindingKind, worth: float) -> _Tried:
    cure = Cure(kind, kind.value, "", None, kind.value, lambda module: module, lambda: "a patch")
    return _Tried(worth, cure, Figures(1.0, 1))


@pytest.mark.parametrize("kind", [FindingKind.RULE, FindingKind.CONSTRAINT, FindingKind.STATE])
def test_what_changes_the_users_text_comes_first_if_it_saves_as_much(kind: FindingKind) -> None:
    lost = tried(FindingKind.LOST_AXIS, 1.0)
    assert _best([lost, tried(kind, 0.95)]).cure.kind is kind
    assert _best([lost, tried(kind, 0.85)]) is lost


def test_a_lost_axis_may_come_before_another_spec_that_saves_more() -> None:
    spec, lost, less = tried(FindingKind.CONFLICT, 1.0), *(tried(FindingKind.LOST_AXIS, worth) for worth in (0.85, 0.7))
    assert _best([spec, lost]) is lost
    assert _best([spec, less]) is spec
