"""The pages of `docs/semantics` show what the passes do, and what the reference's passes do."""

from __future__ import annotations

from pathlib import Path

import generate
import pytest

from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.propagation.program import Direction
from pyshardy.propagation.schedule import directions
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import FactorKind, Rule
from support.reference import jaxlib_version

from .differential.compare import compare

ROOT = Path(__file__).parent.parent
PAGES = {path: path.read_text() for path in sorted((ROOT / "docs/semantics").glob("*.md"))}
EXAMPLES = [example for text in PAGES.values() for example in generate.examples(text)]
BEFORE = list(dict.fromkeys(before for before, _, _ in EXAMPLES))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_show_what_passes_give(path: Path) -> None:
    """On an older jaxlib, whose dialects print otherwise, the page is only made."""
    filled = generate.with_results(PAGES[path])
    if jaxlib_version() >= (0, 12):
        assert filled == PAGES[path], "run `python docs/generate.py`"


@pytest.mark.skipif(jaxlib_version() < (0, 12), reason="the pages show what the newest reference gives")
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_reference_gives_the_same(number: int) -> None:
    before, pipeline, _ = EXAMPLES[number]
    assert compare(before, pipeline) == ""


@pytest.mark.parametrize("number", range(len(BEFORE)))
def test_an_example_shows_something(number: int) -> None:
    """Of several pipelines on one module, some may change nothing, which is what they show."""
    before = BEFORE[number]
    module = Module.parse(before)
    pipelines = [pipeline for of, pipeline, _ in EXAMPLES if of == before]
    assert {run_pipeline(module, pipeline).text() for pipeline in pipelines} != {module.text()}


def test_a_wrong_example_is_noticed() -> None:
    assert len(EXAMPLES) > 30
    page = next(text for text in PAGES.values() if generate.examples(text))
    (_, _, after), *_ = generate.examples(page)
    wrong = page.replace(after, "nothing\n")
    assert wrong != page
    assert generate.with_results(wrong) == page


def product(first: str, second: str, result: str) -> str:
    """A product of matrices with shardings, some of them empty."""
    shardings = [f"{{sdy.sharding = #sdy.sharding<@m, {text}>}}" if text else "" for text in (first, second)]
    of_result = f"{{sdy.sharding = #sdy.sharding_per_value<[<@m, {result}>]>}}" if result else ""
    return f"""
    sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
    func.func @main(%x: tensor<8x8xf32> {shardings[0]}, %y: tensor<8x8xf32> {shardings[1]}) -> tensor<8x8xf32> {{
      %0 = stablehlo.dot %x, %y {of_result} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = sdy.reshard %0 <@m, [{{}}, {{}}]> : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }}"""


def conflicts() -> list[list[str]]:
    """The rows of the table of conflicts: three shardings, and what two strategies do."""
    table = PAGES[ROOT / "docs/semantics" / "propagation.md"].partition("### Conflicts")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == 7
    return rows


def in_words(program: str, strategy: str) -> str:
    """What a strategy does to a product, as the table says it."""
    shardings = {}
    for name in ("", strategy):
        root = run_pipeline(Module.parse(program), f"sdy-{name}-propagate").root if name else Module.parse(program).root
        (function,) = functions(root)
        (dot,) = (op for op in walk(root) if op.name == "stablehlo.dot")
        values = (*function.region.blocks[0].args, dot.result)
        shardings[name] = [get_sharding(value) for value in values]
    changed = [
        f"{name} `{str(after).removeprefix('<@m, ').removesuffix('>')}`"
        for name, before, after in zip(("first", "second", "result"), shardings[""], shardings[strategy])
        if after is not before
    ]
    return ", ".join(changed) or "nothing"


@pytest.mark.parametrize("row", conflicts(), ids=" ".join)
def test_the_table_of_conflicts(row: list[str]) -> None:
    *shardings, basic, aggressive = row
    program = product(*(cell.strip("`") for cell in shardings))
    assert in_words(program, "basic") == basic
    assert in_words(program, "aggressive") == (basic if aggressive == "the same" else aggressive)


ROWS = (
    Priority.PASS_THROUGH,
    Priority.PASS_THROUGH,
    Priority.FORWARD,
    Priority.FORWARD,
    Priority.BROADCAST,
    Priority.OTHER,
)
"""What the rows of the table of op priorities are about."""


def test_the_table_of_op_priorities() -> None:
    table = PAGES[ROOT / "docs/semantics" / "propagation.md"].partition("### Op priorities")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")][2:]
    rule = Rule([4, 4], [[[0], [1]]], [[[0]]], [FactorKind.PASS_THROUGH, FactorKind.REDUCTION])
    for row, priority in zip(rows, ROWS, strict=True):
        for round_, cell in enumerate(row[1:]):
            passing, other = directions(rule, priority, Direction.BOTH, round_)
            if "more than once" in row[0] and round_ == 0:
                passing = other = Direction.NONE
            words = passing.name.lower() + ("" if passing is other else f", other factors {other.name.lower()}")
            assert cell == words, (row[0], round_)
