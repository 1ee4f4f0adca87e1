"""The examples on the pages of `docs` that need published packages run, and print what the pages say."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import executed
import generate
import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs"
MISSING = [name for name in generate.PACKAGES if find_spec(name) is None]

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the packages warn of each other and of jax
    pytest.mark.skipif(bool(MISSING), reason="needs published packages, which `make test-packages` installs"),
]


def grouped() -> list[tuple[str, list[executed.Block]]]:
    """The blocks that run together, with the name of their page."""
    pages = [(path.name, path.read_text()) for path in sorted(FOLDER.rglob("*.md"))]
    return [(name, group) for name, text in pages for group in executed.groups(text, packages=True)]


@pytest.mark.parametrize(("page", "group"), grouped())
def test_example(page: str, group: list[executed.Block]) -> None:
    assert any(block.printed for block in group), f"nothing is compared on {page}"
    for block, found in zip(group, executed.outputs(group), strict=True):
        assert block.printed is None or executed.matches(block.printed, found), found


def test_every_package_has_an_example() -> None:
    code = "".join(block.code for _, group in grouped() for block in group)
    assert [name for name in generate.PACKAGES if f"import {name}" not in code and f"from {name}" not in code] == []
