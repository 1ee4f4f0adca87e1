"""Time pyshardy against the reference and print the ratios with their targets.

    python -m benchmarks.compare                 all sizes; some minutes
    python -m benchmarks.compare --layers 4      one small size

Both run in this process in turn, on a module that is already parsed; figures are medians of processor time. The
reference is timed with MLIR's verifier after every pass, as anyone runs it, and without. A ratio below 1 means that
pyshardy is faster; a `!` stands where a target is missed. `--stages` adds where the time goes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxlib.version import __version__ as jaxlib_version  # noqa: E402

from benchmarks.growth import growth_apart  # noqa: E402
from benchmarks.measure import (  # noqa: E402
    CHAIN,
    PIPELINE,
    PROPAGATE,
    PROPAGATE_KEEPING_RULES,
    VIEW_PIPELINE,
    chain_seconds,
    core_seconds,
    imported,
    in_turn,
    is_compiled,
    is_in_reference,
    op_count,
    our_seconds,
    seconds,
    stages,
)
from benchmarks.memory import megabytes  # noqa: E402
from benchmarks.startup import startup_seconds  # noqa: E402
from benchmarks.targets import GROWTH, TARGETS  # noqa: E402
from benchmarks.workloads import conflicts, transformer  # noqa: E402
from pyshardy.ir.module import Module  # noqa: E402

LAYERS = (13, 53, 214)
"""Layers of the example training step with about 7,500, 30,000 and 120,000 ops."""
SMALL_CHAINS = {"chain of one layer": 1, "chain of four layers": 4}
"""Layers of programs that someone waits for at a prompt, by the name of the target."""
CONFLICT_LAYERS = 400
REPEAT = 15
"""Runs per figure: on a machine that others use too, the speed wavers by a third from one second to the next."""


@dataclass(frozen=True)
class Row:
    """One comparison; `verified` and `unverified` are the reference's figures, None where there is none."""

    what: str
    target: str | None
    ops: int
    ours: float
    verified: float | None = None
    unverified: float | None = None
    unit: str = "s"

    def ratios(self) -> tuple[float | None, float | None]:
        """To both figures of the reference."""
        verified, unverified = (self.ours / one if one else None for one in (self.verified, self.unverified))
        return verified, unverified


def pipeline_row(title: str, target: str | None, module: Module, pipeline: str, repeat: int) -> Row:
    """The row of running a pipeline on a module."""
    return Row(
        title, target, op_count(module), *in_turn(lambda: our_seconds(module, pipeline), module, pipeline, repeat)
    )


def transformer_rows(layers: int, repeat: int, with_details: bool) -> Iterator[Row]:
    """The rows of the example training step."""
    bytecode = transformer(layers)
    module = Module.parse(bytecode)
    ops = op_count(module)
    yield pipeline_row("whole pipeline", "pipeline", module, PIPELINE, repeat)
    found = in_turn(lambda: our_seconds(module, VIEW_PIPELINE), module, PIPELINE, repeat)
    yield Row("the same with XLA's view first, which the reference does without", "view", ops, *found)
    if not with_details:
        return
    ready = imported(module)
    count = op_count(ready)
    title = "user-priority propagation, with reading and writing"
    yield pipeline_row(title, "propagation", ready, PROPAGATE, repeat)
    yield pipeline_row("the same, leaving every op its rule", None, ready, PROPAGATE_KEEPING_RULES, repeat)
    core = in_turn(lambda: core_seconds(ready), ready, PROPAGATE, repeat)
    yield Row("user-priority propagation, the core alone", "core", count, core[0], None, core[2])
    ours, theirs = (megabytes(side, bytecode) for side in ("pyshardy", "reference"))
    if ours is not None:
        yield Row("peak memory above the parsed module", "memory", ops, ours, theirs, unit="MB")
    text = module.text()
    yield Row("text to module", None, ops, repeated(lambda: seconds(lambda: Module.parse(text)), repeat))
    yield Row("module to text", None, ops, repeated(lambda: seconds(module.text), repeat))


def chain_rows(layers: int, repeat: int, target: str = "chain") -> Iterator[Row]:
    """The row of the example training step on the way to one program per device, where the reference goes as far."""
    module = Module.parse(transformer(layers))
    if is_in_reference(module, CHAIN):
        found = in_turn(lambda: chain_seconds(module), module, CHAIN, repeat)
        yield Row("whole chain to the program of one device", target, op_count(module), *found)


def conflict_rows(layers: int, repeat: int) -> Iterator[Row]:
    """The row of the model with conflicts in every layer."""
    module = Module.parse(conflicts(layers))
    yield pipeline_row("whole pipeline, conflicts in every layer", "conflicts", module, PIPELINE, repeat)


def startup_rows(repeat: int) -> Iterator[Row]:
    """The rows of whole processes, beside a process that imports `jaxlib.mlir` alone."""
    found = startup_seconds(repeat)
    empty = found["empty"]
    yield Row(
        "import and --help, beside importing jaxlib.mlir", "help", 0, found["help"] - empty, found["bare"] - empty
    )
    yield Row("pyshardy-opt on 20 ops, whole process", "opt", 20, found["opt"], found["bare"])


def repeated(measure: Callable[[], float], repeat: int) -> float:
    """The median of a measure."""
    return median(measure() for _ in range(repeat))


def growth_of(layers: tuple[int, ...], repeat: int) -> float | None:
    """How much longer an op takes in the largest program than in the smallest; None for one size alone."""
    if len(layers) < 2:
        return None
    few, many = min(layers), max(layers)
    print(f"timing {few} and {many} layers in turn ...", file=sys.stderr)
    return growth_apart(transformer(few), transformer(many), _fewer(repeat))


def environment() -> str:
    """Where the figures come from."""
    core = "compiled" if is_compiled() else "interpreted"
    system = f"{platform.machine()}, {os.cpu_count()} cores"
    return f"Python {platform.python_version()}, jaxlib {jaxlib_version}, {system}, {core} core"


def cells(row: Row) -> list[str]:
    """The cells of a row: figures, ratios and targets."""
    found = [row.what, f"{row.ops:,}" if row.ops else "", amount(row.ours, row.unit)]
    target = TARGETS[row.target] if row.target else None
    wanted = (target.verified, target.unverified) if target else (None, None)
    for reference, ratio, limit in zip((row.verified, row.unverified), row.ratios(), wanted):
        if ratio is None:
            found += ["", "", ""]
        else:
            missed = " !" if limit is not None and ratio > limit else ""
            found += [amount(reference, row.unit), f"{ratio:.2f}{missed}", f"{limit:.2f}" if limit else ""]
    return found


HEADINGS = ("what", "ops", "pyshardy", "reference", "ratio", "target", "verifier off", "ratio", "target")


def amount(value: float | None, unit: str) -> str:
    """A figure with its unit."""
    if value is None:
        return ""
    return f"{value:.0f} MB" if unit == "MB" else f"{value * 1000:.0f} ms"


def print_table(rows: list[Row]) -> None:
    """The comparisons as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=environment(), title_justify="left", show_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for row in rows:
        table.add_row(*cells(row))
    console = Console()
    (console if console.is_terminal else Console(width=150)).print(table)


def _fewer(repeat: int) -> int:
    """How often what takes long is timed."""
    return -(-repeat // 3)


def all_rows(layers: tuple[int, ...], repeat: int) -> list[Row]:
    """Every comparison; the details for the second size, or the only one."""
    rows: list[Row] = []
    details = layers[min(1, len(layers) - 1)]
    for count in layers:
        print(f"timing {count} layers ...", file=sys.stderr)
        is_large = len(layers) > 1 and count == layers[-1]
        rows += transformer_rows(count, _fewer(repeat) if is_large else repeat, with_details=count == details)
    for target, count in SMALL_CHAINS.items():
        rows += chain_rows(count, repeat, target)
    rows += chain_rows(layers[0], repeat)
    rows += conflict_rows(CONFLICT_LAYERS if layers == LAYERS else 10 * layers[0], repeat)
    rows += startup_rows(repeat)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    text = "runs per figure, of which the median counts; a third for the largest of several sizes"
    parser.add_argument("--repeat", type=int, default=REPEAT, help=text)
    parser.add_argument("--stages", action="store_true", help="also where the time goes, for the second size")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    layers = tuple(arguments.layers)
    rows = all_rows(layers, arguments.repeat)
    grown = growth_of(layers, arguments.repeat)
    profile = {}
    if arguments.stages:
        profile = stages(Module.parse(transformer(layers[min(1, len(layers) - 1)])), PIPELINE, arguments.repeat)
    if arguments.json:
        found = {"environment": environment(), "rows": [asdict(row) for row in rows], "stages": profile}
        json.dump(found | {"growth": grown}, sys.stdout, indent=2)
        return 0
    print_table(rows)
    if grown is not None:
        print(f"an op of the largest program takes {grown:.2f} times as long as one of the smallest (wanted: {GROWTH})")
    for name, time in profile.items():
        print(f"{time * 1000:8.1f} ms  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
