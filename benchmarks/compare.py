"""Time pyshardy against the reference on the example training step, and print the ratios.

    python -m benchmarks.compare --layers 4 24 96

Both run in this process in turn, on a module that is already parsed; figures are medians. The reference is timed
with MLIR's verifier after every pass, as anyone runs it, and without. A ratio below 1 means that pyshardy is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxlib.mlir import ir, passmanager  # noqa: E402
from jaxlib.version import __version__ as jaxlib_version  # noqa: E402

from benchmarks.workloads import transformer  # noqa: E402
from pyshardy.core.intern import clear_caches  # noqa: E402
from pyshardy.ir.module import Module  # noqa: E402
from pyshardy.ir.nodes import walk  # noqa: E402
from pyshardy.passes.pipeline import run_on_root  # noqa: E402
from pyshardy.passes.pipelines import parse_pipeline  # noqa: E402

PIPELINE = "sdy-propagation-pipeline"
PROPAGATE = "sdy-user-priority-propagate{keep-sharding-rules=true}"
IMPORT = "sdy-import-pipeline"


@dataclass(frozen=True)
class Row:
    """One comparison; times in seconds, None where the reference has no such step."""

    workload: str
    ops: int
    what: str
    ours: float
    reference: float | None
    reference_unverified: float | None


def timed(action: Callable[[], Any], repeat: int) -> float:
    """The median time of an action."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def reference_seconds(module: Module, pipeline: str, verify: bool, repeat: int) -> float:
    """The median time of the reference's passes over copies of a module."""
    times = []
    with module.context:
        for _ in range(repeat):
            copy = module.mlir.operation.clone(ip=False)
            passes = passmanager.PassManager.parse(f"builtin.module({pipeline})")
            passes.enable_verifier(verify)
            start = time.perf_counter()
            passes.run(copy)
            times.append(time.perf_counter() - start)
    return median(times)


def our_seconds(module: Module, pipeline: str, repeat: int) -> dict[str, float]:
    """The median times of reading, of the passes and of writing, with cold caches; "whole" is their sum."""
    samples: dict[str, list[float]] = {"read": [], "passes": [], "write": [], "whole": []}
    for _ in range(repeat):
        clear_caches()
        start = time.perf_counter()
        root = module.copy_root()
        read = time.perf_counter()
        run_on_root(module, root, parse_pipeline(pipeline))
        passed = time.perf_counter()
        _ = module.with_root(root).mlir
        written = time.perf_counter()
        for name, seconds in zip(samples, (read - start, passed - read, written - passed, written - start)):
            samples[name].append(seconds)
    return {name: median(times) for name, times in samples.items()}


def compare(name: str, bytecode: bytes, repeat: int) -> list[Row]:
    """All comparisons on one module."""
    module = Module.parse(bytecode)
    ops = sum(1 for _ in walk(module.root))
    text = module.text()
    whole = our_seconds(module, PIPELINE, repeat)
    imported = Module.parse(reference_result(module, IMPORT))
    alone = our_seconds(imported, PROPAGATE, repeat)
    return [
        Row(name, ops, "whole pipeline", whole["whole"], *references(module, PIPELINE, repeat)),
        Row(name, ops, "user-priority propagation alone", alone["whole"], *references(imported, PROPAGATE, repeat)),
        Row(name, ops, "reading the module", whole["read"], None, None),
        Row(name, ops, "passes", whole["passes"], None, None),
        Row(name, ops, "writing the module", whole["write"], None, None),
        Row(name, ops, "text to module (not in the ratios)", timed(lambda: Module.parse(text), repeat), None, None),
        Row(name, ops, "module to text (not in the ratios)", timed(module.text, repeat), None, None),
    ]


def references(module: Module, pipeline: str, repeat: int) -> tuple[float, float]:
    """The reference's time with the verifier on and off."""
    return reference_seconds(module, pipeline, True, repeat), reference_seconds(module, pipeline, False, repeat)


def reference_result(module: Module, pipeline: str) -> str:
    """The module after the reference's passes."""
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(module.text())
        passmanager.PassManager.parse(f"builtin.module({pipeline})").run(copy.operation)
        return str(copy)


def environment() -> str:
    """Where the figures come from."""
    return f"Python {platform.python_version()}, jaxlib {jaxlib_version}, {platform.machine()}, {os.cpu_count()} cores"


def print_table(rows: list[Row]) -> None:
    """The comparisons as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=environment(), title_justify="left", show_edge=False)
    for heading in ("workload", "ops", "what", "pyshardy", "reference", "ratio", "without verifier", "ratio"):
        table.add_column(heading, justify="left" if heading in ("workload", "what") else "right")
    for row in rows:
        cells = [row.workload, str(row.ops), row.what, milliseconds(row.ours)]
        for reference in (row.reference, row.reference_unverified):
            cells += [milliseconds(reference), f"{row.ours / reference:.2f}" if reference else ""]
        table.add_row(*cells)
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 24, 96])
    parser.add_argument("--repeat", type=int, default=5, help="runs per figure; the median counts")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for layers in arguments.layers:
        print(f"timing {layers} layers ...", file=sys.stderr)
        rows += compare(f"transformer, {layers} layers", transformer(layers), arguments.repeat)
    if arguments.json:
        json.dump({"environment": environment(), "rows": [asdict(row) for row in rows]}, sys.stdout, indent=2)
    else:
        print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
