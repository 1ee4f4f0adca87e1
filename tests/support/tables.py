"""Reads printed tables by their headings, so that tests need not change when a table gets a column."""

from __future__ import annotations

import re

Row = dict[str, str]


def tables_in(text: str) -> dict[str, list[Row]]:
    """The rows of every table in a text, by the title of the table; a row has its cells by their headings.

    A cell in several lines is joined by spaces. What the title says of columns without room is left out. The column without a heading, behind a name, says how often.

    >>> found = tables_in("inputs\\nname       bytes\\n────  ───  ─────\\nx     ×24      8\\n\\nmore\\n")
    >>> found
    {'inputs': [{'name': 'x', '': '×24', 'bytes': '8'}]}
    """
    lines = text.splitlines()
    found: dict[str, list[Row]] = {}
    for number, line in enumerate(lines):
        if not re.fullmatch(r"─+(  ─+)*", line):
            continue
        spans = [match.span() for match in re.finditer("─+", line)]
        headings = _cells(lines[number - 1], spans)
        rows: list[Row] = []
        for body in lines[number + 1 :]:
            if not body or body.startswith(("time:", "warning:", "of ", "and ", "every device")):
                break
            _add(rows, body, spans, headings)
        title = lines[number - 2].partition(" (no room for: ")[0] if number >= 2 else ""
        assert title not in found, f"two tables are called {title!r}"
        found[title] = rows
    return found


def _add(rows: list[Row], line: str, spans: list[tuple[int, int]], headings: list[str]) -> None:
    first = spans[0][1]
    if len(line) > first and line[first : first + 2].strip():  # a name that is longer than its column has its own line
        rows.append(dict.fromkeys(headings, "") | {headings[0]: line})
        return
    cells = dict(zip(headings, _cells(line, spans)))
    if cells[headings[0]]:
        rows.append(cells)
    else:
        for heading, cell in cells.items():
            rows[-1][heading] = " ".join(filter(None, (rows[-1][heading], cell)))


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str]:
    return [line[start:end].strip() for start, end in spans]


def column(text: str, title: str, heading: str) -> list[str]:
    """A column of a table in a text."""
    return [row[heading] for row in tables_in(text)[title]]
