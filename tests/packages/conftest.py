"""What packages do to the process when they are imported."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def variables_of_packages() -> Iterator[None]:
    """Take back the environment variables that packages set when they are imported."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
