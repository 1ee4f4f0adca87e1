"""Reading a text from left to right: white space, tokens, numbers, strings and lists, with the place of an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from pyshardy.core.text import named_type, unquote
from pyshardy.errors import NotationError, ShardyError, UsageError

_T = TypeVar("_T")

_SPACE = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*)*")
_SPACE_STARTS = frozenset(" \t\r\n/")
STRING = re.compile(r'"((?:[^"\\\n\v\f]|\\["\\nt]|\\[0-9A-Fa-f]{2})*)"')
_INTEGER = re.compile(r"0x[0-9A-Fa-f]+|[0-9]+")
WORD = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_MAX_INT64 = 2**63 - 1


class Scanner:
    """A position in a text, with the basic operations that the parsers of this package use.

    Args:
        text: The text to read.
        doing: What is being read, for messages.
    """

    def __init__(self, text: str, doing: str) -> None:
        if not isinstance(text, str):
            raise UsageError(doing, got=named_type(text), needed="text")
        self.text = text
        self.doing = doing
        self.position = 0
        self.skip_space()

    def fail(self, needed: str, *, got: str | None = None, hint: str | None = None) -> NotationError:
        """The error for the text at the current position."""
        return NotationError(
            self.doing, text=self.text, position=self.position, got=got or self._here(), needed=needed, hint=hint
        )

    def _here(self) -> str:
        return repr(self.text[self.position]) if self.position < len(self.text) else "the end of the text"

    def skip_space(self) -> None:
        """Move over white space and comments."""
        if self.text[self.position : self.position + 1] not in _SPACE_STARTS:  # nearly always
            return
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume the pattern and the white space behind it, if it stands here."""
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
            self.skip_space()
        return found

    def accept(self, token: str) -> bool:
        """Consume `token` if it stands here."""
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        self.skip_space()
        return True

    def accept_word(self, word: str) -> bool:
        """Consume `word` if it stands here as a whole word."""
        found = WORD.match(self.text, self.position)
        return found is not None and found.group() == word and self.accept(word)

    def stands_at(self, *tokens: str) -> bool:
        """Whether one of the tokens stands here; an empty one is the end of the text."""
        rest = self.text[self.position :]
        return any(rest.startswith(token) if token else not rest for token in tokens)

    def expect(self, token: str) -> None:
        """Consume `token` or fail."""
        if not self.accept(token):
            raise self.fail(f"'{token}'")

    def integer(self, what: str) -> int:
        """Consume a 64-bit integer or fail."""
        start = self.position
        sign = "-" if self.accept("-") else ""
        found = self.match(_INTEGER)
        value = int64(sign + found.group()) if found else None
        if value is None:
            self.position = start
            raise self.fail("a 64-bit integer", got=sign + found.group()) if found else self.fail(what)
        return value

    def string(self, what: str) -> str:
        """Consume a quoted string and return its content, or fail."""
        found = self.match(STRING)
        if found is None:
            raise self.fail(what)
        return unquote(found.group(1))

    def comma_list(self, item: Callable[[], _T], closing: str) -> list[_T]:
        """Read items separated by commas up to `closing`, which may follow at once."""
        if self.accept(closing):
            return []
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(closing)
        return items

    def build(self, start: int, make: Callable[[], _T]) -> _T:
        """Make a value from the text read since `start`, where an error points to."""
        try:
            return make()
        except NotationError:
            raise
        except ShardyError as error:
            raise NotationError(
                self.doing, text=self.text, position=start, got=error.got, needed=error.needed, hint=error.hint
            ) from error

    def finish(self, value: _T) -> _T:
        """Return the value, or fail if text is left."""
        if self.position != len(self.text):
            raise self.fail("the end of the text")
        return value


def int64(text: str) -> int | None:
    """The integer that the text spells, None if it does not fit into 64 bits."""
    try:
        value = int(text, 16 if "x" in text else 10)
    except ValueError:  # more digits than Python reads
        return None
    return value if -_MAX_INT64 - 1 <= value <= _MAX_INT64 else None
