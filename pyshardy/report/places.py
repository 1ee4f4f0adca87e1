"""Places in source files: their owner, and short forms."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from pyshardy.explain.cells import cell_name

SourcePlace = tuple[str, int, int]
"""File, line and column."""

_LIBRARY = re.compile(r"(?<![^\\/])(?:site-packages|dist-packages|lib[\\/]python3[.\d]*)[\\/]|^<frozen .*>$")
"""The directories of installed packages and of Python's own modules."""
_PYSHARDY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The directory of pyshardy, which may be a checkout."""


def is_library(file: str) -> bool:
    """Whether a file is part of an installed package, of Python or of pyshardy.

    >>> is_library("/usr/lib/python3.13/site-packages/flax/linen/linear.py"), is_library("/home/me/train.py")
    (True, False)
    """
    return file.startswith(_PYSHARDY) or _LIBRARY.search(file) is not None


def user_place(frames: Sequence[SourcePlace]) -> SourcePlace | None:
    """The innermost place in the user's own code; without one, the innermost place.

    Args:
        frames: The calls that led to a place, innermost first.

    >>> user_place([("/lib/python3.13/site-packages/flax/linear.py", 287, 1), ("/home/me/train.py", 31, 4)])
    ('/home/me/train.py', 31, 4)
    """
    return next((frame for frame in frames if not is_library(frame[0])), frames[0] if frames else None)


def short_path(file: str, base: str | None = None) -> str:
    """A path relative to the current directory, if that is shorter; for an installed package, the path inside it.

    Args:
        file: The path.
        base: The directory that paths are relative to; by default the current one.

    >>> short_path("/home/me/models/net.py", "/home/me"), short_path("/x/site-packages/flax/linear.py", "/home/me")
    ('models/net.py', 'flax/linear.py')
    """
    if folders := list(_LIBRARY.finditer(file)):
        return file[folders[-1].end() :] if folders[-1].end() < len(file) else file
    if not os.path.isabs(file):
        return file
    try:
        relative = os.path.relpath(file, base)
    except (OSError, ValueError):  # another drive, or a deleted current directory
        return file
    return relative if len(relative) < len(file) else file


def format_place(place: SourcePlace | None, base: str | None = None, only_name: bool = False) -> str:
    """A place in the usual form, `In[3]:14` for a line of a notebook cell; empty without a place.

    Args:
        place: The place.
        base: The directory that paths are relative to; by default the current one.
        only_name: Whether to omit the directories.

    >>> format_place(("/home/me/net.py", 31, 4), "/home/me")
    'net.py:31'
    """
    if place is None:
        return ""
    shown = cell_name(place[0]) or (os.path.basename(place[0]) if only_name else short_path(place[0], base))
    return f"{shown}:{place[1]}"
