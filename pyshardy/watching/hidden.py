"""Words on the programs that are not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_MOST_NAMES = 6
"""The number of names of programs in a line."""


def listed(hidden: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    """The programs that are not shown, the most frequent first, as JSON-ready data.

    Args:
        hidden: How often a program of this name was not shown for this reason.
    """
    return [
        {"name": name, "why": why, "count": count}
        for (name, why), count in sorted(hidden.items(), key=lambda one: (-one[1], one[0]))
    ]


def hidden_lines(others: Sequence[dict[str, Any]], is_filtered: bool) -> list[str]:
    """One line per reason.

    Args:
        others: The result of `listed`.
        is_filtered: Whether programs were asked for by name.

    >>> hidden_lines([{"name": "jit_add", "why": "on one device", "count": 3}], False)
    ['not shown, on one device: 3 (jit_add ×3); --all shows them']
    """
    lines = []
    for why in dict.fromkeys(one["why"] for one in others):
        alike = [one for one in others if one["why"] == why]
        names = [one["name"] + (f" ×{one['count']}" if one["count"] > 1 else "") for one in alike[:_MOST_NAMES]]
        more = f" and {len(alike) - _MOST_NAMES} more" if len(alike) > _MOST_NAMES else ""
        lines.append(f"not shown, {why}: {sum(one['count'] for one in alike)} ({', '.join(names)}{more})")
    if lines and not is_filtered:
        lines[-1] += "; --all shows them"
    return lines
