"""What people read in a dozen situations, word by word.

PYTHONPATH=tests python -m golden.test_explanations     writes the texts again; read what changed
"""

from __future__ import annotations

from pathlib import Path

import pytest

import pyshardy
from pyshardy.results.partition import Partition

from .situations import PROGRAMS, SITUATIONS, Situation

TEXTS = Path(__file__).parent / "texts"


def page(situation: Situation) -> str:
    """Everything that is said of a situation."""
    program = pyshardy.load((PROGRAMS / f"{situation.name}.mlir").read_text())
    partition = pyshardy.partition(program, propagate_options=pyshardy.PropagateOptions(trace=True))
    result = partition.propagated
    parts = [f"explain {ask}\n\n{result.explain(ask)}" for ask in situation.asks]
    parts.append(f"conflicts\n\n{result.conflicts()}")
    parts.append(f"collectives\n\n{collectives(partition)}")
    return "\n\n\n".join(parts) + "\n"


def collectives(partition: Partition) -> str:
    """The collectives, and those with a hint again."""
    stories = [f"{number}. {story}" for number, story in enumerate(partition.collectives, 1)]
    hints = [f"hint for {story.kind} of {story.operand}: {story.hint}" for story in partition.hints()]
    return "\n".join([*stories, *hints]) or "none"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_texts_are_as_they_were_read(situation: Situation) -> None:
    assert page(situation) == (TEXTS / f"{situation.name}.txt").read_text()


def test_there_are_a_dozen() -> None:
    assert len(SITUATIONS) >= 12
    assert {path.stem for path in TEXTS.glob("*.txt")} == {one.name for one in SITUATIONS}
    assert {path.stem for path in PROGRAMS.glob("*.mlir")} == {one.name for one in SITUATIONS}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_no_operand_is_a_number(situation: Situation) -> None:
    text = (TEXTS / f"{situation.name}.txt").read_text()
    assert "operand 0" not in text
    assert "operand 1" not in text


if __name__ == "__main__":
    TEXTS.mkdir(exist_ok=True)
    for one in SITUATIONS:
        (TEXTS / f"{one.name}.txt").write_text(page(one))
