"""A result in a notebook: a collapsible overview, and collapsed tables below it.

It has no script, since untrusted notebooks drop scripts, and no style sheet, which would affect other cells. Colours
are inline and readable on light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_bytes
from pyshardy.costing.arguments import argument_category
from pyshardy.costing.traffic import Traffic
from pyshardy.report.page.render import environment
from pyshardy.report.printing import Page, html
from pyshardy.report.summary import Summary, TensorRow

AXIS_COLOURS = ("#2a8fd0", "#e0701c", "#1fa67f", "#c973a6", "#d99a1c", "#6b7fd0", "#a58a2a", "#8a9099")
"""Colours of mesh axes, visible on white and black, and distinguishable for the colour-blind."""
_MOST_ROWS = 6

_Bar = tuple[str, str, float, str]


def notebook_html(summary: Summary, traffic: Traffic | None, tables: Page) -> str:
    """The overview of a result as HTML.

    Args:
        summary: The summary of the result.
        traffic: The collectives; None if unknown.
        tables: The collapsed tables.
    """
    colours = _colours(summary.meshes)
    return (
        environment()
        .get_template("notebook.html")
        .render(
            title=summary.title,
            devices=summary.device_count,
            facts=list(_facts(summary, traffic)),
            meshes=[(name, [(axis, size, colours[axis]) for axis, size in mesh.axes]) for name, mesh in summary.meshes],
            bars=list(_bars(summary, traffic, colours)),
            warnings=summary.warnings,
            folded="all inputs and outputs" if traffic is None else "all collectives",
            tables=Markup(html(tables)),
        )
    )


def _colours(meshes: Iterable[tuple[str, Mesh]]) -> dict[str, str]:
    names = dict.fromkeys(axis for _, mesh in meshes for axis, _ in mesh.axes)
    return {name: AXIS_COLOURS[place % len(AXIS_COLOURS)] for place, name in enumerate(names)}


def _facts(summary: Summary, traffic: Traffic | None) -> Iterable[tuple[str, str]]:
    rows = summary.inputs
    whole, held = (sum(getattr(row, name) for row in rows) for name in ("bytes_total", "bytes_per_device"))
    yield format_bytes(held), f"inputs per device, of {format_bytes(whole)}"
    total = summary.tensors_sharded + summary.tensors_replicated
    if total:
        yield f"{summary.tensors_sharded} of {total}", "computed tensors are sharded"
    if traffic is not None:
        sign = "≥ " if traffic.is_lower_bound else ""
        yield f"{sign}{format_bytes(traffic.sent_bytes_per_device)}", "sent by each device"


def _bars(summary: Summary, traffic: Traffic | None, colours: dict[str, str]) -> Iterable[tuple[str, list[_Bar]]]:
    kinds = _kinds(summary.inputs)
    if len(kinds) > 1:
        yield "bytes of inputs per device", _shares(kinds, {})
    sent: dict[str, int] = {}
    first: dict[str, str] = {}
    for row in () if traffic is None else traffic.collectives:
        axes = [axis.split('"')[1] if axis.count('"') > 1 else axis for axis in row.axes or ()]
        name = f"{row.kind.replace('_', '-')} along {', '.join(axes)}" if axes else row.kind.replace("_", "-")
        sent[name] = sent.get(name, 0) + row.total_bytes * row.is_counted
        first[name] = colours.get(axes[0], AXIS_COLOURS[-1]) if axes else AXIS_COLOURS[-1]
    if sent:
        yield "bytes that each device sends", _shares(sent, first)


def _kinds(rows: Iterable[TensorRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        kind = argument_category(row.name)
        found[kind] = found.get(kind, 0) + row.bytes_per_device
    return found


def _shares(sizes: dict[str, int], colours: dict[str, str]) -> list[_Bar]:
    """Bars of the largest figures, in percent of the largest."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])[:_MOST_ROWS]
    most = max(1, ordered[0][1])
    return [
        (name, format_bytes(size), round(100 * size / most, 1), colours.get(name, AXIS_COLOURS[-1]))
        for name, size in ordered
    ]
