"""Reads locks from files and texts: our own, and golden files of MaxText."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path

from pyshardy.core.plain_data import from_plain
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.lock import LOCK_VERSION, Lock
from pyshardy.report.maxtext import lock_of_maxtext

_DOING, _MAKING = "reading a lock", "making a lock"


def load_lock(path: str | PathLike[str]) -> Lock:
    """The lock in a file: one that `Lock.save` wrote, or one of MaxText's golden files of named shardings.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read, or holds no lock.
    """
    if not isinstance(path, (str, PathLike)):
        raise UsageError(_DOING, got=named_type(path), needed="a path")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = f"pyshardy lock PROGRAM -o {path}" if isinstance(error, FileNotFoundError) else None
        raise UsageError(_DOING, got=f"{path}: {reason}", needed="a file that can be read", hint=hint) from error
    except ValueError as error:
        raise UsageError(_DOING, got=f"{path}, which is not text", needed="what pyshardy lock writes") from error
    return parse_lock(text, str(path))


def parse_lock(text: str, name: str = "the text") -> Lock:
    """The lock in a text.

    Args:
        text: The text.
        name: Its name in errors.

    Raises:
        UsageError: The text is not a lock.

    >>> parse_lock("version = 7")
    Traceback (most recent call last):
    pyshardy.errors.UsageError: reading a lock: got version 7, needed version 1, which this pyshardy reads
      at the text
    """
    if text.lstrip().startswith("{"):
        return lock_of_maxtext(text, name)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        got = f"text that is not TOML ({error})"
        raise UsageError(_DOING, where=name, got=got, needed="what pyshardy lock writes") from error
    version = data.get("version")
    if version != LOCK_VERSION:
        got = "no version" if version is None else f"version {version!r}"
        needed = f"version {LOCK_VERSION}, which this pyshardy reads"
        raise UsageError(_DOING, where=name, got=got, needed=needed)
    lock: Lock = from_plain(Lock, data, _DOING, name)
    return lock
