"""The examples on the pages of `docs` that need published packages run, and print what the pages say."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import executed
import generate
import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs"
SCRIPTS = FOLDER.parent / "examples/frameworks"
MISSING = [name for name in generate.PACKAGES if find_spec(name) is None]

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the packages warn of each other and of jax
    pytest.mark.skipif(bool(MISSING), reason="needs published packages, which `make test-packages` installs"),
]


def grouped() -> list[tuple[str, list[executed.Block]]]:
    """The blocks that run together, with the name of their page."""
    pages = [(path.name, path.read_text()) for path in sorted(FOLDER.rglob("*.md"))]
    return [(name, group) for name, text in pages for group in executed.groups(text, packages=True)]


def skip_without(code: str) -> None:
    """Skip a test if a package is not installed that the code imports."""
    if names := executed.missing(code):
        pytest.skip(f"needs {', '.join(names)}")


@pytest.mark.parametrize(("page", "group"), grouped())
def test_example(page: str, group: list[executed.Block]) -> None:
    skip_without("".join(block.code for block in group))
    assert any(block.printed for block in group), f"nothing is compared on {page}"
    for block, found in zip(group, executed.outputs(group), strict=True):
        assert block.printed is None or executed.matches(block.printed, found), found


def pages_with_commands() -> list[Path]:
    return [path for path in sorted(FOLDER.rglob("*.md")) if generate.commands(path.read_text(), packages=True)]


@pytest.mark.parametrize("path", pages_with_commands(), ids=lambda path: str(path.name))
def test_commands(path: Path) -> None:
    """Those of a page run one after the other: the first one writes the programs."""
    found = generate.commands(path.read_text(), packages=True)
    skip_without("".join(command for command, _ in found))
    for command, said in found:
        assert generate.printed(command) == said, "run `python docs/generate.py`"


@pytest.mark.parametrize("path", pages_with_commands(), ids=lambda path: str(path.name))
def test_code_on_a_page_is_that_of_the_script(path: Path) -> None:
    text = path.read_text()
    scripts = "".join(one.read_text() for one in SCRIPTS.glob("*.py") if f"examples/frameworks/{one.name}" in text)
    shown = re.findall(r"^```python no-run\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown and all(code in scripts for code in shown)


def test_every_package_has_an_example() -> None:
    code = "".join(block.code for _, group in grouped() for block in group)
    assert [name for name in generate.PACKAGES if f"import {name}" not in code and f"from {name}" not in code] == []
