"""Building many long-lived objects without repeated scans by the garbage collector."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 10_000
"""The fewest new objects for which it pays to keep the collector away from them."""
_MOST = 2_000_000
"""The collector skips at most so many objects, or four times the new ones; then it runs in full."""
_aged = 0
_collections = 0
_lock = threading.RLock()
_pauses = 0
_was_enabled = False


@contextmanager
def pause_gc() -> Iterator[None]:
    """Switch the cyclic garbage collector off inside the block.

    Blocks may be nested, and several threads may be in one. At the end of the last block, it is on again if it was on.
    If there are many new objects, they count as old afterwards. They stay alive, so scanning them as soon as the
    collector is on again would take a sixth of a pipeline's time and find nothing.

    >>> with pause_gc():
    ...     gc.isenabled()
    False
    """
    global _pauses, _was_enabled
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if not _pauses and _was_enabled:
                _age()
                gc.enable()


def _age() -> None:
    """Move new objects to the oldest generation, unless some objects are frozen or a full collection is due."""
    global _aged, _collections
    count = gc.get_count()[0]
    if count < _MANY or gc.get_freeze_count():
        return
    collections = gc.get_stats()[2]["collections"]
    if collections != _collections:  # a full collection has run since
        _collections, _aged = collections, 0
    _aged += count
    if _aged > max(_MOST, 4 * count):
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
