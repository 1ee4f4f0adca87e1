"""One Chromium for all tests of the page; where there is none they are skipped, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support.browser import Browser, chromium, find_chromium


@pytest.fixture(scope="session")
def started() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        assert "PYSHARDY_NEEDS_CHROMIUM" not in os.environ, "this run was to try the page, and there is no Chromium"
        pytest.skip("no Chromium is installed, or PYSHARDY_CHROMIUM names none: nothing can open the page")
    with chromium(path) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """A page of which the console stays empty, and that asks for nothing but the file."""
    started.problems.clear()
    started.requests.clear()
    started.look(1400)
    yield started
    assert started.problems == []
    assert [address for address in started.requests if not address.startswith("file:")] == []
