"""A long comparison of local programs: `python -m tests.differential.local_campaign --modules 3000`.

Prints every difference that is not listed and, at the end, the numbers; the exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from .local_compare import compare_family
from .local_programs import FAMILIES
from .reference_process import ReferenceProcess


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare local programs with the reference's.")
    parser.add_argument("--modules", type=int, default=3000, help="how many, over all families (3000)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), help="only these")
    options = parser.parse_args(arguments)
    share, differences, total = -(-options.modules // len(options.families)), 0, Counter[str]()
    for family in options.families:
        with ReferenceProcess() as reference:
            seeds = range(options.first_seed, options.first_seed + share)
            found, wrong = compare_family(family, seeds, reference)
        total += found
        differences += len(wrong)
        print(*wrong, f"{family}: {dict(found)}", sep="\n", flush=True)
    print(dict(total))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
