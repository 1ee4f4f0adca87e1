"""By how much the memory of a process grows, at most, while the pipeline runs over a module that is already parsed.

    python -m benchmarks.memory pyshardy module.mlirbc

Linux counts it; the measure is taken in a process of its own, once for pyshardy and once for the reference.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SIDES = ("pyshardy", "reference")


def megabytes(side: str, bytecode: bytes) -> float | None:
    """The growth in one side's process; None where the system does not count it."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.mlirbc"
        path.write_bytes(bytecode)
        command = [sys.executable, "-m", "benchmarks.memory", side, str(path)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    side, path = sys.argv[1:]
    from jaxlib.mlir import passmanager

    from pyshardy.ir.module import Module
    from pyshardy.passes.pipeline import run_pipeline

    from .measure import PIPELINE
    from .workloads import TWENTY_OPS

    def run(module: Module) -> None:
        if side == "pyshardy":
            _ = run_pipeline(module, PIPELINE).mlir
        else:
            with module.context:
                copy = module.mlir.operation.clone(ip=False)
                passmanager.PassManager.parse(f"builtin.module({PIPELINE})").run(copy)

    run(Module.parse(TWENTY_OPS))  # whatever is loaded or built once
    module = Module.parse(Path(path).read_bytes())
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    run(module)
    print((_status("VmHWM") - before) / 1024)
    return 0


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    sys.exit(main())
