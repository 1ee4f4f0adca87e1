"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
from itertools import count
from pathlib import Path

from pyshardy.core.text import named_type
from pyshardy.errors import UsageError

_MOST_LINKS = 40
"""More symbolic links in a row than this are taken for a cycle."""


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically (`replace_file`), for a user who named it.

    Args:
        path: The path.
        content: The content.

    Raises:
        UsageError: The file cannot be written.

    >>> write_whole("", b"new")
    Traceback (most recent call last):
    pyshardy.errors.UsageError: writing a file: got an empty name, needed the name of a file
    """
    if path == "":
        raise UsageError("writing a file", got="an empty name", needed="the name of a file")
    try:
        replace_file(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"writing {path}", got=reason, needed="a place that can be written to") from error


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically: readers never see a part of it, and a failure leaves nothing behind.

    Symbolic links are followed, and an existing file keeps its mode. A device, a pipe or another file that is not
    regular is written directly, never replaced.

    Args:
        path: The path.
        content: The content.

    Raises:
        UsageError: `path` is not a path.
        OSError: The file cannot be written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise UsageError("writing a file", got=named_type(path), needed="a path")
    try:
        target = _target(os.fspath(path))
        if target is None:
            with open(path, "wb") as stream:
                stream.write(content)
        else:
            _replace(target, content)
    except ValueError as error:  # a zero byte, or characters that file names cannot have
        raise OSError("a name that no file can have") from error


def _target(path: str) -> str | None:
    """The regular file that a path leads to, even if it does not exist; None if it must be written directly."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
    except FileNotFoundError:
        pass
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):
            return path
        folder = os.path.dirname(path)
        if os.path.realpath(folder).startswith("/proc/"):  # a file that this process has open, under another name
            return None
        path = os.path.join(folder, os.readlink(path))
    return path


def _replace(target: str, content: bytes) -> None:
    mode = None
    if os.path.exists(target):
        if not os.access(target, os.W_OK):
            raise PermissionError(13, os.strerror(13))
        mode = stat.S_IMODE(os.stat(target).st_mode)
    temporary, handle = _new_file_beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _new_file_beside(target: str) -> tuple[str, int]:
    """A new file in the directory of another one: its path, and the open file."""
    for number in count():
        path = os.path.join(os.path.dirname(target), f".pyshardy-{os.getpid()}-{number}")
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        except FileExistsError:
            continue
    raise AssertionError
