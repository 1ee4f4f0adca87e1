"""Times the stages of a program, and the passes inside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyshardy.passes.base import Pass

Seconds = tuple[tuple[str, float], ...]
"""Names with seconds, in the order of first appearance."""


class Stopwatch:
    """Adds up seconds by the name of a stage, and by the name of a pass.

    Args:
        stages: The stages timed so far.
        passes: The passes timed so far.

    >>> watch = Stopwatch((("read", 0.25),))
    >>> with watch.stage("import"):
    ...     pass
    >>> [name for name, _ in watch.stages]
    ['read', 'import']
    """

    def __init__(self, stages: Seconds = (), passes: Seconds = ()) -> None:
        self._stages = dict(stages)
        self._passes = dict(passes)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the code inside the `with` block."""
        start = time.perf_counter()
        yield
        self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - start

    def after_pass(self, pass_: Pass, _: Any, seconds: float) -> None:
        """Record the time of a pass; a hook for pipelines."""
        self._passes[pass_.name] = self._passes.get(pass_.name, 0.0) + seconds

    @property
    def stages(self) -> Seconds:
        """The stages with their seconds."""
        return tuple(self._stages.items())

    @property
    def passes(self) -> Seconds:
        """The passes with their seconds; passes of one name are added up."""
        return tuple(self._passes.items())
