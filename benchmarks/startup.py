"""How long whole processes take: importing the package, `--help`, and `pyshardy-opt` on a small file."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from .workloads import TWENTY_OPS

BARE = ["-c", "import jaxlib.mlir.ir"]
HELP = ["-m", "pyshardy.cli.main", "--help"]


def process_seconds(arguments: list[str]) -> float:
    """The processor's time of a Python process, which writes compiled modules and finds them the next time."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def startup_seconds(repeat: int) -> dict[str, float]:
    """The medians: an empty process, one that imports `jaxlib.mlir`, `--help`, and `pyshardy-opt` on twenty ops."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.mlir"
        path.write_text(TWENTY_OPS)
        commands = {
            "empty": ["-c", ""],
            "bare": BARE,
            "help": HELP,
            "opt": ["-m", "pyshardy.opt", str(path), "-sdy-propagation-pipeline"],
        }
        for command in commands.values():  # whose modules may not have been compiled yet
            process_seconds(command)
        samples: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeat):
            for name, command in commands.items():
                samples[name].append(process_seconds(command))
    return {name: median(times) for name, times in samples.items()}
