"""The environment that a test has to leave as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_OF_OTHERS = ("PYTEST_CURRENT_TEST", "TPU_")
"""The beginnings of the variables that pytest sets, and JAX when it is imported."""


@contextmanager
def kept_environment() -> Iterator[None]:
    """Fail if a variable has changed at the end: later tests hand it to the processes that they start."""
    before = _variables()
    yield
    assert _variables() == before


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHERS)}
