"""Pages of lines for the terminal, for plain text and for notebooks, and the display options of tables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from pyshardy.report.specs import Notation

PLAIN_WIDTH = 120
"""The width of tables without a terminal."""
_WIDEST = 10_000
_COLOURS = TerminalTheme(
    (255, 255, 255),
    (0, 0, 0),
    [
        (0, 0, 0), (0xD6, 0x45, 0x45), (0x2A, 0x8A, 0x4A), (0x8F, 0x73, 0x00),
        (0x3A, 0x78, 0xC9), (0xA8, 0x55, 0xB8), (0x1F, 0x85, 0x88), (0xC0, 0xC0, 0xC0),
    ],
)  # fmt: skip
"""Terminal colours that are readable on white and on black, because notebooks are either."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The display options of tables.

    Attributes:
        notation: The notation of shardings.
        unfold: Whether every tensor, collective and warning has a separate row.
        times: Whether to show the time of every step.
        most_rows: The number of inputs to show; None for all.
    """

    notation: Notation = Notation.SPEC
    unfold: bool = False
    times: bool = False
    most_rows: int | None = None


DEFAULTS = TableOptions()


class Page:
    """Lines that are laid out for a width when they are printed, by `rich` or as plain text.

    Args:
        make: Makes the lines for a width.
    """

    def __init__(self, make: Callable[[int], list[Text]]) -> None:
        self.lines = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def rendered(parts: RenderableType) -> Page:
    """A page of any `rich` renderable, such as its own tables."""

    def lines(width: int) -> list[Text]:
        console = Console(file=StringIO(), width=width, force_jupyter=False)
        rows = console.render_lines(parts, pad=False)
        return [Text.assemble(*[(part.text, part.style or "") for part in row]) for row in rows]

    return Page(lines)


def plain_text(page: Page, width: int = PLAIN_WIDTH) -> str:
    """A page as plain text in a width."""
    return "".join(f"{line.plain.rstrip()}\n" for line in page.lines(width))


def printed(page: Page) -> str:
    """A page as `print` shows it, in the width of `COLUMNS` or of the terminal, otherwise 120 characters."""
    return plain_text(page, printed_width())


def printed_width() -> int:
    """The width of tables on standard output."""
    columns = os.environ.get("COLUMNS", "")
    if re.fullmatch(r"0*[1-9]\d{0,5}", columns, re.ASCII) and int(columns) < _WIDEST:
        return int(columns)
    return Console().width if sys.stdout.isatty() else PLAIN_WIDTH


def html(page: Page) -> str:
    """A page as HTML for a notebook cell, with texts of the program escaped."""
    # with force_jupyter it would display itself
    console = Console(file=StringIO(), record=True, width=PLAIN_WIDTH, force_jupyter=False)
    console.print(page, soft_wrap=True)
    style = "font-family: monospace; line-height: 1.25; white-space: pre; overflow-x: auto"
    return console.export_html(theme=_COLOURS, inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>')


class Printable:
    """A result that `print` and notebooks show as its tables."""

    __slots__ = ()

    def tables(self) -> Page:
        """What is shown, for a `rich` console."""
        raise NotImplementedError

    def __str__(self) -> str:
        return printed(self.tables())

    def _repr_html_(self) -> str:
        return html(self.tables())
