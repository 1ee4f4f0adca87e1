from __future__ import annotations

import jax
import pytest
from end_to_end.real_programs import usable
from jaxlib.version import __version__ as jaxlib

import pyshardy
from programs import PROGRAMS
from pyshardy.costing.traffic import KindTotal
from support.reference import jaxlib_version

from .against_xla import MORE, PAGE, is_lower_bound, rows, sent, summary, totals

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="what is sent depends on XLA: counted for the newest"
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_is_sent_than_by_xla(name: str) -> None:
    usable(name)
    ours, theirs = totals(name)
    assert is_lower_bound(ours) == is_lower_bound(theirs), "loops are counted on one side and not on the other"
    if name not in MORE:
        assert sent(ours) <= sent(theirs)
    page = PAGE.read_text()
    assert f"\n| {name} | " in page
    if f"with jaxlib {jaxlib}," in page:
        assert "\n".join(rows(name, ours, theirs)) in page, "write docs/collectives.md anew, as it says"


def test_what_differs_is_told_apart() -> None:
    gather, reduce = KindTotal("all_gather", 2, 4096), KindTotal("all_reduce", 1, 64)
    assert list(rows("uneven", (gather, reduce), (reduce,))) == [
        "| uneven | all_gather | 2 | 0 | 4,096 | 0 |  |",
        "| uneven | all_reduce | 1 | 1 | 64 | 64 |  |",
        f"| uneven | all | 3 | 1 | 4,160 | 64 | {MORE['uneven']} |",
    ]
    assert list(rows("p", (reduce,), (gather, reduce)))[-1] == "| p | all | 1 | 3 | 64 | 4,160 |  |"
    assert list(rows("p", (reduce,), (reduce,))) == ["| p | all_reduce | 1 | 1 | 64 | 64 |  |"]
    many = KindTotal("all_reduce", 3, 1064, is_lower_bound=True)
    assert list(rows("p", (many,), (reduce,))) == ["| p | all_reduce | ≥ 3 | 1 | ≥ 1,064 | 64 |  |"]
    assert list(rows("p", (reduce,), (gather, many)))[-1] == "| p | all | 1 | ≥ 5 | 64 | ≥ 5,160 |  |"
    assert list(rows("p", (), ())) == ["| p | none | 0 | 0 | 0 | 0 |  |"]


def test_the_summary() -> None:
    found = summary([(10, 40), (100, 100), (0, 0), (0, 8), (12, 10)])
    assert found.startswith("Of the 3 programs that send anything on both sides, 1 sends more than 1.1 times")
    assert found.endswith("The geometric mean is 0.67.")


def test_something_is_compared() -> None:
    """Both sides find the collectives of a program that has some."""
    usable("mlp_training")
    ours, theirs = totals("mlp_training")
    assert {total.kind for total in ours} == {total.kind for total in theirs} == {"all_reduce"}
    partition = pyshardy.partition(pyshardy.load(PROGRAMS["mlp_training"].lower()))
    assert sent(ours) == partition.traffic.sent_bytes_per_device > 0
    assert len(jax.devices()) == 8
