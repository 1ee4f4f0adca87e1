"""What differs between two results, as data and as tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.report.changes import Change, CollectiveChange, Communication, Total, folded_changes
from pyshardy.report.difference import Difference
from pyshardy.report.printing import TableOptions, plain_text
from pyshardy.report.specs import Notation

ROWS, COLUMNS = parse_sharding('<@m, [{"x"}, {}]>'), parse_sharding('<@m, [{}, {"x"}]>')
WEIGHT = Change("input", "w", (8, 8), "f32", ROWS, COLUMNS, 1, 1, 128, 64)
CAME = CollectiveChange(
    "all_gather",
    ('"x"',),
    "reshard of operand 0 of stablehlo.dot_general",
    ("f.py", 3, 4),
    ("jit(f)/mlp/dot_general",),
    0,
    2,
    0,
    96,
)
DIFFERENCE = Difference(
    (WEIGHT,), (Total("inputs", 128, 64),), (2, 3), "by hand", lambda: Communication((CAME,), (Total("sent", 0, 96),))
)


@pytest.mark.parametrize(("before", "after", "what"), [(0, 2, "added"), (2, 0, "removed"), (1, 2, "changed")])
def test_collectives_come_go_and_change(before: int, after: int, what: str) -> None:
    assert replace(CAME, count_before=before, count_after=after).what == what


def test_what_a_change_is() -> None:
    assert (WEIGHT.is_resharded, WEIGHT.is_more_alike) == (True, False)
    more = replace(WEIGHT, after=ROWS, count_after=2)
    assert (more.is_resharded, more.is_more_alike) == (False, True)
    gone = replace(WEIGHT, count_after=0)
    assert (gone.is_resharded, gone.is_more_alike) == (False, False)


def test_layers_are_folded_with_their_bytes() -> None:
    layers = [replace(WEIGHT, name=f"layers[{layer}].w") for layer in range(4)]
    (found,) = folded_changes(layers)
    assert found == replace(
        WEIGHT, name="layers[0..3].w", count_before=4, count_after=4, bytes_before=512, bytes_after=256
    )
    assert len(folded_changes([*layers[:3], replace(layers[3], after=ROWS)])) == 2


def test_the_devices_are_asked_for_once() -> None:
    asked = []

    def find_communication() -> Communication:
        asked.append(1)
        return Communication((CAME,))

    found = replace(DIFFERENCE, find_communication=find_communication)
    assert found.changes and not asked
    assert found.differs and not asked
    assert found.collectives == (CAME,) and str(found) and found.to_json()
    assert asked == [1]


def test_without_what_devices_send() -> None:
    found = DIFFERENCE.without_communication()
    assert found.collectives == ()
    assert "what the devices send is not known: it was not asked for" in str(found)


def test_nothing_differs() -> None:
    found = Difference((), (), (2, 3))
    assert not found.differs
    assert str(found).endswith("every tensor is sharded alike\n\nthe same collectives\n")


def test_as_json() -> None:
    found = json.loads(json.dumps(DIFFERENCE.to_json()))
    assert found["changes"] == [
        {
            "kind": "input", "name": "w", "shape": [8, 8], "dtype": "f32", "before": '[{"x"}, {}]',
            "after": '[{}, {"x"}]', "count_before": 1, "count_after": 1, "bytes_before": 128, "bytes_after": 64,
        }
    ]  # fmt: skip
    assert found["collectives"][0]["what"] == "added"
    assert found["collectives"][0]["axes"] == [{"name": "x", "pre_size": 1, "size": None}]
    assert found["totals"] == [
        {"name": "inputs", "before": 128, "after": 64},
        {"name": "sent", "before": 0, "after": 96},
    ]
    assert found["compared"] == {"inputs_and_outputs": 2, "values": 3}
    gone = replace(DIFFERENCE, changes=(replace(WEIGHT, count_after=0),))
    assert gone.to_json()["changes"][0]["after"] is None


def test_tables_in_the_dialect() -> None:
    text = plain_text(DIFFERENCE.tables(TableOptions(notation=Notation.SDY)), 160)
    assert '[{"x"}, {}]' in text and '"x"' in text
    assert "P('x')" in str(DIFFERENCE)


def test_a_notebook_shows_the_same_and_runs_nothing_of_the_program() -> None:
    found = replace(DIFFERENCE, changes=(replace(WEIGHT, name="<script>w</script>"),))
    page = found._repr_html_()
    assert "<script>" not in page
    plain = unescape(re.sub(r"<[^>]+>", "", page))
    assert [line.rstrip() for line in plain.splitlines()] == str(found).splitlines()
