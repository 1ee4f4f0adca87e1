"""What once differed from the reference, reduced to a few lines: `regressions/*.mlir`.

The first line of a file says what it is about; `// PASSES:` gives the passes to compare, otherwise the whole pipeline.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.reference import jaxlib_version

from .compare import compare

FILES = sorted((Path(__file__).parent / "regressions").glob("*.mlir"))


@pytest.mark.skipif(
    jaxlib_version() < (0, 12),
    reason="before jaxlib 0.12 the import passes run in another order. "
    "Source: docs/semantics/import.md#older-versions-of-jaxlib",
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    text = path.read_text()
    passes = re.search("^// PASSES: (.*)$", text, re.MULTILINE)
    assert compare(text, passes[1] if passes else "sdy-propagation-pipeline", debug_info=True) == ""


def test_every_file_says_what_it_is_about() -> None:
    assert FILES
    assert [path.name for path in FILES if not re.match(r"// \w.{20,}\.\n", path.read_text())] == []
