"""What devices send, as data and as tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pyshardy.report.tables import traffic_text
from pyshardy.report.traffic import CollectiveRow, KindTotal, Traffic

GATHER = CollectiveRow(
    kind="all_gather", axes=('"x"', '"y":(1)2'), group_size=4, dtype="f32", shape_before=(2, 8), shape_after=(8, 8),
    sent_bytes_per_device=192, times=1, is_in_loop=False, op="jit(f)/dot_general",
    cause="reshard of operand 0 of stablehlo.dot_general", source=("f.py", 3, 4),
)  # fmt: skip
REDUCE = replace(GATHER, kind="all_reduce", axes=None, group_size=2, shape_after=(2, 8), sent_bytes_per_device=64)
IN_A_LOOP = replace(GATHER, times=3, is_in_loop=True, op=None, cause=None, source=None, axes=('"[x]"',))
TRAFFIC = Traffic((GATHER, REDUCE, IN_A_LOOP))


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in re.split("[┃│]", line)] for line in text.splitlines() if re.search("[┃│]", line)]


def test_totals_count_calls_and_loops_once() -> None:
    assert IN_A_LOOP.total_bytes == 3 * 192
    assert TRAFFIC.kinds == (KindTotal("all_gather", 4, 4 * 192), KindTotal("all_reduce", 1, 64))
    assert TRAFFIC.sent_bytes_per_device == 4 * 192 + 64


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
    assert found[4:] == [
        ["kind", "count", "bytes sent"], ["all_gather", "4", "768 B"], ["all_reduce", "1", "64 B"], ["all", "5", "832 B"],
    ]  # fmt: skip


def test_no_collectives() -> None:
    assert traffic_text(Traffic(())) == "no collectives: no device needs anything from another\n"
    assert (Traffic(()).kinds, Traffic(()).sent_bytes_per_device) == ((), 0)


def test_json_holds_everything() -> None:
    data = json.loads(json.dumps(TRAFFIC.to_json()))
    assert data["sent_bytes_per_device"] == 832
    assert data["kinds"][1] == {"kind": "all_reduce", "count": 1, "sent_bytes_per_device": 64}
    assert [row["kind"] for row in data["collectives"]] == ["all_gather", "all_reduce", "all_gather"]
    assert data["collectives"][0]["source"] == ["f.py", 3, 4]
    assert set(data["collectives"][0]) == set(CollectiveRow.__dataclass_fields__)
