"""`-verify-diagnostics`: compares diagnostics with expectations in comments, as in MLIR.

// expected-error@+1 {{has no valid sharding rule}}

As in MLIR, an expectation matches one or several equal diagnostics. A number before the text, which MLIR does not have,
gives their number: `2`, `1+` or `0-1`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.ir.locations import THIS_FILE, source_position

_HEAD = (
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?\s*(?:@(?P<place>[+-]\d{1,18}|above|below|unknown))?"
    r"\s*(?:(?P<least>\d{1,18})(?P<most>\+|-\d{1,18})?)?\s*"
)
_ALONE = re.compile(_HEAD + r"\{\{(?P<text>.*)\}\}$")
"""The only expectation of a line. As in MLIR, its text extends to the end of the line."""
_EXPECTATION = re.compile(_HEAD + r"\{\{(?P<text>(?:\{\{.*?\}\}(?!\})|(?!\}\}(?!\})).)*)\}\}")
_START = re.compile(r"expected-(?:error|warning|remark|note)")
_REGEX_PART = re.compile(r"\{\{(.*?)\}\}(?!\})")
_POSIX_CLASSES = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:xdigit:]": "0-9a-fA-F",
    "[:space:]": r"\s",
    "[:blank:]": r" \t",
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected diagnostic.

    Attributes:
        severity: "error", "warning", "remark" or "note".
        line: The line of the diagnostic, from 1; None if it has no location.
        text: The text between the braces.
        pattern: The pattern that the message must contain.
        written_at: The line of the comment.
        column: Its column in that line, from 1.
        least: The smallest number of diagnostics that must match.
        most: The largest number that may match.
    """

    severity: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    written_at: int
    column: int = 1
    least: int = 1
    most: float = math.inf

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic matches."""
        return diagnostic.severity.value == self.severity and self.is_near(diagnostic)

    def is_near(self, diagnostic: Diagnostic) -> bool:
        """Whether the location and message of a diagnostic match."""
        position = source_position(diagnostic.location)
        if position is None or self.line is None:
            is_there = position is None and self.line is None
        else:
            is_there = position[:2] == (THIS_FILE, self.line)
        return is_there and self.pattern.search(diagnostic.message) is not None

    def problem(self, message: str) -> Diagnostic:
        """An error at the comment."""
        return _error_at(self.written_at, self.column, message)


def find_expectations(text: str) -> list[Expectation]:
    """The expectations in the comments of a file.

    Raises:
        InvalidModuleError: A regular expression is invalid.

    >>> [(e.severity, e.line) for e in find_expectations("// expected-error@+1 {{bad}}\\nx")]
    [('error', 2)]
    """
    if "expected-" not in text:
        return []
    lines = [line.rstrip() for line in text.split("\n")]
    matches = [_matches(line) for line in lines]
    others = [number for number, found in enumerate(matches, start=1) if not found]
    return [
        _expectation(match, number, others, len(lines))
        for number, found in enumerate(matches, start=1)
        for match in found
    ]


def _matches(line: str) -> list[re.Match[str]]:
    """The expectations of a line: one in MLIR's notation, any number in that of pyshardy."""
    starts = _START.findall(line)
    if len(starts) == 1 and (alone := _ALONE.search(line)):
        return [alone]
    return list(_EXPECTATION.finditer(line)) if starts else []


def _expectation(match: re.Match[str], number: int, others: list[int], count: int) -> Expectation:
    column = match.start() + 1
    pattern = _regex(match["text"], number, column) if match["regex"] else re.compile(re.escape(match["text"]))
    line = _target_line(match["place"], number, others, count)
    least, most = _counts(match["least"], match["most"])
    return Expectation(match["severity"], line, match["text"], pattern, number, column, least, most)


def _target_line(place: str | None, number: int, others: Sequence[int], count: int) -> int | None:
    """The line that an expectation in line `number` refers to; `others` are the lines without expectations."""
    if place == "unknown":
        return None
    if place == "above":
        return max((line for line in others if line < number), default=1)
    if place == "below":
        return min((line for line in others if line > number), default=count)
    return number + int(place or 0)


def _counts(least: str | None, most: str | None) -> tuple[int, float]:
    if least is None:
        return 1, math.inf
    if most is None:
        return int(least), int(least)
    return int(least), math.inf if most == "+" else int(most[1:])


def _regex(text: str, line: int, column: int) -> re.Pattern[str]:
    """The pattern of an `-re` expectation: `{{...}}` inside the text are regular expressions."""
    parts = _REGEX_PART.split(text)
    reason = None
    if any("{{" in part for part in parts[::2]):
        reason = "found start of regex with no end '}}'"
    for index, part in enumerate(parts):
        if index % 2:
            for name, characters in _POSIX_CLASSES.items():
                part = part.replace(name, characters)
            parts[index] = f"(?:{part})"
            try:
                re.compile(part)
            except re.error as error:
                reason = reason or f"invalid regex: {error}"
        else:
            parts[index] = re.escape(part)
    if reason is not None:
        failure = InvalidModuleError("reading the expected diagnostics", where=f"line {line}", got=reason)
        failure.diagnostics = (_error_at(line, column, reason),)
        raise failure
    return re.compile("".join(parts))


def check_expectations(
    expected: Sequence[Expectation], diagnostics: Iterable[Diagnostic], *, only_expected: bool = False
) -> Iterator[Diagnostic]:
    """An error for every unexpected diagnostic, and for every expectation without a diagnostic.

    Args:
        expected: The expectations.
        diagnostics: The diagnostics; notes must be expected too.
        only_expected: Whether unexpected diagnostics are allowed.
    """
    seen = [0] * len(expected)
    for diagnostic in _flatten(diagnostics):
        matching = [index for index, one in enumerate(expected) if one.matches(diagnostic)]
        free = [index for index in matching if seen[index] < expected[index].most]
        if free:
            seen[next((index for index in free if seen[index] < expected[index].least), free[0])] += 1
        elif not only_expected:
            yield _unexpected(expected, diagnostic)
    for one, count in zip(expected, seen):
        if count < one.least:
            found = f"was produced {count} of {one.least} times" if count else "was not produced"
            yield one.problem(f'expected {one.severity} "{one.text}" {found}')


def _unexpected(expected: Sequence[Expectation], diagnostic: Diagnostic) -> Diagnostic:
    severity = diagnostic.severity.value
    for one in expected:
        if one.severity != severity and one.is_near(diagnostic):
            return one.problem(f"'{severity}' diagnostic emitted when expecting a '{one.severity}'")
    return Diagnostic(Severity.ERROR, f"unexpected {severity}: {diagnostic.message}", diagnostic.location)


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)


def _error_at(line: int, column: int, message: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, message, f'loc("{THIS_FILE}":{line}:{column})')
