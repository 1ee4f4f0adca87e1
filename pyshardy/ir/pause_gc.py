"""Building many objects that all stay alive, without the garbage collector looking through them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 10_000
"""So many new objects are worth more than leaving them to the collector."""
_MOST = 2_000_000
"""So many objects may become old without a look at them, or four times what is new; then garbage is looked for."""
_aged = 0
_collections = 0


@contextmanager
def pause_gc() -> Iterator[None]:
    """Switch the cyclic garbage collector off inside the block, if it is on.

    What was made inside counts as old afterwards if it is much: it stays alive, so the collector, which looks through
    everything new as soon as it is on again, would take a sixth of the time of a pipeline to find nothing.

    >>> with pause_gc():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _age()
            gc.enable()


def _age() -> None:
    """Make new objects old ones at once, unless somebody keeps some frozen, or it is time to look for garbage."""
    global _aged, _collections
    count = gc.get_count()[0]
    if count < _MANY or gc.get_freeze_count():
        return
    collections = gc.get_stats()[2]["collections"]
    if collections != _collections:  # somebody has looked through everything since
        _collections, _aged = collections, 0
    _aged += count
    if _aged > max(_MOST, 4 * count):
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
