"""Places in source files: whose they are, and how to write them short."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

SourcePlace = tuple[str, int, int]
"""File, line and column."""

_LIBRARY = re.compile(r"(?<![^\\/])(?:site-packages|dist-packages|lib[\\/]python3[.\d]*)[\\/]|^<frozen .*>$")
"""Folders of what is installed: packages, and Python's own modules."""


def is_library(file: str) -> bool:
    """Whether a file is part of an installed package or of Python.

    >>> is_library("/usr/lib/python3.13/site-packages/flax/linen/linear.py"), is_library("/home/me/train.py")
    (True, False)
    """
    return _LIBRARY.search(file) is not None


def user_place(frames: Sequence[SourcePlace]) -> SourcePlace | None:
    """The innermost place of the user's own code; the innermost at all if there is none.

    Args:
        frames: The calls that led to a place, innermost first.

    >>> user_place([("/lib/python3.13/site-packages/flax/linear.py", 287, 1), ("/home/me/train.py", 31, 4)])
    ('/home/me/train.py', 31, 4)
    """
    return next((frame for frame in frames if not is_library(frame[0])), frames[0] if frames else None)


def short_path(file: str, base: str | None = None) -> str:
    """A path relative to where the user is, if that is shorter; of an installed package, the path in it.

    Args:
        file: The path.
        base: Where the user is; by default the current directory.

    >>> short_path("/home/me/models/net.py", "/home/me"), short_path("/x/site-packages/flax/linear.py", "/home/me")
    ('models/net.py', 'flax/linear.py')
    """
    if folders := list(_LIBRARY.finditer(file)):
        return file[folders[-1].end() :] if folders[-1].end() < len(file) else file
    if not os.path.isabs(file):
        return file
    try:
        relative = os.path.relpath(file, base)
    except (OSError, ValueError):  # another drive, or a current directory that is gone
        return file
    return relative if len(relative) < len(file) else file


def format_place(place: SourcePlace | None, base: str | None = None, only_name: bool = False) -> str:
    """A place as people write it; nothing if there is none.

    Args:
        place: The place.
        base: Where the user is; by default the current directory.
        only_name: Whether to leave out the folders.

    >>> format_place(("/home/me/net.py", 31, 4), "/home/me")
    'net.py:31'
    """
    if place is None:
        return ""
    return f"{os.path.basename(place[0]) if only_name else short_path(place[0], base)}:{place[1]}"
