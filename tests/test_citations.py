"""What the code cites exists: every page, and every heading on it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.citations import anchors, cited, wrong_citations

ROOT = Path(__file__).parent.parent
ABOUT_CITATIONS = {ROOT / "tests/support/citations.py", Path(__file__)}
SUFFIXES = (".py", ".pxd", ".mlir", ".toml")
SOURCES = [
    path
    for folder in ("pyshardy", "tests", "benchmarks", "docs", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in SUFFIXES and path not in ABOUT_CITATIONS
]
ONE_STEP = "Source: docs/semantics/propagation.md#one-step"


@pytest.mark.slow
def test_every_citation_leads_to_a_heading() -> None:
    wrong = {str(path.relative_to(ROOT)): wrong_citations(path.read_text()) for path in SOURCES}
    assert {path: found for path, found in wrong.items() if found} == {}


def test_the_code_cites_every_page() -> None:
    """That all citations are found; those of no page of semantics are not asked for."""
    counts = Counter(page for path in SOURCES for page, _ in cited(path.read_text()))
    assert sum(counts.values()) > 150
    not_cited = {"docs/semantics/README.md", "docs/semantics/public-documentation.md"}
    pages = [ROOT / "docs/bytecode.md", *(ROOT / "docs/semantics").glob("*.md")]
    assert set(counts) | not_cited == {str(path.relative_to(ROOT)) for path in pages}


def test_every_pass_cites_a_heading() -> None:
    """Every pass that the reference has; those of pyshardy alone are described in their own words."""
    for path in sorted((ROOT / "pyshardy/passes").rglob("*.py")):
        first = path.read_text().partition("\n")[0]
        if first.startswith('"""`sdy-'):
            assert cited(path.read_text()), path


@pytest.mark.parametrize(
    "source",
    [
        f'"""One step.\n\n{ONE_STEP}\n"""',
        f'"""One step.\n\n    {ONE_STEP}\n    {ONE_STEP}\n\n    Args:\n"""',
        f"# One step. {ONE_STEP}",
        f'pytest.skip("one step. {ONE_STEP}")',
        "See docs/passes.md and docs/dumps.md.",
        "Source: the user's program",
        "section by section",
    ],
)
def test_right_ones_are_accepted(source: str) -> None:
    assert wrong_citations(source) == []


@pytest.mark.parametrize(
    "source, message",
    [
        ("Source: docs/semantics/propagation.md#two-steps", "no such heading"),
        ("Source: docs/semantics/propagating.md#one-step", "no such page"),
        ("Source: docs/semantics/propagation.md", "not a citation"),
        ("docs/semantics/propagation.md#one-step", "not a citation"),
        (f"{ONE_STEP} and more", "not a citation"),
        (f"{ONE_STEP}, docs/semantics/rules.md#notation", "not a citation"),
        ("Source: propagation.md#one-step", "no page of docs/semantics"),
        ("Source docs/semantics/propagation.md#one-step", "not a citation"),
        ("See docs/nowhere.md.", "no such page"),
        ("See docs/passes.md#nothing.", "no such heading"),
        ("One step (propagation spec, section 4).", "no page has numbers"),
        ("One step (propagation spec, 4.1).", "no page has numbers"),
        ("# Section 6.6: order", "no page has numbers"),
    ],
)
def test_a_wrong_one_is_noticed(source: str, message: str) -> None:
    assert any(message in found for found in wrong_citations(source)), source


def test_anchors_are_unique() -> None:
    with pytest.raises(AssertionError, match="two headings"):
        anchors("# One\n\n## One\n")


def test_anchors_of_headings() -> None:
    page = "# `sdy-save-module`\n## JAX's own [view](xla-view.md)\n```\n# comment\n```\n### Sub-axes, in and out\n"
    assert anchors(page) == ["sdy-save-module", "jaxs-own-view", "sub-axes-in-and-out"]
