"""What devices send, as data and as tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pyshardy.report.tables import traffic_text
from pyshardy.report.traffic import CollectiveRow, KindTotal, Traffic

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


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in re.split("[┃│]", line)] for line in text.splitlines() if re.search("[┃│]", line)]


def test_totals_count_what_runs() -> None:
    assert IN_A_LOOP.total_bytes == 3 * 192
    assert TRAFFIC.kinds == (KindTotal("all_gather", 4, 4 * 192, is_lower_bound=True), KindTotal("all_reduce", 1, 64))
    assert (TRAFFIC.sent_bytes_per_device, TRAFFIC.is_lower_bound) == (4 * 192 + 64, True)


def test_what_no_branch_that_counts_sends_is_not_counted() -> None:
    found = Traffic((REDUCE, IF_TAKEN, replace(IF_TAKEN, kind="all_gather", is_lower_bound=True)))
    assert found.kinds == (KindTotal("all_reduce", 1, 64),)
    assert (found.sent_bytes_per_device, found.is_lower_bound) == (64, False)


def test_every_collective_has_a_row() -> None:
    found = rows(traffic_text(TRAFFIC))
    assert found[0] == ["kind", "along", "on one device", "bytes sent", "because of", "op", "source"]
    assert found[1] == [
        "all_gather", '"x", "y":(1)2', "f32[2, 8] -> f32[8, 8]", "192 B",
        "reshard of operand 0 of stablehlo.dot_general", "jit(f)/dot_general", "f.py:3",
    ]  # fmt: skip
    assert found[2][:4] == ["all_reduce", "groups of 2", "f32[2, 8] -> f32[2, 8]", "64 B"]
    assert found[3] == [
        "all_gather", '"[x]"', "f32[2, 8] -> f32[8, 8]", "192 B x 3 per round", "the op itself", "", "",
    ]  # fmt: skip
    assert found[4][3] == "64 B x 7, if taken"
    assert found[5:] == [
        ["kind", "count", "bytes sent"], ["all_gather", "≥ 4", "≥ 768 B"], ["all_reduce", "1", "64 B"],
        ["all", "≥ 5", "≥ 832 B"],
    ]  # fmt: skip


def test_axes_of_several_meshes_are_told_apart() -> None:
    other = replace(GATHER, mesh='@"a b"')
    found = rows(traffic_text(Traffic((GATHER, REDUCE, other))))
    assert [row[1] for row in found[1:4]] == ['@mesh: "x", "y":(1)2', "groups of 2", '@"a b": "x", "y":(1)2']


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
    assert set(data["collectives"][0]) == set(CollectiveRow.__dataclass_fields__)
