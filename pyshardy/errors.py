"""The errors of pyshardy: each says what was being done, where, what was given, and what was needed.

A caller can catch `ShardyError` for all of them. The command line prints `str(error)` and exits with a
non-zero status; it never shows a traceback for these.
"""

from __future__ import annotations

from typing import Any, Self


class ShardyError(Exception):
    """An error with the five parts of a useful message.

    Args:
        doing: What was being done, in the -ing form: "reading the mesh".
        where: The place: an op with its location, a value, a file and line.
        got: What was given.
        needed: What would have been right.
        hint: What to try.

    >>> print(ShardyError("splitting axis x", got="size 6", needed="a multiple of 4"))
    splitting axis x: got size 6, needed a multiple of 4
    """

    def __init__(
        self,
        doing: str,
        *,
        where: str | None = None,
        got: str | None = None,
        needed: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.doing = doing
        self.where = where
        self.got = got
        self.needed = needed
        self.hint = hint
        super().__init__(self._message())

    def located(self, doing: str, where: str | None = None) -> Self:
        """This error with another `doing`, and with `where` unless it has a place already; the rest stays."""
        self.doing = doing
        self.where = self.where or where
        self.args = (self._message(),)
        return self

    def _message(self) -> str:
        facts = [f"got {self.got}" if self.got else "", f"needed {self.needed}" if self.needed else ""]
        text = self.doing
        if any(facts):
            text += ": " + ", ".join(fact for fact in facts if fact)
        if self.where:
            text += f"\n  at {self.where}"
        if self.hint:
            text += f"\n  try: {self.hint}"
        return text


class InvalidShardingError(ShardyError):
    """A mesh, an axis or a sharding that breaks an invariant of the representation."""


class NotationError(ShardyError):
    """Text that is not valid notation; shows the text with a caret under the offending place.

    Args:
        text: The whole text that was parsed.
        position: Offset of the offending character in `text`.

    >>> print(NotationError("reading an axis", text='{"x", 3}', position=6, needed="an axis name in quotes"))
    reading an axis: needed an axis name in quotes
      {"x", 3}
            ^
    """

    def __init__(
        self,
        doing: str,
        *,
        text: str,
        position: int,
        got: str | None = None,
        needed: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.text = text
        self.position = position
        super().__init__(doing, got=got, needed=needed, hint=hint)

    def _message(self) -> str:
        head, _, tail = super()._message().partition("\n")
        start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[start:].partition("\n")[0]
        caret = " " * (self.position - start) + "^"
        return "\n".join(part for part in (head, f"  {line}", f"  {caret}", tail) if part)


class InvalidModuleError(ShardyError):
    """A program that cannot be read, or that breaks an invariant some step needs.

    Attributes:
        diagnostics: The underlying messages with their places, if there are any (`ir.diagnostics.Diagnostic`).
    """

    diagnostics: tuple[Any, ...] = ()


class InvalidRuleError(ShardyError):
    """A sharding rule that does not fit its op, or that contradicts itself."""


class RuleNotationError(NotationError, InvalidRuleError):
    """A sharding rule in notation that does not fit an op; shows the place in the notation."""


class UnsupportedVersionError(ShardyError):
    """The installed jax or jaxlib is too old for something; names the version needed."""


class UsageError(ShardyError):
    """A command line, an option or an argument that is wrong."""
