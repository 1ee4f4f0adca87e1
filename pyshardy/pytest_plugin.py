"""The option `--update-lock` of pytest, which finds this file by its entry point. It imports neither jax nor jaxlib."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

_UPDATE = "PYSHARDY_UPDATE_LOCK"
"""What `pyshardy.testing` reads, which imports jaxlib."""


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    text = "write the locks of pyshardy.testing.assert_sharding instead of comparing with them"
    with suppress(ValueError):  # another plugin has an option of this name; the environment variable is left
        parser.getgroup("pyshardy").addoption("--update-lock", action="store_true", default=False, help=text)


def pytest_configure(config: Any) -> None:
    """Set the environment variable that the option stands for, also for processes that tests start."""
    if config.getoption("--update-lock", default=False) is True:
        before = os.environ.get(_UPDATE)
        os.environ[_UPDATE] = "1"
        config.add_cleanup(lambda: os.environ.update({_UPDATE: before}) if before else os.environ.pop(_UPDATE, None))
