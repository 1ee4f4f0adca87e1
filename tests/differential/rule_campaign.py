"""A long comparison of rules with the reference: `python -m tests.differential.rule_campaign --instances 50000`.

Prints every difference and, at the end, the number of instances; the exit status is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from .rule_compare import differences  # noqa: E402
from .rule_instances import KINDS, instances  # noqa: E402

_BATCH = 400


def run(count: int, seed: int, kinds: Sequence[str]) -> int:
    """Compare `count` instances, spread evenly over the kinds; returns the number of differences."""
    started, compared, different = time.perf_counter(), 0, 0
    share = -(-count // len(kinds))
    for kind in kinds:
        for start in range(0, share, _BATCH):
            functions = instances(kind, min(_BATCH, share - start), seed * 1_000_003 + start)
            compared += len(functions)
            for conservative in (False, True):
                found = differences(functions, conservative)
                different += len(found)
                print(*found, sep="\n", end="\n" if found else "")
        print(f"{kind}: {compared} instances so far, {different} differences", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    print(f"{compared} instances in both modes, {different} differences, {seconds:.0f} s")
    return different


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare sharding rules with the reference's.")
    parser.add_argument("--instances", type=int, default=50_000, help="how many, over all kinds (50000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other instances (0)")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), help="only these kinds")
    options = parser.parse_args(arguments)
    return 1 if run(options.instances, options.seed, options.kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
