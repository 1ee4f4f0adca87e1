"""Seconds for edits of one weight, and for what they replace.

python -m benchmarks.editing 96     a transformer of that many layers
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pyshardy
from benchmarks.measure import op_count
from benchmarks.workloads import transformer

REPEATS = 3
FIRST, SECOND = {"params['layers'][3]['w2']": "model,None"}, {"params['layers'][5]['w2']": "None,data"}


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What a function gives, and how long it takes."""
    start = time.perf_counter()
    found = make()
    return found, time.perf_counter() - start


def edited(result: pyshardy.Propagation, annotations: dict[str, str]) -> pyshardy.Edit[pyshardy.Propagation]:
    """An edit, and what it changes of shardings and bytes."""
    edit = result.edit(annotations)
    _ = edit.difference
    return edit


def one_round(module: pyshardy.Module) -> dict[str, float]:
    """The seconds of everything, once."""
    result, whole = timed(lambda: pyshardy.propagate(module))
    first, first_edit = timed(lambda: edited(result, FIRST))
    second, second_edit = timed(lambda: edited(result, SECOND))
    found, first_result = timed(lambda: second.result)
    _, second_result = timed(lambda: first.result)
    expected = pyshardy.propagate(module.annotate(SECOND))
    assert found.module.text() == expected.module.text(), "the edit gives something else"
    return {
        "propagate": whole,
        "first edit": first_edit,
        "second edit": second_edit,
        "first result": first_result,
        "second result": second_result,
    }


def main() -> None:
    module = pyshardy.load(transformer(int(sys.argv[1]) if len(sys.argv) > 1 else 96))
    print(f"{op_count(module)} ops")
    rounds = [one_round(module) for _ in range(REPEATS)]
    for name in rounds[0]:
        best = min(found[name] for found in rounds)
        print(f"{name}: {best:.3f} s, {best / min(found['propagate'] for found in rounds):.3f} of propagating")


if __name__ == "__main__":
    main()
