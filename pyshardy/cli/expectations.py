"""`-verify-diagnostics`: comments that say which diagnostics a test file must give, as in MLIR.

// expected-error@+1 {{has no valid sharding rule}}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyshardy.ir.diagnostics import Diagnostic, source_position

_EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?"
    r"\s*(?:@(?P<place>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>(?:\{\{.*?\}\}(?!\})|(?!\}\}(?!\})).)*)\}\}"
)
_REGEX_PART = re.compile(r"\{\{(.*?)\}\}(?!\})")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected diagnostic.

    Attributes:
        severity: "error", "warning", "remark" or "note".
        line: The line it points at, from 1; None where no place is known.
        pattern: What its message contains.
        written_at: The line of the comment.
    """

    severity: str
    line: int | None
    pattern: re.Pattern[str]
    written_at: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether this is the diagnostic that was expected."""
        position = source_position(diagnostic.location)
        return (
            diagnostic.severity.value == self.severity
            and (None if position is None else position[1]) == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def find_expectations(text: str) -> list[Expectation]:
    """The expectations in the comments of a file.

    >>> [(e.severity, e.line) for e in find_expectations("// expected-error@+1 {{bad}}\\nx")]
    [('error', 2)]
    """
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        for match in _EXPECTATION.finditer(line):
            target = _target_line(match["place"], number, lines)
            pattern = _regex(match["text"]) if match["regex"] else re.escape(match["text"])
            found.append(Expectation(match["severity"], target, re.compile(pattern), number))
    return found


def _target_line(place: str | None, number: int, lines: list[str]) -> int | None:
    if place == "unknown":
        return None
    if place in ("above", "below"):
        step = -1 if place == "above" else 1
        number += step
        while 0 < number <= len(lines) and _EXPECTATION.search(lines[number - 1]):
            number += step
        return number
    return number + int(place or 0)


def _regex(text: str) -> str:
    """The pattern of an `-re` expectation: `{{...}}` inside the text are regular expressions."""
    parts = _REGEX_PART.split(text)
    return "".join(f"(?:{part})" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def check_expectations(expected: list[Expectation], diagnostics: Iterable[Diagnostic]) -> Iterator[tuple[int, str]]:
    """Line and message of everything that does not agree: what came unexpected, and what did not come."""
    left = list(expected)
    for diagnostic in _flatten(diagnostics):
        match = next((expectation for expectation in left if expectation.matches(diagnostic)), None)
        if match is not None:
            left.remove(match)
        elif diagnostic.severity.value != "note":
            position = source_position(diagnostic.location)
            line = position[1] if position else 0
            yield line, f"unexpected {diagnostic.severity.value}: {diagnostic.message}"
    for expectation in left:
        text = expectation.pattern.pattern
        yield expectation.written_at, f'expected {expectation.severity} "{text}" was not produced'


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)
