"""Edits of the corpus of JAX programs, against annotating and propagating from the start."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.errors import ShardyError
from pyshardy.ir.bytecode.locations import has_lost_range
from pyshardy.ir.write import OpByOpWarning
from support.edits import random_annotations
from support.programs import module_text

EDITS = 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_edits_of_a_program(name: str) -> None:
    if reason := PROGRAMS[name].skip():
        pytest.skip(reason)
    text = module_text(PROGRAMS[name], debug_info=True)
    with pytest.warns(OpByOpWarning, match="a range") if has_lost_range(text) else nullcontext():
        compare_edits(name, text)


def compare_edits(name: str, text: str) -> None:
    """Edits of a program give what annotating and propagating from the start gives."""
    module = pyshardy.load(text)
    before = pyshardy.propagate(module)
    random = Random(name)
    for _ in range(EDITS):
        annotations = random_annotations(random, before)
        try:
            expected = pyshardy.propagate(module.annotate(annotations))
        except ShardyError:
            with pytest.raises(ShardyError):
                _ = before.edit(annotations).result
            continue
        edit = before.edit(annotations)
        found = edit.result
        assert found.module.text(debug_info=True) == expected.module.text(debug_info=True)
        assert found.warnings == expected.warnings
        shardings = [(one.name, one.after) for one in edit.difference.shardings if one.kind != "value"]
        compared = pyshardy.diff(before, expected)
        assert shardings == [(one.name, one.after) for one in compared.shardings if one.kind != "value"]
