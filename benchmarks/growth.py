"""How much longer an op takes in a large program than in a small one.

    python -m benchmarks.growth small.mlirbc large.mlirbc 5

Measured in a process of its own, which takes both programs as bytecode: what is left behind by JAX, when it makes a
program of 120,000 ops, and by earlier measurements scatters the nodes over memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.measure import PIPELINE, op_count, our_seconds
from pyshardy.ir.module import Module


def growth(smallest: Module, largest: Module, repeat: int, time: Callable[[Module, str], float] = our_seconds) -> float:
    """The time of the pipeline per op of the one, relative to that of the other: medians, with both in turn."""
    samples = [[time(module, PIPELINE) / op_count(module) for module in (smallest, largest)] for _ in range(repeat)]
    small, large = (median(times) for times in zip(*samples))
    return large / small


def growth_apart(smallest: bytes, largest: bytes, repeat: int) -> float:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("small.mlirbc", "large.mlirbc")]
        for path, bytecode in zip(paths, (smallest, largest)):
            path.write_bytes(bytecode)
        command = [sys.executable, "-m", "benchmarks.growth", *map(str, paths), str(repeat)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    *paths, repeat = sys.argv[1:]
    smallest, largest = (Module.parse(Path(path).read_bytes()) for path in paths)
    print(growth(smallest, largest, int(repeat)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
