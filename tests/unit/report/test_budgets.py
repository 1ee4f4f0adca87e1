"""Budgets of a program."""

from __future__ import annotations

from typing import Any

import pytest

from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.errors import UsageError
from pyshardy.report.budgets import Budgets
from pyshardy.report.replications import Replication

GATHER = CollectiveRow(
    kind="all_gather",
    mesh="@mesh",
    axes=('"data"', '"model":(1)2'),
    group_size=4,
    dtype="f32",
    shape_before=(4,),
    shape_after=(16,),
    sent_bytes_per_device=1000,
    times=3,
    is_in_loop=True,
    is_lower_bound=False,
    is_counted=True,
    op="jit(step)/decoder/layers_0/mlp/dot_general",
    cause=None,
    source=("/home/me/model.py", 41, 2),
)
TRAFFIC = Traffic((GATHER,))
REPLICATION = Replication("jit(f)/mul", ("model.py", 3, 1), "f32", (8,), None, None, 32, "multiply.1")


def broken(budgets: Budgets, peak: int = 2**30) -> list[str]:
    return list(budgets.broken(peak, TRAFFIC, [REPLICATION]))


def test_limits() -> None:
    assert broken(Budgets("1GiB", "3000")) == []
    assert broken(Budgets("1GiB"), 2**30 + 1) == ["peak memory per device: 1.0 GiB, and 1GiB are allowed"]
    assert broken(Budgets(max_bytes="2.9kB")) == ["bytes sent per device: 2.9 KiB, and 2.9kB are allowed"]


@pytest.mark.parametrize(
    "text",
    [
        "all_gather", "all-gather", "all_*", "all_gather over data", "all_gather over model", "* over *",
        "all_gather over model in decoder/*", "all_gather in decoder/layers_?/mlp", "all_gather in model.py",
        "* in model.py:41",
    ],
)  # fmt: skip
def test_collectives_that_are_named(text: str) -> None:
    (said,) = broken(Budgets(no=(text,)))
    assert said == f"no {text} is allowed: there are 3 at model.py:41, 2.9 KiB"


@pytest.mark.parametrize(
    "text",
    ["all_reduce", "all_gather over mod", "all_gather over model in encoder/*", "all_gather in mlp", "* in model.py:4"],
)
def test_collectives_that_are_not_named(text: str) -> None:
    assert broken(Budgets(no=(text,))) == []


def test_replications() -> None:
    (said,) = broken(Budgets(no_replication=True))
    assert said.startswith("no replication is allowed: the result of `mul` at model.py:3, f32[8], is gathered whole")


@pytest.mark.parametrize("text", ["all gather", "", "all_gather over", "all_gather over a b", "over model"])
def test_what_names_no_collectives(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        Budgets(no=(text,))
    assert f"reading a budget: got no={text!r}, needed KIND, KIND over AXIS" in str(raised.value)


@pytest.mark.parametrize("text", ["much", "0", "-1GiB", "1 XB"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(UsageError, match='needed bytes as text, like "14GiB"'):
        Budgets(max_bytes=text)


@pytest.mark.parametrize("wrong", [{"max_bytes": 5}, {"no": "all_gather"}, {"no": [3]}, {"no_replication": 1}])
def test_what_is_of_another_type(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"reading a budget: got .*, needed .*\n  at {next(iter(wrong))}"):
        Budgets(**wrong)
    assert Budgets(no=["all_gather"]).no == ("all_gather",)  # type: ignore[arg-type]


def test_budgets_are_true_if_there_are_any() -> None:
    assert not Budgets() and Budgets(no_replication=True)
    assert Budgets(no_replication=True).and_(Budgets()).no_replication
