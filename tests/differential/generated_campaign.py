"""Long comparisons of passes with the reference's on families of modules, which several tests and campaigns share."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .normal_form import in_short
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Comparison, Runner, Verdict, compare, ours

_SHOWN = 3000
"""How many characters of a difference are shown."""


@dataclass(frozen=True)
class Campaign:
    """What is compared.

    Attributes:
        generators: Names of the families.
        module: A module by family, seed and pipeline, or None if there is none of this seed.
        pipelines: The pipelines to compare on the module of a seed.
        reason: The listed reason for a difference between the pipelines on a module, if there is one.
        is_fine: Outcomes besides "same" that need no reason.
    """

    generators: Sequence[str]
    module: Callable[[str, int, str, ReferenceProcess], str | None]
    pipelines: Callable[[int], Sequence[str]]
    reason: Callable[[str, str, Comparison], str | None]
    is_fine: frozenset[Verdict] = frozenset()

    def compare(
        self, family: str, seeds: Iterable[int], reference: ReferenceProcess, candidate: Runner = ours, show: str = ""
    ) -> tuple[Counter[str], list[str]]:
        """Numbers by outcome, and the differences that are not listed.

        Args:
            family: Which family.
            seeds: Which of its modules.
            reference: What is right.
            candidate: What is tested.
            show: A listed reason whose differences are returned with the others.
        """
        found, wrong = Counter[str](), []
        for seed in seeds:
            for pipeline in self.pipelines(seed):
                text = self.module(family, seed, pipeline, reference)
                if text is None or not _is_valid(text, reference):
                    found["no module"] += 1
                    continue
                outcome = compare(text, pipeline, reference.run, candidate)
                reason = None if outcome.verdict is Verdict.SAME else self.reason(text, pipeline, outcome)
                found[reason or outcome.verdict.value] += 1
                is_wrong = reason is None and outcome.verdict not in (Verdict.SAME, *self.is_fine)
                if is_wrong or (reason and reason == show):
                    details = in_short(outcome.details)[:_SHOWN]
                    wrong.append(f"{family} {seed} {pipeline}: {reason or outcome.verdict.value}\n{details}")
        return found, wrong

    def run(self, about: str, arguments: Sequence[str] | None = None) -> int:
        """The command line: prints every difference that is not listed and, at the end, the numbers.

        Returns:
            1 if there was a difference.
        """
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--modules", type=int, default=3000, help="how many, over all families (3000)")
        parser.add_argument("--first-seed", type=int, default=0, help="the first seed (0)")
        parser.add_argument("--families", nargs="+", default=list(self.generators), choices=self.generators)
        parser.add_argument("--show", default="", metavar="REASON", help="print differences with this reason too")
        options = parser.parse_args(arguments)
        share, differences, total = -(-options.modules // len(options.families)), 0, Counter[str]()
        for family in options.families:
            with ReferenceProcess() as reference:
                seeds = range(options.first_seed, options.first_seed + share)
                found, wrong = self.compare(family, seeds, reference, show=options.show)
            total += found
            differences += len(wrong)
            print(*wrong, f"{family}: {dict(found)}", sep="\n", flush=True)
        print(f"{total.total()} comparisons, {differences} unexplained or shown: {dict(total)}")
        return 1 if differences else 0


def _is_valid(text: str, reference: ReferenceProcess) -> bool:
    try:
        reference.run(text, "")
    except (Refused, Died):
        return False
    return True
