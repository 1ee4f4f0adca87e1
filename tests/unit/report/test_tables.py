"""Summaries as tables: in plain text, in HTML, on a terminal, at any width."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.report.printing import PLAIN_WIDTH, Page, TableOptions, plain_text, printed
from pyshardy.report.specs import Notation
from pyshardy.report.summary import Summary, TensorRow
from pyshardy.report.tables import partition_tables, run_tables, summary_tables
from support.report_text import summary_html, summary_text
from support.tables import column, tables_in

GIVEN = TensorRow("x", (32, 64), "f32", parse_sharding('<@mesh, [{"data"}, {}]>'), (8, 64), 8192, 2048, 2048, False)
FOUND = TensorRow(
    "params['w']", (64, 64), "f32", parse_sharding('<@mesh, [{}, {"model"}]>'), (64, 32), 16384, 8192, 16384, True
)
WHOLE = TensorRow("n", (), "i32", None, (), 4, 4, 4, False)
PARTIAL = TensorRow("sum", (4,), "f32", parse_sharding('<@mesh, [{}], unreduced={"data"}>'), (4,), 16, 16, 16, False)
MESH = Mesh([("data", 4), ("model", 2)])
SUMMARY = Summary(
    title="module @net",
    meshes=(("mesh", MESH),),
    inputs=(GIVEN, FOUND, WHOLE),
    outputs=(PARTIAL, replace(FOUND, name="result")),
    tensors_sharded=5,
    tensors_replicated=2,
    stages=(("read", 0.0015), ("propagate", 1.5)),
    warnings=("mind the gap", "and [this]"),
)
REDUCE = CollectiveRow(
    kind="all_reduce", mesh="@mesh", axes=('"model"',), group_size=2, dtype="f32", shape_before=(8, 64),
    shape_after=(8, 64), sent_bytes_per_device=2048, times=1, is_in_loop=False, is_lower_bound=False, is_counted=True,
    op="jit(f)/layer_0/dot_general", cause="sum of result of stablehlo.dot_general",
    source=("/x/site-packages/flax/linen/linear.py", 287, 8), user_source=("models/net.py", 31, 4),
)  # fmt: skip
TRAFFIC = Traffic(tuple(replace(REDUCE, op=f"jit(f)/layer_{layer}/dot_general") for layer in range(24)))
TOTALS = "bytes per device, and who shards"
WIDTHS = [20, 40, 60, 80, 100, 120, 200]


def layers(count: int) -> tuple[TensorRow, ...]:
    """The weights of so many layers."""
    return tuple(
        replace(row, name=f"state['mean']['layers'][{layer}]['{name}']")
        for layer in range(count)
        for name, row in (("norm", WHOLE), ("w1", FOUND), ("w2", GIVEN))
    )


MODEL = replace(SUMMARY, inputs=(*layers(24), GIVEN), outputs=(), warnings=())


# The verdict


def test_the_first_line_names_the_program_its_devices_and_the_axes() -> None:
    assert summary_text(SUMMARY).splitlines()[0] == "module @net on 8 devices: data=4, model=2"


def test_several_meshes_are_told_apart() -> None:
    other = replace(GIVEN, name="y", sharding=parse_sharding('<@other, [{"a b"}, {}]>'))
    meshes = (("mesh", MESH), ("other", Mesh([("a b", 8)], [7, 6, 5, 4, 3, 2, 1, 0])))
    text = summary_text(replace(SUMMARY, meshes=meshes, inputs=(GIVEN, other, WHOLE)))
    title = 'module @net on 8 devices: @mesh data=4, model=2; @other "a b"=8, devices in an order of their own'
    assert text.splitlines()[0] == title
    assert column(text, "inputs", "sharding") == ["P('data') on @mesh", "P('a b') on @other", "replicated"]


def test_without_a_mesh_the_title_says_what_that_means() -> None:
    text = summary_text(replace(SUMMARY, meshes=()))
    assert text.splitlines()[0] == "module @net: no mesh, nothing is sharded"
    assert "tensors that ops compute" not in text


def test_bytes_are_counted_before_and_after_and_by_whom() -> None:
    inputs, outputs = tables_in(summary_text(SUMMARY))[TOTALS]
    assert inputs == {
        "": "inputs", "unsharded": "24.0 KiB", "annotated": "18.0 KiB", "propagated": "10.0 KiB", "sharded": "2 of 3",
        "by user": "1", "by propagation": "1",
    }  # fmt: skip
    assert [outputs[name] for name in ("unsharded", "annotated", "propagated")] == ["16.0 KiB", "16.0 KiB", "8.0 KiB"]
    assert [outputs[name] for name in ("sharded", "by user", "by propagation")] == ["1 of 2", "0", "1"]
    assert "of 7 tensors that ops compute, 5 are sharded\n" in summary_text(SUMMARY)


def test_warnings_come_before_the_details() -> None:
    text = summary_text(SUMMARY)
    assert text.index("\nwarning: mind the gap\nwarning: and [this]\n") < text.index("\ninputs\n")


def test_equal_warnings_are_one_and_many_are_counted() -> None:
    warnings = (*("same",) * 24, *(f"other {number}" for number in range(20)))
    text = summary_text(replace(SUMMARY, warnings=warnings))
    assert "\nwarning: same (×24)\nwarning: other 0\n" in text
    assert (text.count("warning: "), text.count("and 13 more warnings: --all shows them")) == (8, 1)
    unfolded = plain_text(summary_tables(replace(SUMMARY, warnings=warnings), TableOptions(unfold=True)))
    assert (unfolded.count("warning: "), unfolded.count("more warnings")) == (21, 0)


def test_times_are_shown_on_demand() -> None:
    assert "time:" not in summary_text(SUMMARY)
    lines = plain_text(summary_tables(SUMMARY, TableOptions(times=True))).splitlines()
    assert lines[-1] == "time: read 1.5 ms, propagate 1.50 s"


# Inputs and outputs


def test_every_tensor_has_a_row() -> None:
    found = tables_in(summary_text(SUMMARY))
    assert found["inputs"] == [
        {"name": "x", "tensor": "f32[32, 64]", "sharding": "P('data')", "given by": "user",
         "on one device": "f32[8, 64]", "bytes per device": "2.0 KiB"},
        {"name": "params['w']", "tensor": "f32[64, 64]", "sharding": "P(None, 'model')", "given by": "propagation",
         "on one device": "f32[64, 32]", "bytes per device": "8.0 KiB"},
        {"name": "n", "tensor": "i32[]", "sharding": "replicated", "given by": "", "on one device": "i32[]",
         "bytes per device": "4 B"},
    ]  # fmt: skip
    assert column(summary_text(SUMMARY), "outputs", "sharding") == ['[{}] unreduced "data"', "P(None, 'model')"]
    assert column(summary_text(SUMMARY), "outputs", "given by") == ["user", "propagation"]


def test_shardings_are_written_as_in_the_dialect_on_demand() -> None:
    text = plain_text(summary_tables(SUMMARY, TableOptions(Notation.SDY)))
    assert column(text, "inputs", "sharding") == ['[{"data"}, {}]', '[{}, {"model"}]', "replicated"]
    assert text.startswith('module @net on 8 devices: mesh @mesh = <["data"=4, "model"=2]>\n')


def test_origins_say_more_than_propagation() -> None:
    found = replace(FOUND, origins=("params['w1']", "net.py:12"))
    text = summary_text(replace(SUMMARY, inputs=(found,)))
    assert column(text, "inputs", "given by") == ["params['w1'], net.py:12"]
    several = replace(found, origins=("a", "b", "c", "d"))
    assert column(summary_text(replace(SUMMARY, inputs=(several,))), "inputs", "given by") == ["a, b and 2 more"]


def test_layers_share_a_row_whatever_layer_their_shardings_come_from() -> None:
    inputs = [replace(FOUND, name=f"layers[{layer}]['w2']", origins=(f"layers[{layer}]['w1']",)) for layer in range(24)]
    text = plain_text(summary_tables(replace(SUMMARY, inputs=tuple(inputs))), 200)
    (row,) = tables_in(text)["inputs"]
    assert (row["name"], row["given by"]) == ("layers[0..23]['w2']", "layers[0..23]['w1']")


def test_summaries_with_origins() -> None:
    found = SUMMARY.with_origins([(), ("x",), ()], [(), ("params['w']",)])
    assert [row.origins for row in (*found.inputs, *found.outputs)] == [(), ("x",), (), (), ("params['w']",)]
    with pytest.raises(ValueError, match="shorter"):
        SUMMARY.with_origins([()], [(), ()])


def test_repeated_layers_are_one_row_each() -> None:
    rows = tables_in(summary_text(MODEL))["inputs"]
    assert [(row["name"], row[""], row["bytes per device"]) for row in rows] == [
        ("state['mean']['layers'][0..23]['norm']", "×24", "96 B"),
        ("state['mean']['layers'][0..23]['w1']", "×24", "192.0 KiB"),
        ("state['mean']['layers'][0..23]['w2']", "×24", "48.0 KiB"),
        ("x", "", "2.0 KiB"),
    ]


def test_a_layer_that_is_sharded_otherwise_has_a_row_of_its_own() -> None:
    inputs = list(layers(24))
    inputs[3 * 7 + 1] = replace(inputs[3 * 7 + 1], sharding=None)
    names = column(summary_text(replace(MODEL, inputs=tuple(inputs))), "inputs", "name")
    odd = [name for name in names if "w1" in name]
    assert odd == [f"state['mean']['layers'][{run}]['w1']" for run in ("0..6", "7", "8..23")]


def test_all_unfolds_them() -> None:
    text = plain_text(summary_tables(MODEL, TableOptions(unfold=True)))
    assert column(text, "inputs", "name") == [row.name for row in MODEL.inputs]


def test_in_little_room_origins_are_named_by_their_last_keys() -> None:
    names = [f"params['layers'][{layer}]['{name}']" for layer in range(24) for name in ("w1", "w2")]
    given = [replace(GIVEN, name=name) for name in names[::2]]
    found = [replace(FOUND, name=name, origins=(origin.name,)) for name, origin in zip(names[1::2], given)]
    states = [replace(row, name=f"state{row.name}", origins=(row.name,), is_inferred=True) for row in given]
    page = summary_tables(replace(SUMMARY, inputs=(*given, *found, *states), outputs=()))
    by_width = {width: column(plain_text(page, width), "inputs", "given by") for width in (200, 80)}
    assert by_width == {
        200: ["user", *["params['layers'][0..23]['w1']"] * 2],
        80: ["user", *["*['w1']"] * 2],
    }


# Widths


def test_print_is_as_wide_as_columns_say(monkeypatch: pytest.MonkeyPatch) -> None:
    page = summary_tables(MODEL)
    assert printed(page) == plain_text(page, PLAIN_WIDTH)
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        assert printed(page) == plain_text(page, width)
    for nonsense in ("", "0", "-3", "wide", "9" * 9):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert printed(page) == plain_text(page, PLAIN_WIDTH)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_name_is_cut_at_any_width(width: int) -> None:
    text = plain_text(summary_tables(MODEL, TableOptions(unfold=True)), width)
    assert column(text, "inputs", "name") == [row.name for row in MODEL.inputs]
    words = set(re.split(r"\s+", plain_text(summary_tables(MODEL, TableOptions(unfold=True)), 400)))
    text = re.sub(r" \(no room for: .*\)", "", text)
    assert set(re.split(r"\s+", text)) - {"inferred", "*['w1']"} - words <= {"─" * count for count in range(400)}


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("unfold", [False, True])
def test_lines_are_no_wider_than_asked_for(width: int, unfold: bool) -> None:
    options = TableOptions(unfold=unfold)
    for page in (
        summary_tables(MODEL, options), summary_tables(SUMMARY, options), partition_tables(MODEL, TRAFFIC, options),
        run_tables(MODEL, TRAFFIC, "pyshardy show example", options),
    ):  # fmt: skip
        assert max(map(len, plain_text(page, width).splitlines())) <= width


def test_columns_go_by_their_importance() -> None:
    headings = {width: list(tables_in(plain_text(summary_tables(MODEL), width))["inputs"][0]) for width in (80, 200)}
    assert headings[200] == ["name", "", "tensor", "sharding", "given by", "on one device", "bytes per device"]
    assert headings[80] == ["name", "", "sharding", "given by"]


def test_a_name_that_is_too_long_loses_its_middle() -> None:
    name = "".join(f"['layer{index}']" for index in range(40))
    text = summary_text(replace(SUMMARY, inputs=(replace(GIVEN, name=name),), outputs=()))
    (line,) = (line for line in text.splitlines() if line.startswith("['layer0']"))
    assert len(line) == 120
    (row,) = tables_in(text)["inputs"]
    assert row["name"].startswith("['layer0']") and "…" in row["name"] and row["name"].endswith("['layer39']")
    assert (row["sharding"], row["bytes per device"]) == ("P('data')", "2.0 KiB")


@pytest.mark.parametrize("columns", ["20", "400"])
def test_plain_text_does_not_depend_on_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = summary_text(SUMMARY)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert summary_text(SUMMARY) == expected


def test_plain_text_has_neither_colors_nor_spaces_at_the_end_of_lines() -> None:
    text = summary_text(SUMMARY)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert text.endswith("\n") and not text.endswith("\n\n")


@pytest.mark.parametrize("name", ["params['a[bold]b']", "x[/]", ":smile:", "größe", "<b>&amp;", "テンソル"])
def test_names_are_shown_as_they_are(name: str) -> None:
    inputs = (replace(GIVEN, name=name), replace(GIVEN, name="other"))
    summary = replace(SUMMARY, title=f"module @{name}", inputs=inputs, outputs=(), warnings=(name,))
    text = summary_text(summary)
    assert text.startswith(f"module @{name} on 8 devices: ")
    assert f"\nwarning: {name}\n" in text
    assert f"\n{name} " in text
    assert html.unescape(re.sub("<[^>]+>", "", summary_html(summary))).count(name) == 3


# Runs and partitions


def test_a_run_shows_the_largest_collectives_and_the_inputs_that_are_sharded() -> None:
    found = tables_in(plain_text(run_tables(MODEL, TRAFFIC, "pyshardy show example")))
    assert [row["kind"] for row in found["largest collectives"]] == ["all_reduce"]
    names = [row["name"] for row in found["inputs that are sharded"]]
    assert names == ["state['mean']['layers'][0..23]['w1']", "state['mean']['layers'][0..23]['w2']", "x"]


@pytest.mark.parametrize(("most", "shown"), [(None, 3), (3, 3), (2, 3), (1, 1)])
def test_a_run_shows_as_many_rows_as_there_is_room_for(most: int | None, shown: int) -> None:
    text = plain_text(run_tables(MODEL, None, "pyshardy show example", TableOptions(most_rows=most)))
    assert len(tables_in(text)["inputs that are sharded"]) == shown
    assert text.count("and 2 more rows: pyshardy show example") == (shown == 1)
    none = plain_text(run_tables(MODEL, None, "pyshardy show example", TableOptions(most_rows=0)))
    assert list(tables_in(none)) == [TOTALS]


def test_a_run_shows_everything_on_demand() -> None:
    text = plain_text(run_tables(MODEL, TRAFFIC, "", TableOptions(unfold=True, most_rows=1)))
    assert len(tables_in(text)["inputs"]) == 73
    assert len(tables_in(text)["collectives"]) == 24


def test_the_verdict_of_a_partition_says_what_is_sent() -> None:
    text = plain_text(partition_tables(SUMMARY, TRAFFIC))
    assert "\nevery device sends 48.0 KiB in 24 collectives\n" in text
    unknown = Traffic((replace(REDUCE, is_lower_bound=True),))
    text = plain_text(partition_tables(SUMMARY, unknown))
    assert "\nevery device sends at least 2.0 KiB in at least 1 collective\n" in text


# HTML and color


def test_html_holds_the_same_text() -> None:
    found = summary_html(SUMMARY)
    assert re.fullmatch(r"<pre style=\"[^\"<>]*\">.*</pre>", found, re.DOTALL)
    text = html.unescape(re.sub("<[^>]+>", "", found))
    assert [line.rstrip() for line in text.splitlines()] == summary_text(SUMMARY).splitlines()


def test_making_html_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    summary_html(SUMMARY)
    assert capsys.readouterr() == ("", "")


def test_what_is_split_is_green_on_a_terminal() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=160, no_color=False)
    console.print(summary_tables(SUMMARY), soft_wrap=True)
    green = re.findall(r"\x1b\[32m([^\x1b]*?) *\x1b\[0m", stream.getvalue())
    assert green == ["P('data')", "P(None, 'model')", "P(None, 'model')"]


def test_the_helper_notices_a_cell_that_is_missing() -> None:
    text = plain_text(Page(summary_tables(SUMMARY).lines))
    assert tables_in(text)["inputs"] != tables_in(text.replace("user ", "     "))["inputs"]


def test_a_notebook_shows_a_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    Console(file=io.StringIO()).print("x")
    assert len(shown) == 1  # what a console of rich does there by itself
    assert "@net" in summary_html(SUMMARY) and "@net" in summary_text(SUMMARY)
    assert len(shown) == 1


def contrast(one: str, other: str) -> float:
    """How well one colour can be read on another, as WCAG 2 has it: 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_in_a_notebook_can_be_read_on_white_and_on_black() -> None:
    found = set(re.findall(r"color: (#[0-9a-f]{6})", summary_html(SUMMARY)))
    assert len(found) > 1
    assert min(contrast(colour, ground) for colour in found for ground in ("#ffffff", "#111111")) > 4
    assert contrast("#800000", "#111111") < 2
