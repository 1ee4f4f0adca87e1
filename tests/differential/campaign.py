"""The long differential campaign over random programs.

    python -m tests.differential.campaign --programs 20000 --levels basic pipeline
    python -m tests.differential.campaign --levels passes

The level "passes" compares every pass alone, on modules caught between the passes of the pipelines.
Chunks of programs run in processes of their own, because the reference ends the whole process on some programs.
Differences are printed with their seed; the exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.progress import track

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # the JAX programs are for as many

ROOT = Path(__file__).parent.parent.parent
CHUNK = 200


def run_chunk(level: str, start: int, count: int) -> list[str]:
    """The differences found in a chunk of programs, each with its seed; programs the reference dies on are named."""
    command = [sys.executable, "-m", __spec__.name, "--worker", level, str(start), str(count)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if result.returncode == 0:
        return result.stdout.splitlines()
    if count == 1:
        return [f"{level} {start}: the process died with status {result.returncode}"]
    half = count // 2
    return run_chunk(level, start, half) + run_chunk(level, start + half, count - half)


def work(level: str, start: int, count: int) -> None:
    """What a worker process does."""
    sys.path.insert(0, str(ROOT / "tests"))
    from tests.differential.compare import compare
    from tests.differential.random_programs import random_program
    from tests.differential.test_random_programs import pipeline_of

    pipeline, features = pipeline_of(level)
    for seed in range(start, start + count):
        found = compare(random_program(seed, features), pipeline)
        if found:
            print(f"{level} {seed}: {found.splitlines()[4:6]}")


def compare_passes(seeds: range, count: int) -> int:
    """Compare every pass on `count` modules or more of random programs, and on modules of all JAX programs.

    Returns:
        The number of differences.
    """
    from programs import PROGRAMS

    from .pass_compare import campaign
    from .pass_programs import jax_modules, random_modules
    from .reference_process import ReferenceProcess

    with ReferenceProcess() as reference:
        print("random programs")
        wrong = campaign([random_modules(seeds, reference)], reference, count)
        print("JAX programs")
        return wrong + campaign((jax_modules(name, reference) for name in sorted(PROGRAMS)), reference, 5)


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return 0
    sys.path.insert(0, str(ROOT / "tests"))
    from tests.differential.test_random_programs import LEVELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20000, help="programs per level")
    parser.add_argument("--first-seed", type=int, default=1_000_000)
    parser.add_argument("--levels", nargs="+", choices=[*LEVELS, "passes"], default=[*LEVELS, "passes"])
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    wrong = 0
    if "passes" in arguments.levels:
        wrong += compare_passes(range(arguments.first_seed, arguments.first_seed + 54), 200)
    for level in arguments.levels:
        if level == "passes":
            continue
        starts = range(arguments.first_seed, arguments.first_seed + arguments.programs, CHUNK)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            chunks = pool.map(lambda start, level=level: run_chunk(level, start, CHUNK), starts)
            for lines in track(chunks, description=level, total=len(starts)):
                wrong += len(lines)
                for line in lines:
                    print(line)
        print(f"{level}: {len(starts) * CHUNK} programs compared")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
