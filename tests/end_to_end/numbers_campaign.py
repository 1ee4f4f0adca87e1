"""Many random programs on eight devices and on one: `python -m tests.end_to_end.numbers_campaign`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from end_to_end.number_programs import FAMILIES, is_move, is_wide
from end_to_end.numbers_compare import Outcome, Verdict, compare_numbers
from rich.progress import track


def outcome(family: str, seed: int, engine: str = "local", view: str = "stablehlo") -> Outcome:
    """How one program fares."""
    return compare_numbers(
        FAMILIES[family](seed),
        seed,
        engine=engine,
        is_exact=is_move(family, seed),
        is_wide=is_wide(family, seed),
        view=view,
        is_finite=family in ("called", "composed", "odd"),  # indices are made of floating-point numbers; maxima
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the number of programs whose numbers differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", nargs="+", choices=sorted(FAMILIES), default=sorted(FAMILIES))
    parser.add_argument("--count", type=int, default=1700, help="programs per family")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--engine", choices=("local", "interpreter"), default="local")
    parser.add_argument("--view", choices=("xla", "stablehlo"), default="stablehlo")
    options = parser.parse_args(arguments)
    wrong = 0
    pool = _pool()
    for family in options.families:
        verdicts: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        shared = 0
        for seed in track(range(options.start, options.start + options.count), description=family):
            try:
                found = pool.submit(outcome, family, seed, options.engine, options.view).result()
            except BrokenProcessPool:  # over some programs XLA ends the process, on one device too
                found, pool = Outcome(Verdict.NOT_RUN, "XLA ended the process"), _pool()
                print(f"{family} {seed}: {found.details}")
            except Exception as error:  # noqa: BLE001 (a campaign goes on)
                found = Outcome(Verdict.DIFFERENT, f"{type(error).__name__}: {error}"[:300])
            verdicts[found.verdict.value] += 1
            shared += found.is_shared
            if found.verdict is Verdict.DIFFERENT:
                wrong += 1
                print(f"{family} {seed}: {found.details}")
            elif found.verdict is Verdict.REFUSED:
                reasons[found.details.partition("\n")[0][:150]] += 1
                print(f"{family} {seed}: refused: {found.details}")
            elif found.verdict is not Verdict.EQUAL:
                print(f"{family} {seed}: {found.verdict.value}: {found.details[:200]}")
        print(f"{family} {dict(verdicts)}, {shared} with collectives or shards")
        for reason, count in reasons.most_common(25):
            print(f"  refused {count}: {reason}")
    return wrong


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


if __name__ == "__main__":
    raise SystemExit(main() > 0)
