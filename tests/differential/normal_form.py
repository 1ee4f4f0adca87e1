"""What is different between two texts of a module besides the numbers of values, and which listed reasons explain it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_NUMBERS = re.compile(r"%[\w#]+(:\d+)?|#?loc\d*(\(.*?\))?|handle = \d+|\^bb\d+")
_OP = re.compile(r'"(?:\w+)\.(\w+)"\(')


@dataclass(frozen=True)
class Changes:
    """The lines that one text has and the other has not, each as often as that is so, without numbers.

    Attributes:
        removed: Lines of the reference's text.
        added: Lines of ours.
    """

    removed: tuple[str, ...]
    added: tuple[str, ...]


def changes(details: str) -> Changes:
    """What a unified diff comes down to.

    >>> changes('--- wanted\\n+++ given\\n-  %1 = "a.b"(%0)\\n+  %1 = "a.c"(%0)\\n+  %2 = "a.b"(%0)')
    Changes(removed=(), added=('= "a.c"()',))
    """
    lines = [line for line in details.splitlines()[2:] if line[:1] in ("-", "+") and line[1:5] != "#loc"]
    removed, added = (Counter(_NUMBERS.sub("", line[1:]).strip() for line in lines if line[0] == sign) for sign in "-+")
    return Changes(tuple((removed - added).elements()), tuple((added - removed).elements()))


def in_short(details: str) -> str:
    """A difference without lines that have other numbers only; all of it if there are no others."""
    found = changes(details)
    lines = [*(f"- {line}" for line in found.removed), *(f"+ {line}" for line in found.added)]
    return "\n".join(lines) or details


def ops_of(lines: Iterable[str]) -> set[str]:
    """The names of the ops in some lines, without their dialect; "region" for a line around or between regions.

    >>> sorted(ops_of(['= "stablehlo.add"(, ) : ...', "}) : ..."]))
    ['add', 'region']
    """
    return {match[1] if (match := _OP.search(line)) else "region" for line in lines}


@dataclass(frozen=True)
class Reason:
    """A listed reason for a difference.

    Attributes:
        name: Its name.
        module: What the module that goes in looks like.
        removed: The ops that our result may lack.
        added: The ops that it may have besides.
        lacks: What a line that our result lacks looks like, if there must be one.
        has: What a line that it has besides looks like, if there must be one.
    """

    name: str
    module: str
    removed: frozenset[str] = field(default_factory=frozenset)
    added: frozenset[str] = field(default_factory=frozenset)
    lacks: str = ""
    has: str = ""

    def applies(self, text: str, found: Changes) -> bool:
        """Whether this is one of the reasons for a difference."""
        return bool(
            re.search(self.module, text)
            and (not self.lacks or any(re.search(self.lacks, line) for line in found.removed))
            and (not self.has or any(re.search(self.has, line) for line in found.added))
        )


def explain(text: str, details: str, reasons: Sequence[Reason]) -> str | None:
    """The first reasons that together explain every line that differs; None if something is left, or only the order.

    Args:
        text: The module that goes in.
        details: The difference, a unified diff.
        reasons: The reasons there are.
    """
    return explain_changes(text, changes(details), reasons)


def explain_changes(text: str, found: Changes, reasons: Sequence[Reason]) -> str | None:
    """The same for lines that have been compared."""
    removed, added = ops_of(found.removed), ops_of(found.added)
    names = []
    for reason in (reason for reason in reasons if reason.applies(text, found)):
        if removed & reason.removed or added & reason.added:
            names.append(reason.name)
            removed, added = removed - reason.removed, added - reason.added
    return " and ".join(names) if names and not removed and not added else None
