"""Sentences with numbers in place of ops and values, so that a page can link them and write each name once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pyshardy.explain.names import Names
from pyshardy.explain.subject import Subject
from pyshardy.explain.why import Why

MARK = "\ue000"
"""A private-use character that marks an op or value; the letter after it gives the kind."""
_END = "\ue001"
_TOKEN = re.compile(f"{MARK}([vo])(\\d{{1,9}}){_END}")


class LinkedNames(Names):
    """Names ops and values by marks with their numbers."""

    def op(self, op: int) -> str:
        """An op of the program as a mark; results of the main function and sharding groups in words."""
        return f"{MARK}o{op}{_END}" if 0 <= op < self.subject.op_count else super().op(op)

    def value(self, value: int) -> str:
        """A value as a mark."""
        return f"{MARK}v{value}{_END}"


class Sentence(NamedTuple):
    """A sentence without its ops and values.

    Attributes:
        template: The text with marks. The letter of a mark is `v` for a value, `o` for an op, or a role.
        numbers: The numbers of the marks without a role, in order.
    """

    template: str
    numbers: tuple[int, ...]


def linked_why(subject: Subject) -> Why:
    """Explains a program in sentences with marks."""
    why = Why(subject)
    why.names = LinkedNames(subject)
    return why


def parse(text: str, roles: Mapping[tuple[str, int], str] | None = None) -> Sentence:
    """Parse a sentence with marks.

    Args:
        text: A sentence with the names of `LinkedNames`.
        roles: Letters for known pairs of kind and number.

    >>> names = "through \\ue000o3\\ue001 to dimension 1 of \\ue000v12\\ue001"
    >>> parse(names).numbers, parse(names, {("o", 3): "p"}).numbers
    ((3, 12), (12,))
    """
    parts, numbers = _TOKEN.split(text), []
    found = [parts[0].replace(MARK, "\ufffd")]
    for kind, digits, behind in zip(parts[1::3], parts[2::3], parts[3::3]):
        number = int(digits)
        role = None if roles is None else roles.get((kind, number))
        if role is None:
            numbers.append(number)
        found += [MARK, role or kind, behind.replace(MARK, "\ufffd")]
    return Sentence("".join(found), tuple(numbers))
