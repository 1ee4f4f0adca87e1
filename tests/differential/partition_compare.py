"""Comparing resolving permutation factors and padding with the reference's, each on what comes to it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from pyshardy.errors import ShardyError

from .partition_programs import (
    COLLECTIVES,
    KINDS,
    NEIGHBOURS,
    PAD,
    RESOLVE,
    neighbour_program,
    prepared_program,
)
from .partition_reasons import partition_reason
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Runner, Verdict, compare, ours

FAMILIES = (*NEIGHBOURS, *KINDS)


def partition_input(family: str, seed: int, stage: str) -> str | None:
    """A module of a family as the pass gets it; None if there is none of this seed."""
    try:
        text = neighbour_program(family, seed) if family in NEIGHBOURS else prepared_program(family, seed)
        return text if stage != PAD else ours(text, f"{RESOLVE[0]},{COLLECTIVES}")
    except (Refused, ShardyError):
        return None


def compare_family(
    family: str, seeds: Iterable[int], pipelines: Sequence[str], reference: ReferenceProcess, candidate: Runner = ours
) -> tuple[Counter[str], list[str]]:
    """Numbers by outcome, and the differences that are not listed."""
    found, wrong = Counter[str](), []
    for seed in seeds:
        for pipeline in pipelines:
            text = partition_input(family, seed, pipeline)
            try:
                valid = text is not None and reference.run(text, "") is not None
            except (Refused, Died):
                valid = False
            if text is None or not valid:
                found["no module"] += 1
                continue
            outcome = compare(text, pipeline, reference.run, candidate)
            reason = None if outcome.verdict is Verdict.SAME else partition_reason(text, pipeline, outcome)
            found[reason or outcome.verdict.value] += 1
            if reason is None and outcome.verdict is not Verdict.SAME:
                wrong.append(f"{family} {seed} {pipeline}: {outcome.verdict.value}\n{outcome.details[:3000]}")
    return found, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """A long comparison: prints every difference, and numbers by outcome."""
    parser = argparse.ArgumentParser(description="Compare resolving permutation factors and padding.")
    parser.add_argument("--seeds", type=int, default=300, help="how many per family (300)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first one (0)")
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES, help="only these")
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    total, differences = Counter[str](), 0
    with ReferenceProcess() as reference:
        for family in options.families:
            found, wrong = compare_family(family, seeds, (*RESOLVE, PAD), reference)
            total += found
            differences += len(wrong)
            print(*wrong, f"{family}: {dict(found)}", sep="\n", flush=True)
    print(f"{total.total()} comparisons, {differences} unexplained: {dict(total)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
