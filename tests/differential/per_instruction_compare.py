"""Comparing `sdy-per-instruction-partitioning`: `python -m tests.differential.per_instruction_compare --modules 3000`.

Prints every difference that is not listed and, at the end, the numbers; the exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from pyshardy.errors import InvalidShardingError
from pyshardy.passes.table import PASSES

from .local_compare import listed_reason
from .local_programs import FAMILIES, STAGES
from .partition_reasons import PAD, RESOLVE, partition_reason
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Comparison, Runner, Verdict, compare, ours

NAME = "sdy-per-instruction-partitioning"
OPTIONS = (
    "",
    "enable-halo-exchange=false",
    "replica-count=8",
    "partition-count=8 rng-bit-generator-unsafe=false",
    "filter=selectLow=1,selectHigh=3",
    "filter=stablehlo,all_",
)
"""What to compare with."""
assert NAME in PASSES


def per_instruction_input(family: str, seed: int, reference: ReferenceProcess) -> str | None:
    """A module with the reshards that its ops need; None if the reference does not get that far."""
    make, first = FAMILIES[family]
    try:
        text = make(seed).replace('"stablehlo.constant"', '"sdy.constant"')  # as import leaves them
        return reference.run(text, ",".join((first, *STAGES[:2])))
    except (InvalidShardingError, Refused, Died):
        return None


_ACCEPTED = (
    ("dynamic slice of whole dimensions that are padded", r"'stablehlo\.dynamic_slice' op inferred type\(s\)"),
    ("gather of an empty dimension", r"dimension size of operand at 'all_gather_dim' cannot be zero"),
    ("slice or pad without exchange", r"requires device communication"),
)
"""What we accept and the reference refuses: a name, and a part of its message."""
_GATHERS = re.compile(r'^\+.*"stablehlo\.compare".*EQ(?:.*\n)*?[ -].*"stablehlo\.gather"', re.MULTILINE)
_COUNTS_ONCE = re.compile(
    r'^-.*"stablehlo\.reduce"(?:.*\n)*?\+.*"stablehlo\.select".*tensor<i1>(?:.*\n)*?\+.*"stablehlo\.reduce"',
    re.MULTILINE,
)
_GATHERED = re.compile(r'^\+.*"stablehlo\.all_gather"', re.MULTILINE)
_EXCHANGED = re.compile(r'^-.*"stablehlo\.(all_to_all|dynamic_slice)"', re.MULTILINE)


def reason(text: str, found: Comparison) -> str | None:
    """The listed reason for a difference in one of the passes that run on every op, if there is one."""
    if found.verdict is not Verdict.DIFFERENT:
        return None
    if found.details.startswith("given  accepted"):
        return next((name for name, part in _ACCEPTED if re.search(part, found.details)), None)
    if "stablehlo.gather" in text and _GATHERS.search(found.details):
        return "gather of a padded dimension of size 1"
    if _COUNTS_ONCE.search(found.details):
        return "initial value counts once"
    if _GATHERED.search(found.details) and _EXCHANGED.search(found.details):
        return "collectives that would move padding"
    of_a_pass = (partition_reason(text, name, found) for name in (RESOLVE, PAD))
    return listed_reason(found.details) or next(filter(None, of_a_pass), None)


def compare_family(
    family: str,
    seeds: Iterable[int],
    reference: ReferenceProcess,
    options: Sequence[str] = OPTIONS,
    candidate: Runner = ours,
) -> tuple[Counter[str], list[str]]:
    """Compare on the modules of a family: numbers by outcome, and the differences that are not listed."""
    found, wrong = Counter[str](), []
    for seed in seeds:
        text = per_instruction_input(family, seed, reference)
        if text is None:
            found["no input"] += 1
            continue
        option = options[seed % len(options)]
        pipeline = f"{NAME}{{{option}}}" if option else NAME
        outcome = compare(text, pipeline, reference.run, candidate)
        known = reason(text, outcome)
        found[known or outcome.verdict.value] += 1
        if outcome.verdict is Verdict.DIFFERENT and known is None:
            wrong.append(f"{family} {seed} {pipeline}\n{outcome.details[:3000]}")
    return found, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """A long comparison: prints every difference that is not listed, and the numbers."""
    parser = argparse.ArgumentParser(description="Compare partitioning op by op with the reference's.")
    parser.add_argument("--modules", type=int, default=1000, help="how many, over all families (1000)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), help="only these")
    chosen = parser.parse_args(arguments)
    share, differences, total = -(-chosen.modules // len(chosen.families)), 0, Counter[str]()
    for family in chosen.families:
        with ReferenceProcess() as reference:
            found, wrong = compare_family(family, range(chosen.first_seed, chosen.first_seed + share), reference)
        total += found
        differences += len(wrong)
        print(*wrong, f"{family}: {dict(found)}", sep="\n", flush=True)
    print(dict(total))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
