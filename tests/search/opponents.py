"""Compares our search with other searches of the same cost: an integer program, chance, enumeration, all shardings.

From `tests`:

    python -m search.opponents --write    # some ten minutes: the tables of docs/search.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import inf, prod
from typing import Any, NamedTuple

import jax
from search.alpa import alpa
from search.compare import BETTER, SAME, load
from search.evaluator import Evaluator, at_random, best_of, enumerated
from search.models import PROGRAMS
from search.page import markdown, write_part
from search.tiny import TINY

import pyshardy

MESH = {"data": 2, "model": 4}
CHIPS = ("v5e", "h100")
_MOST_TRIED = 1500
"""A program with more shardings than this on a mesh of two axes is tried on one of one axis."""
_CLASSES = 6


class Found(NamedTuple):
    """The result of one search.

    Attributes:
        seconds: Of one step, from scratch.
        took: Seconds of processor time.
        note: What else there is to say.
    """

    seconds: float
    took: float
    note: str = ""


class Contest(NamedTuple):
    """The results of all searches for one program.

    Attributes:
        program, mesh, chip: For which.
        count: How many evaluations ours and the others had.
        found: By search.
    """

    program: str
    mesh: str
    chip: str
    count: int
    found: dict[str, Found]

    @property
    def verdict(self) -> str:
        """The verdict on ours, compared with the best of the others."""
        ours = self.found["ours"].seconds
        best = min(found.seconds for name, found in self.found.items() if name != "ours")
        if ours > best * SAME:
            return "loss"
        return "win" if ours * BETTER < best else "equal"


def timed(search: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a search, and its processor time."""
    start = time.process_time()
    return search(), time.process_time() - start


def classes_of(module: pyshardy.Module, chip: str) -> int:
    """How many classes of dimensions a program has."""

    class Seen(Exception):
        pass

    def look(task: Any) -> Any:
        raise Seen(len(task.space.classes))

    pyshardy.register_partitioner(look)
    try:
        pyshardy.search(module, hardware=chip, candidates=1)
    except Seen as seen:
        return int(seen.args[0])
    finally:
        pyshardy.register_partitioner(None)
    raise AssertionError("a registered partitioner was not asked")


def ours(evaluator: Evaluator, candidates: int) -> tuple[Found, int]:
    """The result of our search, and the number of shardings that it estimated, quickly or exactly."""
    plan, took = timed(
        lambda: pyshardy.search(
            evaluator.module,
            hardware=evaluator.chip,
            collectives=evaluator.model,
            memory=evaluator.memory,
            budget_s=600,
            candidates=candidates,
        )
    )
    cost = pyshardy.cost(plan.apply(evaluator.module), evaluator.chip, collectives=evaluator.model)
    seconds = cost.step_seconds if cost.peak_bytes <= evaluator.memory else inf
    return Found(seconds, took), plan.candidates + plan.summary.exact


def contest(program: str, chip: str, candidates: int = 40) -> Contest:
    """All searches on one program: the others get as many evaluations as ours."""
    evaluator = Evaluator(load(program, MESH), MESH, chip)
    found = {}
    found["ours"], count = ours(evaluator, candidates)
    answer, took = timed(lambda: alpa(evaluator))
    note = "" if answer.is_optimal else f"gap {answer.gap:.0%}"
    found["integer program"] = Found(evaluator.from_scratch(answer.specs), took, note)
    for name, choices in (("chance", at_random(evaluator)), ("enumeration", enumerated(evaluator))):
        best, took = timed(lambda choices=choices: best_of(evaluator, choices, count))
        seconds = inf if best.choice is None else evaluator.from_scratch(evaluator.specs(best.choice))
        found[name] = Found(seconds, took)
    return Contest(program, "2x4", chip, count, found)


def tiny_contest(name: str, chip: str, most: int = _MOST_TRIED) -> Contest:
    """Compare our search with the best of all shardings of a tiny program."""
    step, arguments, donated = TINY[name]
    mesh = MESH
    for mesh in (MESH, {"data": 8}):
        module = pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")
        evaluator = Evaluator(module, mesh, chip)
        count = prod(len(evaluator.all_specs(shape)) for shape in evaluator.shapes)
        if count <= most:
            break
    assert classes_of(module, chip) <= _CLASSES, name
    found = {}
    found["ours"], looked_at = ours(evaluator, 400)
    best, took = timed(lambda: best_of(evaluator, enumerated(evaluator), count))
    assert best.choice is not None and best.count == count
    found["all"] = Found(evaluator.from_scratch(evaluator.specs(best.choice)), took, str(count))
    answer, took = timed(lambda: alpa(evaluator))
    found["integer program"] = Found(evaluator.from_scratch(answer.specs), took)
    return Contest(name, "×".join(map(str, mesh.values())), chip, looked_at, found)


def table(contests: list[Contest]) -> str:
    """Contests as a table of Markdown, with a line that counts them."""
    names = list(contests[0].found)
    heads = ["program", "mesh", "chip", "evaluations"]
    heads += [head for name in names for head in (f"{name} ms", "s")]
    rows = []
    for one in contests:
        row: list[Any] = [one.program, one.mesh.replace("x", "×"), one.chip, one.count]
        for name in names:
            found = one.found[name]
            note = f" ({found.note})" if found.note else ""
            row += [f"{found.seconds * 1e3:.3f}{note}" if found.seconds < inf else "nothing fits", f"{found.took:.1f}"]
        rows.append([*row, one.verdict])
    counts = [f"{sum(one.verdict == kind for one in contests)} {kind}" for kind in ("win", "equal", "loss")]
    return f"{markdown([*heads, 'ours'], rows)}\n\nOf {len(contests)}, ours beside the best of the others: {', '.join(counts)}."


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the tables into docs/search.md")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--tiny", default=",".join(TINY))
    parser.add_argument("--candidates", type=int, default=40)
    options = parser.parse_args()
    small, large = [], []
    for number, name in enumerate(filter(None, options.tiny.split(","))):
        small.append(tiny_contest(name, CHIPS[number % len(CHIPS)]))
        print(small[-1], small[-1].verdict, flush=True)
    for number, name in enumerate(filter(None, options.programs.split(","))):
        large.append(contest(name, CHIPS[number % len(CHIPS)], options.candidates))
        print(large[-1], large[-1].verdict, flush=True)
    text = "\n\n".join(table(one) for one in (small, large) if one)
    print(text)
    if options.write:
        write_part("opponents", text)


if __name__ == "__main__":
    main()
