"""Summaries as tables: in plain text, in HTML, on a terminal."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from pyshardy.report.summary import Summary, TensorRow
from pyshardy.report.tables import summary_html, summary_tables, summary_text

GIVEN = TensorRow("x", (32, 64), "f32", '[{"data"}, {}]', (8, 64), 8192, 2048, 2048, False)
FOUND = TensorRow("params['w']", (64, 64), "f32", '[{}, {"model"}]', (64, 32), 16384, 8192, 16384, True)
WHOLE = TensorRow("n", (), "i32", "replicated", (), 4, 4, 4, False)
PARTIAL = TensorRow("sum", (4,), "f32", '[{}] unreduced "data"', (4,), 16, 16, 16, False)
SUMMARY = Summary(
    title="module @net",
    meshes=(("mesh", '<["data"=4, "model"=2]>'), ("other", '<["a"=8]>')),
    inputs=(GIVEN, FOUND, WHOLE),
    outputs=(PARTIAL, replace(FOUND, name="result")),
    tensors_sharded=5,
    tensors_replicated=2,
    stages=(("read", 0.0015), ("propagate", 1.5)),
    warnings=("mind the gap", "and [this]"),
)


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables."""
    return [[cell.strip() for cell in re.split("[┃│]", line)] for line in text.splitlines() if re.search("[┃│]", line)]


def test_the_heading_names_the_program_and_its_meshes() -> None:
    lines = summary_text(SUMMARY).splitlines()
    assert lines[:4] == [
        "module @net", 'mesh @mesh = <["data"=4, "model"=2]>', 'mesh @other = <["a"=8]>', "",
    ]  # fmt: skip


def test_without_a_mesh_the_heading_says_what_that_means() -> None:
    lines = summary_text(replace(SUMMARY, meshes=())).splitlines()
    assert lines[:3] == ["module @net", "no mesh: nothing is sharded", ""]


HEADINGS = ["name", "tensor", "sharding", "given by", "on one device", "bytes per device"]


def test_every_tensor_has_a_row() -> None:
    found = rows(summary_text(SUMMARY))
    assert found[:7] == [
        HEADINGS,
        ["x", "f32[32, 64]", '[{"data"}, {}]', "user", "f32[8, 64]", "2.0 KiB"],
        ["params['w']", "f32[64, 64]", '[{}, {"model"}]', "propagation", "f32[64, 32]", "8.0 KiB"],
        ["n", "i32[]", "replicated", "", "i32[]", "4 B"],
        HEADINGS,
        ["sum", "f32[4]", '[{}] unreduced "data"', "user", "f32[4]", "16 B"],
        ["result", "f32[64, 64]", '[{}, {"model"}]', "propagation", "f32[64, 32]", "8.0 KiB"],
    ]


def test_the_totals_are_sums() -> None:
    assert rows(summary_text(SUMMARY))[7:] == [
        ["", "whole", "per device as annotated", "per device after propagation"],
        ["bytes of inputs", "24.0 KiB", "18.0 KiB", "10.0 KiB"],  # 24580, 18436 and 10244 bytes
        ["bytes of outputs", "16.0 KiB", "16.0 KiB", "8.0 KiB"],  # 16400, 16400 and 8208 bytes
        ["inputs that are sharded", "of 3", "1", "2"],
        ["outputs that are sharded", "of 2", "0", "1"],
        ["computed tensors that are sharded", "of 7", "", "5"],
    ]


def test_stages_and_warnings_come_last() -> None:
    lines = summary_text(SUMMARY).splitlines()
    assert lines[-3:] == ["time: read 1.5 ms, propagate 1.50 s", "warning: mind the gap", "warning: and [this]"]


def test_no_stages_and_no_warnings_are_no_lines() -> None:
    text = summary_text(replace(SUMMARY, stages=(), warnings=()))
    assert "time:" not in text
    assert "warning" not in text
    assert text.splitlines()[-1].startswith(" computed tensors that are sharded")


def test_a_program_without_inputs_and_outputs_has_empty_tables() -> None:
    found = rows(summary_text(replace(SUMMARY, inputs=(), outputs=(), tensors_sharded=0, tensors_replicated=0)))
    assert found[:2] == [HEADINGS, HEADINGS]
    assert found[3:] == [
        ["bytes of inputs", "0 B", "0 B", "0 B"],
        ["bytes of outputs", "0 B", "0 B", "0 B"],
        ["inputs that are sharded", "of 0", "0", "0"],
        ["outputs that are sharded", "of 0", "0", "0"],
        ["computed tensors that are sharded", "of 0", "", "0"],
    ]


def test_plain_text_has_neither_colors_nor_spaces_at_the_end_of_lines() -> None:
    text = summary_text(SUMMARY)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert text.endswith("[this]\n")


@pytest.mark.parametrize("columns", ["20", "400"])
def test_plain_text_does_not_depend_on_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = summary_text(SUMMARY)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert summary_text(SUMMARY) == expected


@pytest.mark.parametrize("name", ["params['a[bold]b']", "x[/]", ":smile:", "größe", "<b>&amp;"])
def test_names_are_shown_as_they_are(name: str) -> None:
    summary = replace(
        SUMMARY, title=f"module @{name}", inputs=(replace(GIVEN, name=name),), outputs=(), warnings=(name,)
    )
    text = summary_text(summary)
    assert rows(text)[1][0] == name
    assert text.startswith(f"module @{name}\n")
    assert text.endswith(f"warning: {name}\n")
    assert html.unescape(re.sub("<[^>]+>", "", summary_html(summary))).count(name) == 3


def test_names_that_are_too_long_are_folded_and_not_cut() -> None:
    name = "".join(f"['layer{index}']" for index in range(40))
    text = summary_text(replace(SUMMARY, inputs=(replace(GIVEN, name=name),), outputs=()))
    table = rows(text.partition("totals")[0])
    assert "".join(row[0] for row in table if row != HEADINGS) == name
    assert max(map(len, text.splitlines())) <= 160


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
    console.print(summary_tables(SUMMARY))
    green = re.findall(r"\x1b\[32m([^\x1b]*?) *\x1b\[0m", stream.getvalue())
    assert green == ['[{"data"}, {}]', '[{}, {"model"}]', '[{}, {"model"}]']
