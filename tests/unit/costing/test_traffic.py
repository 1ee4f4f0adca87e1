"""What devices send, as data and as tables."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pyshardy.costing.traffic import CollectiveRow, KindTotal, Traffic
from pyshardy.report.printing import TableOptions, plain_text
from pyshardy.report.tables import traffic_tables
from support.report_text import traffic_text
from support.tables import column, tables_in

GATHER = CollectiveRow(
    kind="all_gather", mesh="@mesh", axes=('"x"', '"y":(1)2'), group_size=4, dtype="f32", shape_before=(2, 8), shape_after=(8, 8),
    sent_bytes_per_device=192, times=1, is_in_loop=False, is_lower_bound=False, is_counted=True, op="jit(f)/dot_general",
    cause="reshard of operand 0 of stablehlo.dot_general", source=("f.py", 3, 4),
)  # fmt: skip
REDUCE = replace(GATHER, kind="all_reduce", axes=None, group_size=2, shape_after=(2, 8), sent_bytes_per_device=64)
IN_A_LOOP = replace(
    GATHER, times=3, is_in_loop=True, is_lower_bound=True, op=None, cause=None, source=None, axes=('"[x]"',)
)
IF_TAKEN = replace(REDUCE, times=7, is_in_loop=True, is_counted=False)
TRAFFIC = Traffic((GATHER, REDUCE, IN_A_LOOP, IF_TAKEN))


def test_totals_count_what_runs() -> None:
    assert IN_A_LOOP.total_bytes == 3 * 192
    assert TRAFFIC.kinds == (KindTotal("all_gather", 4, 4 * 192, is_lower_bound=True), KindTotal("all_reduce", 1, 64))
    assert (TRAFFIC.sent_bytes_per_device, TRAFFIC.is_lower_bound) == (4 * 192 + 64, True)


def test_what_no_branch_that_counts_sends_is_not_counted() -> None:
    found = Traffic((REDUCE, IF_TAKEN, replace(IF_TAKEN, kind="all_gather", is_lower_bound=True)))
    assert found.kinds == (KindTotal("all_reduce", 1, 64),)
    assert (found.sent_bytes_per_device, found.is_lower_bound) == (64, False)


def test_every_collective_has_a_row() -> None:
    text = plain_text(traffic_tables(TRAFFIC, TableOptions(unfold=True)), 200)
    found = tables_in(text)["collectives"]
    assert found[0].items() >= {
        "kind": "all_gather", "": "", "bytes sent": "192 B", "along": 'x, "y":(1)2',
        "because of": "reshard of operand 0 of stablehlo.dot_general", "source": "f.py:3",
        "on one device": "f32[2, 8] → f32[8, 8]", "op": "jit(f)/dot_general",
    }.items()  # fmt: skip
    assert [row["along"] for row in found] == ['x, "y":(1)2', "groups of 2", '"[x]"', "groups of 2"]
    assert [row[""] for row in found] == ["", "", "×3 per round", "×7 if taken"]
    assert [row["bytes sent"] for row in found] == ["192 B", "64 B", "576 B", "448 B"]
    assert (found[2]["because of"], found[2]["op"], found[2]["source"]) == ("the op itself", "", "")
    assert tables_in(text)["totals"] == [
        {"kind": "all_gather", "count": "≥ 4", "bytes sent": "≥ 768 B"},
        {"kind": "all_reduce", "count": "1", "bytes sent": "64 B"},
        {"kind": "all", "count": "≥ 5", "bytes sent": "≥ 832 B"},
    ]


def test_axes_of_several_meshes_are_told_apart() -> None:
    other = replace(GATHER, mesh='@"a b"')
    found = column(traffic_text(Traffic((GATHER, REDUCE, other))), "collectives", "along")
    assert found == ['@mesh: x, "y":(1)2', '@"a b": x, "y":(1)2', "groups of 2"]


# Groups


def in_layers(count: int, **changes: object) -> list[CollectiveRow]:
    """That many equal collectives, each in a layer of its own."""
    return [replace(GATHER, op=f"jit(f)/layer_{layer}/dot_general", **changes) for layer in range(count)]


def test_collectives_of_one_line_and_cause_are_one_row_with_their_sum() -> None:
    (group,) = Traffic(tuple(in_layers(24, times=2))).groups
    assert (group.count, group.total_bytes, len(group.rows)) == (48, 48 * 192, 24)
    (row,) = tables_in(plain_text(traffic_tables(Traffic(tuple(in_layers(24)))), 200))["collectives"]
    assert (row[""], row["bytes sent"], row["op"]) == ("×24", "4.5 KiB", "jit(f)/layer_0..23/dot_general")


@pytest.mark.parametrize(
    "change",
    [{"kind": "all_to_all"}, {"axes": ('"x"',)}, {"cause": None}, {"source": ("f.py", 4, 4)}, {"is_counted": False},
     {"is_lower_bound": True}, {"shape_after": (4, 8)}, {"dtype": "bf16"}, {"mesh": "@other"}],
    ids=str,
)  # fmt: skip
def test_what_differs_is_in_another_group(change: dict[str, object]) -> None:
    assert len(Traffic((GATHER, replace(GATHER, **change))).groups) == 2  # type: ignore[arg-type]


def test_another_column_of_the_line_is_in_the_same_group() -> None:
    assert len(Traffic((GATHER, replace(GATHER, source=("f.py", 3, 40)))).groups) == 1


def test_those_that_send_most_come_first_and_those_that_do_not_count_last() -> None:
    small, large = replace(REDUCE, cause="a"), replace(GATHER, cause="b", sent_bytes_per_device=10_000)
    not_taken = replace(GATHER, sent_bytes_per_device=10**9, is_counted=False)
    groups = Traffic((not_taken, *in_layers(24), small, large)).groups
    assert [group.total_bytes for group in groups] == [10_000, 24 * 192, 64, 10**9]


def test_the_line_of_the_user_stands_before_that_of_the_library() -> None:
    row = replace(GATHER, source=("/x/site-packages/flax/linear.py", 287, 8), user_source=("net.py", 31, 4))
    page = traffic_tables(Traffic((row,)))
    shown = [tables_in(plain_text(page, width))["collectives"][0] for width in range(60, 201, 5)]
    assert (shown[0]["source"], shown[-1]["source"]) == ("net.py:31", "net.py:31 (flax/linear.py:287)")
    causes = dict.fromkeys(one["because of"] for one in shown if "because of" in one)
    assert list(causes)[-2:] == ["reshard of operand 0 of dot_general", "reshard of operand 0 of stablehlo.dot_general"]


def test_no_collectives() -> None:
    assert traffic_text(Traffic(())) == "no collectives: no device needs anything from another\n"
    assert (Traffic(()).kinds, Traffic(()).sent_bytes_per_device) == ((), 0)


def test_json_holds_everything() -> None:
    data = json.loads(json.dumps(TRAFFIC.to_json()))
    assert (data["sent_bytes_per_device"], data["is_lower_bound"]) == (832, True)
    assert data["kinds"][1] == {
        "kind": "all_reduce", "count": 1, "sent_bytes_per_device": 64, "is_lower_bound": False,
    }  # fmt: skip
    assert [row["kind"] for row in data["collectives"]] == ["all_gather", "all_reduce", "all_gather", "all_reduce"]
    assert data["collectives"][0]["source"] == ["f.py", 3, 4]
    assert data["collectives"][0]["axes"] == [
        {"name": "x", "pre_size": 1, "size": None}, {"name": "y", "pre_size": 1, "size": 2},
    ]  # fmt: skip
    assert data["collectives"][1]["axes"] is None
    assert set(data["collectives"][0]) == set(CollectiveRow.__dataclass_fields__) - {"need"}
