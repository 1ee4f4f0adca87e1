"""Which of the cures that pay is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.checkup.choosing import Tried, best_of, is_cause, merged
from pyshardy.checkup.cures import Cure
from pyshardy.report.diagnosis import Figures, Finding, FindingKind


def tried(kind: FindingKind, worth: float) -> Tried:
    cure = Cure(kind, kind.value, "", None, kind.value, lambda module: module, lambda: "a patch")
    return Tried(worth, cure, Figures(1.0, 1))


@pytest.mark.parametrize("kind", [FindingKind.RULE, FindingKind.CONSTRAINT, FindingKind.STATE])
def test_what_changes_the_users_text_comes_first_if_it_saves_as_much(kind: FindingKind) -> None:
    lost = tried(FindingKind.LOST_AXIS, 1.0)
    assert best_of([lost, tried(kind, 0.95)]).cure.kind is kind
    assert best_of([lost, tried(kind, 0.85)]) is lost


def test_a_lost_axis_may_come_before_another_spec_that_saves_more() -> None:
    spec, lost, less = tried(FindingKind.CONFLICT, 1.0), *(tried(FindingKind.LOST_AXIS, worth) for worth in (0.85, 0.7))
    assert best_of([spec, lost]) is lost
    assert best_of([spec, less]) is spec
    slower = lost._replace(figures=Figures(1.3, 1))
    assert best_of([spec, slower]) is spec


@pytest.mark.parametrize("kind", [FindingKind.CONFLICT, FindingKind.STATE])
def test_a_patch_comes_before_a_spec_whose_place_is_not_known_if_it_saves_nearly_as_much(kind: FindingKind) -> None:
    best, patched, less = (tried(kind, worth) for worth in (1.0, 0.85, 0.75))
    unknown = best._replace(cure=replace(best.cure, make_patch=str))
    assert best_of([unknown, patched]) is patched
    assert best_of([unknown, less]) is unknown and best_of([best, patched]) is best


def test_the_first_of_several_values_that_lost_an_axis_is_the_cause() -> None:
    later, first, less = (
        tried(FindingKind.LOST_AXIS, worth)._replace(number=number) for worth, number in ((1.0, 4), (0.99, 2), (0.9, 1))
    )
    assert best_of([later, first, less]) is first
    assert (
        best_of([one._replace(cure=replace(one.cure, kind=FindingKind.LAYOUT)) for one in (later, first)]).number == 4
    )


def test_what_computes_something_else_is_the_cause_of_what_saves_as_much() -> None:
    best = tried(FindingKind.LAYOUT, 1.0)
    parts = [tried(FindingKind.LOST_AXIS, worth) for worth in (0.9, 0.5)]
    as_much, less = (one._replace(cure=replace(one.cure, is_exact=False)) for one in parts)
    assert is_cause(as_much, best) and not is_cause(less, best)
    assert not is_cause(parts[0], best) and not is_cause(as_much, tried(FindingKind.DONATION, 1.0))


def test_what_is_not_tried_comes_before_what_saves_less_and_before_designs() -> None:
    def finding(after: float, is_design: bool = False) -> Finding:
        return Finding(FindingKind.LAYOUT, "", "", None, "", Figures(1.0, 1), Figures(after, 1), "", is_design)

    large, small, design = finding(0.5), finding(0.95), finding(0.4, is_design=True)
    untried = [
        (share, Finding(FindingKind.UNEVEN, str(share), "", None, "", Figures(1.0, 1), None)) for share in (0.3, 0.02)
    ]
    first, second = (one for _, one in untried)
    assert merged([large, small, design], untried, 1e9) == [large, first, small, second, design]
    assert merged([], untried, 1e9) == [first, second]
