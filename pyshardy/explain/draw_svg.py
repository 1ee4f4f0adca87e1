"""The blocks of a tensor as SVG, in proportion to their sizes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from pyshardy.explain.draw_text import colour_of
from pyshardy.explain.panels import Panels

if TYPE_CHECKING:
    from pyshardy.explain.panels import Range, ShardBlock

_WIDTH, _HEIGHT = 420, 220
"""The largest picture of a layer, in pixels."""
_LEAST = 34
"""The smallest side of a block that fits a number."""
_LEFT, _HEAD, _LINE, _GAP = 56.0, 24, 18, 26
_WIDEST = 760
"""The largest width of layers beside each other."""
_CHARACTER = 7.2


class Text(NamedTuple):
    """A text of a picture, in pixels."""

    x: float
    y: float
    text: str
    anchor: str


class Rectangle(NamedTuple):
    """A block of a picture, in pixels, with its devices and its position in the tensor."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    label: str
    place: str


class Picture(NamedTuple):
    """A drawing as rectangles and texts; the first text is the title."""

    width: float
    height: float
    texts: tuple[Text, ...]
    rectangles: tuple[Rectangle, ...]


class _Panel(NamedTuple):
    """A layer of a drawing, relative to its upper left corner."""

    width: float
    height: float
    texts: tuple[Text, ...]
    rectangles: tuple[Rectangle, ...]


def picture(title: str, panels: Panels) -> Picture:
    """The positions of all parts of a drawing; layers are placed beside each other as far as they fit."""
    texts, rectangles = [Text(4, 16, title, "start")], []
    x, y, row_height, right = 0.0, float(_HEAD), 0.0, 0.0
    for layer, (depth, rows) in enumerate(panels):
        panel = _panel(depth, rows, layer)
        if x and x + panel.width > _WIDEST:
            x, y, row_height = 0.0, y + row_height + _GAP, 0.0
        texts += [one._replace(x=one.x + x, y=one.y + y) for one in panel.texts]
        rectangles += [one._replace(x=one.x + x, y=one.y + y) for one in panel.rectangles]
        x, row_height = x + panel.width + _GAP / 2, max(row_height, panel.height)
        right = max(right, x)
    width = max(right + 8, len(title) * _CHARACTER + 12)
    return Picture(width, y + row_height + 8, tuple(texts), tuple(rectangles))


def _panel(depth: Range | None, rows: list[list[ShardBlock]], layer: int) -> _Panel:
    labels = [f"{start}:{stop}" for row in rows for start, stop in row[0].ranges[-2:-1]]
    left = max(_LEFT, *[len(label) * _CHARACTER + 14 for label in labels]) if labels else _LEFT
    most = (_WIDTH, _HEIGHT) if depth is None else (_WIDTH / 2, _HEIGHT / 2)
    widths = _sides([block.ranges[-1] for block in rows[0]], most[0], _label_width(rows))
    heights = _sides([_vertical(row[0]) for row in rows], most[1], _LEAST)
    y = _LINE * 2.0 if depth is not None else float(_LINE)
    texts = [] if depth is None else [Text(left, 12, f"{depth[0]}:{depth[1]} of dimension 0", "start")]
    texts += _heads(rows[0], widths, left, y)
    rectangles = []
    for number, (row, height) in enumerate(zip(rows, heights)):
        x = left
        if labels:
            texts.append(Text(left - 6, y + height / 2 + 4, labels[number], "end"))
        for column, (block, width) in enumerate(zip(row, widths)):
            colour = colour_of(number, column, len(row), layer, len(rows))
            rectangles.append(Rectangle(x, y, width, height, colour, block.label, _place(block)))
            x += width
        y += height
    depth_width = 0.0 if depth is None else left + len(texts[0].text) * _CHARACTER
    return _Panel(max(x, depth_width), y, tuple(texts), tuple(rectangles))


def svg(title: str, panels: Panels) -> str:
    """The drawing as SVG."""
    made = picture(title, panels)
    parts = [*map(_text, made.texts), *map(_rectangle, made.rectangles)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {made.width:.0f} {made.height:.0f}" role="img"'
    style = f'style="max-width: 100%; width: {made.width:.0f}px; font: 12px sans-serif"'
    return f"{head} {style}><title>{escape(title)}</title>{''.join(parts)}</svg>"


def _vertical(block: ShardBlock) -> Range:
    return block.ranges[-2] if len(block.ranges) > 1 else (0, 1)


def _label_width(rows: list[list[ShardBlock]]) -> float:
    longest = max(len(block.label) for row in rows for block in row)
    return max(_LEAST, longest * _CHARACTER + 10)


def _sides(ranges: list[Range], most: float, least: float) -> list[float]:
    """The sides of blocks in pixels: proportional, but large enough for the labels."""
    total = sum(stop - start for start, stop in ranges)
    if len(ranges) == 1:
        return [max(least, min(most, 120.0))]
    return [max(least, most * (stop - start) / total) for start, stop in ranges]


def _heads(row: list[ShardBlock], widths: list[float], left: float, top: float) -> list[Text]:
    parts, x = [], left
    for block, width in zip(row, widths):
        start, stop = block.ranges[-1]
        parts.append(Text(x + width / 2, top - 6, f"{start}:{stop}", "middle"))
        x += width
    return parts


def _place(block: ShardBlock) -> str:
    return "[" + ", ".join(f"{start}:{stop}" for start, stop in block.ranges) + "]"


def _rectangle(one: Rectangle) -> str:
    x, y, width, height = one[:4]
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{one.colour}" stroke="#fff"/>'
    label = _text(Text(x + width / 2, y + height / 2 + 4, one.label, "middle"), "#fff")
    return f"<g><title>{one.place} on devices {one.label}</title>{box}{label}</g>"


def _text(one: Text, colour: str = "currentColor") -> str:
    return f'<text x="{one.x:.1f}" y="{one.y:.1f}" text-anchor="{one.anchor}" fill="{colour}">{escape(one.text)}</text>'
