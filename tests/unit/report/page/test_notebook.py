"""A result in a notebook."""

from __future__ import annotations

import re
from html import unescape

import pyshardy
from support.hostile import hostile_program

from .results import MLP

VOID = {"br"}


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def unbalanced(html: str) -> list[str]:
    """Tags that are not closed in their order."""
    open_tags: list[str] = []
    for tag in re.findall(r"<(/?\w+)", html):
        if tag.startswith("/"):
            if not open_tags or open_tags.pop() != tag[1:]:
                return [tag]
        elif tag not in VOID:
            open_tags.append(tag)
    return open_tags


def test_the_overview_comes_first_and_the_tables_are_folded() -> None:
    html = pyshardy.partition(pyshardy.load(MLP))._repr_html_()
    overview, _, tables = html.partition("<pre ")
    assert "function @main on 8 devices" in text_of(overview)
    assert "66.0 KiB inputs per device, of 136.0 KiB" in text_of(overview)
    assert "2.0 KiB sent by each device" in text_of(overview) and "all-reduce along model" in text_of(overview)
    assert "data 4 model 2" in text_of(overview)
    assert html.count("<details open>") == 1 and overview.rindex("<details>") > overview.rindex("</div>")
    assert "dot_general" in tables


def test_a_propagation_says_nothing_of_what_is_sent() -> None:
    text = text_of(pyshardy.propagate(MLP)._repr_html_())
    assert "3 of 3 computed tensors are sharded" in text and "sent" not in text


def test_markup_is_whole_and_names_are_text() -> None:
    for result in (pyshardy.propagate(MLP), pyshardy.partition(hostile_program())):
        html = result._repr_html_()
        assert unbalanced(html) == []
        assert {tag.strip("/") for tag in re.findall(r"<(/?\w+)", html)} <= {
            "br",
            "code",
            "details",
            "div",
            "pre",
            "span",
            "summary",
        }
    assert unbalanced("<div><b></div>")
