"""A long comparison with the reference: `python -m tests.differential.reshard_campaign --modules 20000`.

Prints every difference and, at the end, the numbers; the exit status is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from pyshardy.errors import InvalidShardingError

from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Comparison, Verdict, compare, shards_by_incompatible_parts
from .reshard_programs import FAMILIES, STYLES
from .reshard_shardings import Style


def comparisons(
    family: str,
    seeds: range,
    reference: ReferenceProcess,
    styles: tuple[Style, ...] = STYLES,
    pipelines: Sequence[str] | None = None,
    ask_fatal: bool = False,
) -> Iterator[tuple[int, str, Comparison]]:
    """Seed, pipeline and outcome for every pipeline on every valid module of a family."""
    make, own_pipelines = FAMILIES[family]
    for seed in seeds:
        try:
            text = make(seed, styles)
            reference.run(text, "")
        except (InvalidShardingError, Refused):
            continue  # no valid module
        for pipeline in own_pipelines if pipelines is None else pipelines:
            found = compare(text, pipeline, reference.run, ask_fatal=ask_fatal)
            if found.verdict is Verdict.DIFFERENT and shards_by_incompatible_parts(found.details):
                found = Comparison(Verdict.WRONG, found.details)
            yield seed, pipeline, found


def run(count: int, first: int, generators: Sequence[str], ask_fatal: bool) -> int:
    """Compare `count` modules, spread evenly over the families; returns the number of differences."""
    started, total = time.perf_counter(), Counter[Verdict]()
    share = -(-count // len(generators))
    for family in generators:
        found, modules = Counter[Verdict](), set()
        with ReferenceProcess() as reference:
            seeds = range(first, first + share)
            for seed, pipeline, outcome in comparisons(family, seeds, reference, ask_fatal=ask_fatal):
                modules.add(seed)
                found[outcome.verdict] += 1
                if outcome.verdict in (Verdict.DIFFERENT, Verdict.DIED):
                    print(f"{family} {seed} {pipeline}: {outcome.verdict.value}\n{outcome.details}", flush=True)
        total += found
        print(f"{family}: {len(modules)} modules, {_summary(found)}", file=sys.stderr, flush=True)
    print(f"{_summary(total)}; {time.perf_counter() - started:.0f} s")
    return total[Verdict.DIFFERENT]


def _summary(found: Counter[Verdict]) -> str:
    return ", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict)


def show(family: str, seed: int) -> None:
    """Print one module and what the reference makes of it."""
    make, pipelines = FAMILIES[family]
    text = make(seed, STYLES)
    print(text)
    with ReferenceProcess() as reference:
        for pipeline in pipelines:
            try:
                print(f"// {pipeline}\n{reference.run(text, pipeline)}")
            except (Refused, Died) as error:
                print(f"// {pipeline}\n// {type(error).__name__}: {error}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare inserted reshards and clean-up with the reference's.")
    parser.add_argument("--modules", type=int, default=20_000, help="how many, over all families (20000)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), help="only these")
    parser.add_argument("--ask-fatal", action="store_true", help="see the reference end where it is said to")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the module of this seed instead")
    options = parser.parse_args(arguments)
    if options.show is not None:
        show(options.families[0], options.show)
        return 0
    return 1 if run(options.modules, options.first_seed, options.families, options.ask_fatal) else 0


if __name__ == "__main__":
    sys.exit(main())
