"""Seconds of the processor for propagation with the trace and without, from a module to a module.

python -m benchmarks.tracing 56     a transformer of that many layers; 56 make more than 30,000 ops
"""

from __future__ import annotations

import gc
import sys
import time

import pyshardy
from benchmarks.measure import op_count
from benchmarks.workloads import transformer
from pyshardy import Module, PropagateOptions
from pyshardy.core.intern import clear_caches

REPEATS = 5


def seconds(module: Module, trace: bool, steps: bool = False) -> float:
    """The time of one run, without what earlier runs have left in caches.

    Args:
        module: The program.
        trace: Whether the run is traced.
        steps: Whether the steps are worked out too, as for a first explanation.
    """
    clear_caches()
    gc.collect()
    start = time.process_time()
    result = pyshardy.propagate(module, PropagateOptions(trace=trace))
    if steps:
        list(result.steps)
    return time.process_time() - start


def main() -> None:
    module = pyshardy.load(transformer(int(sys.argv[1]) if len(sys.argv) > 1 else 56))
    kinds = {"without": (False, False), "traced": (True, False), "steps worked out": (True, True)}
    best = dict.fromkeys(kinds, float("inf"))
    for _ in range(REPEATS):
        for name, kind in kinds.items():
            best[name] = min(best[name], seconds(module, *kind))
    print(f"{op_count(module)} ops")
    for name, time_ in best.items():
        print(f"{name}: {time_:.2f} s, {time_ / best['without']:.2f} times")


if __name__ == "__main__":
    main()
