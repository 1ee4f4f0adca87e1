"""Citations of the pages that say what the code does: `Source: docs/semantics/propagation.md#one-step`.

A docstring has them in a paragraph of its own, a comment at its end, several with a comma between them. Anywhere else
a page may be named as it likes, as long as it exists.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_TARGET = r"docs/semantics/[a-z-]+\.md#[a-z0-9-]+"
_CITATION = re.compile(rf"\bSource: ({_TARGET}(?:, {_TARGET})*)(?=\.?(?:\s|$|\"|'))")
_MENTION = re.compile(r"docs/[\w/-]+\.md(?:#[\w-]*)?")
_OLD = re.compile(r"\bspec(?:ification)?s?, (?:end of )?(?:sections? )?\d|\b[Ss]ections? \d")
"""The number of a section, which no page has."""
_HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: str) -> list[str]:
    """The anchors of the headings of a page, as GitHub makes them; no two headings may give the same.

    >>> anchors("# One step\\n## `sdy-close-shardings` and `a, b`\\n```\\n# no heading\\n```\\n")
    ['one-step', 'sdy-close-shardings-and-a-b']
    """
    found = []
    for heading in _HEADING.findall(_FENCED.sub("", page)):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.append(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    assert len(found) == len(set(found)), "two headings with the same anchor"
    return found


@cache
def _anchors_of(path: Path) -> Collection[str] | None:
    return frozenset(anchors(path.read_text())) if path.exists() else None


def cited(source: str) -> Iterator[str]:
    """What a source cites: pages with their anchors."""
    for found in _CITATION.findall(source):
        yield from found.split(", ")


def wrong_citations(source: str) -> list[str]:
    """What is wrong with what a source cites: no such page, no such heading, another form, a number of a section."""
    found = [f"{text!r}: no page has numbers" for text in _OLD.findall(source)]
    in_form = {match.span() for match in _CITATION.finditer(source)}
    for match in _MENTION.finditer(source):
        text = match.group()
        name, _, anchor = text.partition("#")
        known = _anchors_of(ROOT / name)
        if known is None:
            found.append(f"{text}: no such page")
        elif "#" in text and anchor not in known:
            found.append(f"{text}: no such heading")
        elif name.startswith("docs/semantics/") and not any(
            a <= match.start() and match.end() <= b for a, b in in_form
        ):
            found.append(f"{text}: not of the form 'Source: docs/semantics/PAGE.md#HEADING'")
    return found
