"""The blocks of a tensor as text: plain, or coloured by `rich`."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from pyshardy.explain.panels import Panels

if TYPE_CHECKING:
    from rich.text import Text

    from pyshardy.explain.panels import Range, ShardBlock

BLOCK_COLOURS = ("#1b6ca8", "#b5541c", "#2f7d32", "#8e3b9e", "#a12a3a", "#00727d", "#7a5c00", "#4d4fb3")
"""Colours of blocks; white text is readable on all of them."""


def colour_of(row: int, column: int, columns: int, layer: int = 0, rows: int = 1) -> str:
    """The colour of a block; neighbours differ.

    >>> colour_of(0, 0, 2) != colour_of(0, 1, 2) != colour_of(1, 0, 2)
    True
    """
    place = (layer * rows + row) * columns + column
    return BLOCK_COLOURS[(place + (row if columns % len(BLOCK_COLOURS) == 0 else 0)) % len(BLOCK_COLOURS)]


def drawing_text(title: str, panels: Panels) -> str:
    """The drawing without colours."""
    return str(renderable(title, panels, has_colour=False).plain)


def coloured_text(title: str, panels: Panels) -> str:
    """The drawing with colours for a terminal."""
    from rich.console import Console

    text = renderable(title, panels, has_colour=True)
    width = max(len(line) for line in text.plain.splitlines())
    stream = StringIO()
    console = Console(
        file=stream, force_terminal=True, force_jupyter=False, width=max(width, 20), color_system="truecolor"
    )
    console.print(text, end="")
    return stream.getvalue()


def renderable(title: str, panels: Panels, has_colour: bool) -> Text:
    """The drawing for a `rich` console."""
    from rich.text import Text

    text = Text(title, no_wrap=True)
    for layer, (depth, rows) in enumerate(panels):
        if depth is not None:
            text.append(f"\n\n{_range(depth)} of dimension 0")
        _panel(text, rows, layer, has_colour)
    return text


def _range(one: Range) -> str:
    return f"{one[0]}:{one[1]}"


def _panel(text: Any, rows: list[list[ShardBlock]], layer: int, has_colour: bool) -> None:
    heads = [_range(block.ranges[-1]) for block in rows[0]]
    sides = [_range(row[0].ranges[-2]) if len(row[0].ranges) > 1 else "" for row in rows]
    width = max(len(one) for one in (*heads, *(block.label for row in rows for block in row)))
    margin = max(map(len, sides))
    indent = " " * (margin + 1 if margin else 0)

    def rule(left: str, between: str, right: str) -> str:
        return f"\n{indent}{left}{between.join('─' * (width + 2) for _ in heads)}{right}"

    text.append(f"\n{indent}" + "".join(f"  {head:^{width}}" + " " for head in heads).rstrip())
    text.append(rule("┌", "┬", "┐"))
    for number, (side, row) in enumerate(zip(sides, rows)):
        if number:
            text.append(rule("├", "┼", "┤"))
        text.append(f"\n{side:>{margin}} │" if margin else "\n│")
        for column, block in enumerate(row):
            colour = colour_of(number, column, len(row), layer, len(rows))
            text.append(f" {block.label:^{width}} ", style=f"white on {colour}" if has_colour else None)
            text.append("│")
    text.append(rule("└", "┴", "┘"))
