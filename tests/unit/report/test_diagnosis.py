"""Findings as text and as data."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from pyshardy.report.diagnosis import Diagnosis, Figures, Finding, FindingKind

NOW, THEN = Figures(0.002, 3 << 30), Figures(0.001, 1 << 30)
FINDING = Finding(
    FindingKind.LOST_AXIS,
    "`x` lost it",
    "because " + "of this and that " * 30,
    ("f.py", 3, 4),
    "x = y",
    NOW,
    THEN,
    "--- a\n",
)
FOUND = Diagnosis((FINDING,), NOW, 2 << 30, 8, "a chip", 5)


def lines(found: Diagnosis, width: int = 80) -> list[str]:
    return [str(line) for line in found.tables().lines(width)]


def test_a_finding_says_what_why_and_what_to_do() -> None:
    shown = lines(FOUND)
    assert shown[0] == "a step takes 2.0 ms on 8 x a chip, 3.0 GiB per device, which does not fit in 2.0"
    assert shown[3] == "1. `x` lost it"
    assert shown[-3:] == [
        "   do: x = y", "   tried: a step 2.0 ms → 1.0 ms, memory per device 3.0 GiB → 1.0 GiB, which", "     fits"
    ]  # fmt: skip
    assert max(map(len, shown)) <= 80


def test_another_design_is_called_so() -> None:
    found = replace(FOUND, findings=(replace(FINDING, is_design=True), FINDING))
    assert [line for line in lines(found) if line.endswith("x = y")] == ["   another design: x = y", "   do: x = y"]
    assert [one["is_design"] for one in found.to_json()["findings"]] == [True, False]


def test_long_causes_are_shortened_to_a_screen() -> None:
    assert lines(FOUND)[7].endswith(" …")
    three = lines(replace(FOUND, findings=(FINDING,) * 3))
    assert len(three) <= 24 and sum(line.endswith(" …") for line in three) == 3


def test_three_findings_fit_on_a_screen_however_long_their_texts_are() -> None:
    long = "`model['block_*_attention/query/kernel']` and " * 9
    for what, why, cure in product(("short", long), ("", long), ("short", long)):
        one = replace(FINDING, what=what, why=why, cure=cure)
        shown = lines(replace(FOUND, findings=(one,) * 3, speaker="as compiled by a compiler for another chip, " * 3))
        assert len(shown) <= 23 and max(map(len, shown)) <= 80
        for number in (1, 2, 3):
            assert any(line.startswith(f"{number}. {what[:30]}") for line in shown)
        assert sum(line.startswith(f"   do: {cure[:30]}") for line in shown) == 3
        assert sum(line.startswith("   tried: ") for line in shown) == 3


def test_what_to_do_is_cut_last() -> None:
    one = replace(FINDING, what="w " * 200, cure="annotate " * 15)
    shown = lines(replace(FOUND, findings=(one,) * 3))
    assert len(shown) <= 23 and " ".join(" ".join(shown).split()).count("annotate") == 45


def test_without_findings_it_says_what_was_tried() -> None:
    assert "nothing found that costs 1% or more; 5 other programs were tried" in str(replace(FOUND, findings=()))


def test_the_speaker_comes_after_the_verdict() -> None:
    shown = lines(replace(FOUND, speaker="as compiled by X"))
    assert shown[0].startswith("a step takes ") and "as compiled by X" in shown


def test_what_cannot_be_tried_says_so() -> None:
    untried = replace(FOUND, findings=(replace(FINDING, after=None),))
    assert lines(untried)[-1] == "   not tried: no annotation does this"


def test_the_data_has_all_of_it() -> None:
    data = FOUND.to_json()
    assert data["now"] == {"step_seconds": 0.002, "peak_bytes": 3 << 30} and data["memory_limit_bytes"] == 2 << 30
    (finding,) = data["findings"]
    assert finding["kind"] == "lost axis" and (finding["file"], finding["line"]) == ("f.py", 3)
    assert finding["after"] == {"step_seconds": 0.001, "peak_bytes": 1 << 30} and finding["patch"] == FOUND.patch
