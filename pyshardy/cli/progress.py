"""Shows the current action on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stage(text: str) -> Iterator[Callable[[str], None]]:
    """Show `text` with a spinner inside the block, on a terminal; gives a function that shows another text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(text) as status:
        yield lambda other: status.update(escape(other))
