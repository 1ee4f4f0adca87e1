"""Hostile programs: `python -m tests.fuzz.campaign --texts 10000 --bytecodes 10000 --programs 5000 --findings DIR`.

Mutated texts and bytecodes go through the commands in processes of their own, with a limit of time; random programs are
partitioned and their numbers compared with those of one device. A finding is a traceback, a hang, a signal, a wrong
answer or a half-written file. What ends jaxlib's own reader is counted apart, and has to be an error with `--isolate`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from .cases import KINDS, Case
from .process import Finding, Worker, save, tried

_EVERY_SECONDS = 30


class _Campaign:
    """What several workers share."""

    def __init__(self, cases: Iterator[Case], total: int, findings: Path, plant: str) -> None:
        self._cases, self._total, self._folder, self._plant = cases, total, findings, plant
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.found: list[Finding] = []
        self.verdicts: Counter[str] = Counter()
        self._shown = self._start = time.monotonic()

    def stop(self) -> None:
        """Begin no more cases."""
        with self._lock:
            self._cases = iter(())

    def next_cases(self) -> Iterator[Case]:
        """The cases that nobody has taken."""
        while True:
            with self._lock:
                case = next(self._cases, None)
            if case is None:
                return
            yield case

    def work(self, seconds: float) -> None:
        """Try cases until there are no more."""
        with ExitStack() as stack:
            workers = {kind: stack.enter_context(Worker(seconds, self._plant)) for kind in (*KINDS, "isolated")}
            for case, findings in tried(self.next_cases(), workers):
                with self._lock:
                    self._note(case, findings)
            with self._lock:
                for worker in workers.values():
                    self.verdicts.update(worker.verdicts)

    def _note(self, case: Case, findings: Sequence[Finding]) -> None:
        self.counts[case.kind + (" in a process of its own" if case.is_isolated else "")] += 1
        for finding in findings:
            self.found.append(finding)
            if not finding.whose:
                print(f"{finding.case.name}: {finding.problem}: {save(finding, self._folder)}", file=sys.stderr)
        now = time.monotonic()
        if now - self._shown > _EVERY_SECONDS:
            self._shown = now
            done = sum(self.counts.values())
            text = f"{done} of {self._total} after {now - self._start:.0f} s, {len(self.ours)} findings"
            print(text, file=sys.stderr, flush=True)

    @property
    def ours(self) -> list[Finding]:
        """The findings that are faults of pyshardy."""
        return [finding for finding in self.found if not finding.whose]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the exit status, 1 if there are findings, or if it was interrupted before all was tried."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind, count in (("texts", 10_000), ("bytecodes", 10_000), ("programs", 5_000)):
        parser.add_argument(
            f"--{kind}", type=int, default=count, metavar="N", help=f"how many {kind} (default {count})"
        )
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seconds", type=float, default=10, help="how long a command may take (default 10)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many processes at a time")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="where findings go")
    parser.add_argument("--plant", default="", help="a fault to plant, from planted.py: the campaign has to find it")
    options = parser.parse_args(arguments)
    counts = (options.texts, options.bytecodes, options.programs)
    seeds = range(options.start, options.start + max(counts))
    cases = (Case(kind, seed) for seed in seeds for kind, count in zip(KINDS, counts) if seed - options.start < count)
    campaign = _Campaign(cases, sum(counts), options.findings, options.plant)
    threads = [threading.Thread(target=campaign.work, args=(options.seconds,)) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        campaign.stop()
        for thread in threads:
            thread.join()
    _summarize(campaign)
    return int(bool(campaign.ours) or sum(campaign.counts[kind] for kind in KINDS) < sum(counts))


def _summarize(campaign: _Campaign) -> None:
    print("tried: " + ", ".join(f"{count} {kind}" for kind, count in sorted(campaign.counts.items())))
    print(
        "commands by exit status, and programs: "
        + ", ".join(f"{name} x{count}" for name, count in sorted(campaign.verdicts.items()))
    )
    for finding, count in Counter((finding.whose, finding.kind) for finding in campaign.found if finding.whose).items():
        print(f"not of pyshardy: {' '.join(finding)}: {count}")
    for kind, count in Counter(finding.kind for finding in campaign.ours).items():
        print(f"FOUND {kind}: {count}")
    print(f"{len(campaign.ours)} findings")


if __name__ == "__main__":
    sys.exit(main())
