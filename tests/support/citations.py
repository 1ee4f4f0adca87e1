"""Citations of the pages that say what the code does, such as the one that a step of propagation has:

    Source: docs/semantics/propagation.md#one-step

In a docstring a citation stands in a line of its own, in a comment or another string at its end.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CITATION = re.compile(r"\bSource: (docs/(?:semantics/[a-z-]+|bytecode)\.md)#([a-z0-9-]+)(?=$|[\"'])", re.MULTILINE)
_MENTION = re.compile(r"docs/[\w/-]+\.md(?:#[\w-]*)?")
_ATTEMPT = re.compile(r"\bSource:? (?!docs/(?:semantics/|bytecode\.md))\S*\.md\S*")
_NUMBER = re.compile(r"\b[Ss]pec(?:ification)?s?, (?:end of )?(?:sections? )?\d[\d.]*|\b[Ss]ections? \d[\d.]*")
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
def _anchors_of(page: str) -> Collection[str] | None:
    path = ROOT / page
    return frozenset(anchors(path.read_text())) if path.exists() else None


def cited(source: str) -> list[tuple[str, str]]:
    """The citations of a source: pages, and headings on them."""
    return _CITATION.findall(source)


def wrong_citations(source: str) -> list[str]:
    """The wrong citations in a source, and its wrong references to pages."""
    found = [f"{text}: no page has numbers" for text in _NUMBER.findall(source)]
    found += [f"{text}: no page of docs/semantics" for text in _ATTEMPT.findall(source)]
    citations = {match.start(1): match.end() for match in _CITATION.finditer(source)}
    for match in _MENTION.finditer(source):
        text = match.group()
        page, hash_, anchor = text.partition("#")
        known = _anchors_of(page)
        if known is None:
            found.append(f"{text}: no such page")
        elif hash_ and anchor not in known:
            found.append(f"{text}: no such heading")
        elif page.startswith("docs/semantics/") and citations.get(match.start()) != match.end():
            found.append(f"{text}: not a citation, 'Source: docs/semantics/PAGE.md#HEADING' at the end of a line")
    return found
