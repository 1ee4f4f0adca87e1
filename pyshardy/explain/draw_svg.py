"""Blocks of a tensor as SVG, in proportion to their sizes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyshardy.explain.draw_text import colour_of

if TYPE_CHECKING:
    from pyshardy.explain.draw import Block, Drawing, Range

_WIDTH, _HEIGHT = 420, 220
"""The largest picture of a layer, in pixels."""
_LEAST = 34
"""The least side of a block that a number fits into."""
_LEFT, _TOP, _GAP = 56, 44, 26
_CHARACTER = 7.2


def svg(drawing: Drawing) -> str:
    """The drawing as SVG."""
    parts: list[str] = []
    top, right = float(_TOP), 0.0
    parts.append(_text(4, 16, drawing.title, "start"))
    for layer, (depth, rows) in enumerate(drawing.panels):
        if depth is not None:
            parts.append(_text(4, top - 24, f"{depth[0]}:{depth[1]} of dimension 0", "start"))
        widths = _sides([block.ranges[-1] for block in rows[0]], _WIDTH, _label_width(rows))
        heights = _sides([_vertical(row[0]) for row in rows], _HEIGHT, _LEAST)
        y = top
        parts += _heads(rows[0], widths, top)
        for number, (row, height) in enumerate(zip(rows, heights)):
            x = float(_LEFT)
            if len(row[0].ranges) > 1:
                start, stop = row[0].ranges[-2]
                parts.append(_text(_LEFT - 6, y + height / 2 + 4, f"{start}:{stop}", "end"))
            for column, (block, width) in enumerate(zip(row, widths)):
                colour = colour_of(number, column, len(row), layer, len(rows))
                parts.append(_rectangle(x, y, width, height, colour, block))
                x += width
            right = max(right, x)
            y += height
        top = y + _GAP * 2
    width, height = max(right + 8, len(drawing.title) * _CHARACTER + 12), top - _GAP * 2 + 8
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
    style = f'style="max-width: 100%; width: {width:.0f}px; font: 12px sans-serif"'
    return f"{head} {style}><title>{escape(drawing.title)}</title>{''.join(parts)}</svg>"


def _vertical(block: Block) -> Range:
    return block.ranges[-2] if len(block.ranges) > 1 else (0, 1)


def _label_width(rows: list[list[Block]]) -> float:
    longest = max(len(block.label) for row in rows for block in row)
    return max(_LEAST, longest * _CHARACTER + 10)


def _sides(ranges: list[Range], most: float, least: float) -> list[float]:
    """The sides of blocks in pixels: in proportion, but none too small for its label."""
    total = sum(stop - start for start, stop in ranges)
    if len(ranges) == 1:
        return [max(least, min(most, 120.0))]
    return [max(least, most * (stop - start) / total) for start, stop in ranges]


def _heads(row: list[Block], widths: list[float], top: float) -> list[str]:
    parts, x = [], float(_LEFT)
    for block, width in zip(row, widths):
        start, stop = block.ranges[-1]
        parts.append(_text(x + width / 2, top - 6, f"{start}:{stop}", "middle"))
        x += width
    return parts


def _rectangle(x: float, y: float, width: float, height: float, colour: str, block: Block) -> str:
    devices = block.label
    place = "[" + ", ".join(f"{start}:{stop}" for start, stop in block.ranges) + "]"
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" stroke="#fff"/>'
    label = _text(x + width / 2, y + height / 2 + 4, devices, "middle", "#fff")
    return f"<g><title>{place} on devices {devices}</title>{box}{label}</g>"


def _text(x: float, y: float, text: str, anchor: str, colour: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
