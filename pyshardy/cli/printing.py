"""Prints tables and data to standard output."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, TextIO

PLAIN_SIGNS = str.maketrans({"─": "-", "×": "x", "→": "->", "≥": ">="})
"""ASCII replacements of the characters of tables."""
_HEIGHT = 40
"""The assumed height without a terminal."""
_FEWEST_ROWS = 5


def print_tables(page: Any) -> None:
    """Print tables in the width of the terminal or of `COLUMNS`; with color on a terminal, unless `NO_COLOR` is set."""
    from rich.console import Console

    from pyshardy.report.printing import plain_text, printed_width

    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and can_show_signs():
        Console(highlight=False).print(page, soft_wrap=True)
        return
    text = plain_text(page, printed_width())
    sys.stdout.write(text if can_show_signs() else text.translate(PLAIN_SIGNS))


def print_text(*texts: str) -> None:
    """Print texts, each on a new line, wrapped at the width of tables."""
    from pyshardy.report.layout import paragraph
    from pyshardy.report.printing import Page

    for text in texts:
        print_tables(Page(partial(paragraph, text)))


def count_lines(page: Any, texts: Sequence[str]) -> int:
    """How many lines a page and texts take."""
    from pyshardy.report.layout import paragraph
    from pyshardy.report.printing import printed_width

    width = printed_width()
    return len(page.lines(width)) + sum(len(paragraph(text, width)) for text in texts)


def can_show_signs(stream: TextIO | None = None) -> bool:
    """Whether a stream, by default standard output, can encode the characters of tables."""
    try:
        "".join(map(chr, PLAIN_SIGNS)).encode((stream or sys.stdout).encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def rows_beside(lines: int) -> int:
    """The number of table rows that fit on the screen beside other lines; none if only a few would fit."""
    from rich.console import Console

    room = (Console().height if sys.stdout.isatty() else _HEIGHT) - lines
    return room if room >= _FEWEST_ROWS else 0


def program() -> str:
    """The command by which the user called this program."""
    name = os.path.basename(sys.argv[0])
    if name != "pyshardy" or shutil.which(name) is not None:
        return "pyshardy"
    return os.path.relpath(sys.argv[0])


def print_json(data: dict[str, Any]) -> None:
    """Print data as JSON."""
    sys.stdout.write(json_text(data))


def json_text(data: dict[str, Any]) -> str:
    """Data as the text of a JSON file."""
    return json.dumps(data, indent=2) + "\n"
