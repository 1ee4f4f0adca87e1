"""The page that lists the programs of a watched script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration

if TYPE_CHECKING:
    from pyshardy.watching.session import Found

_STYLE = (
    "body{font-family:sans-serif;margin:2em;color-scheme:light dark}table{border-collapse:collapse}"
    "td,th{padding:.2em 1.2em .2em 0;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}code{font-family:monospace}"
)
_HEADINGS = (
    "program",
    "devices",
    "step, estimated",
    "collectives send",
    "peak memory, estimated",
    "gathered whole",
    "",
)


def index_page(found: Sequence[Found], others: Sequence[dict[str, Any]]) -> bytes:
    """The page that lists programs, with links to their pages.

    Args:
        found: The programs that are shown.
        others: The names, numbers and reasons of the others.
    """
    head = "".join(f"<th>{heading}" for heading in _HEADINGS)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}' for cell in _cells(one))}\n" for one in found)
    rest = "".join(
        f"<li><code>{escape(one['name'])}</code>, {one['count']} times: {escape(one['why'])}" for one in others
    )
    more = f"<h2>Not shown</h2>\n<ul>\n{rest}</ul>\n" if rest else ""
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Programs of the script</title>"
        f"<style>{_STYLE}</style>\n<h1>Programs of the script</h1>\n<table>\n<tr>{head}\n{rows}</table>\n{more}"
    ).encode(errors="backslashreplace")


def _cells(found: Found) -> list[str]:
    title = escape(found.title)
    name = f'<a href="{escape(found.page, quote=True)}">{title}</a>' if found.page else title
    if found.error:
        return [name, str(found.compiled.devices), "", "", "", "", f"not analysed: {escape(found.error)}"]
    cost = (found.data.get("cost") or {}).get("estimated")
    whole = found.data.get("replications") or []
    return [
        name,
        str(found.compiled.devices),
        format_duration(cost["step_seconds"]) if cost else "",
        format_bytes(sent_bytes(cost)) if cost else "",
        format_bytes(cost["memory"]["bytes"]) if cost else "",
        str(len(whole)) if whole else "",
        "stopped before it ran" if found.compiled.stops else "",
    ]


def sent_bytes(estimated: dict[str, Any]) -> int:
    """The bytes that a device sends for the collectives of an estimate.

    >>> sent_bytes({"collectives": [{"sent_bytes_per_device": 6}, {"sent_bytes_per_device": 4}]})
    10
    """
    return int(sum(row["sent_bytes_per_device"] for row in estimated["collectives"]))
