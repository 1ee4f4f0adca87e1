"""Estimates beside what XLA says when it compiles the same program of one device: FLOPs and peak memory.

From `tests/`' parent, with `PYTHONPATH=tests`:

python -m tests.cost.against_xla [PROGRAM ...]    prints a table of all programs, the worst last
python -m tests.cost.against_xla --write          puts figures and outliers into docs/cost.md; takes minutes, and the
                                                  published packages have to be installed
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyshardy
from pyshardy.costing.compilers import XLA_ON_CPU
from pyshardy.costing.donation import with_aliases
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernels
from pyshardy.costing.lowering import lower
from pyshardy.costing.peak import find_peak
from pyshardy.costing.work import work_of
from pyshardy.ir.cost_program import cost_program
from pyshardy.results.partition import Partition
from pyshardy.results.running import executable_of
from pyshardy.runtime.engine import Engine


@dataclass(frozen=True)
class Compared:
    """Figures of one program.

    Attributes:
        name: The program.
        flops: Estimated, with loops once, as XLA counts them.
        xla_flops: What XLA's cost analysis says.
        matrix_part: The part of the estimated FLOPs that products and convolutions are.
        bytes: Estimated peak memory.
        xla_bytes: Temporaries, arguments and results, without aliases, that XLA's memory analysis says.
    """

    name: str
    flops: float
    xla_flops: float
    matrix_part: float
    bytes: int
    xla_bytes: int

    @property
    def flops_error(self) -> float:
        """The estimate over what XLA says, less one."""
        return self.flops / self.xla_flops - 1 if self.xla_flops else 0.0

    @property
    def memory_error(self) -> float:
        """The estimate over what XLA says, less one."""
        return self.bytes / self.xla_bytes - 1


def compare(name: str, partition: Partition) -> Compared:
    """The estimates for the program of one device, beside what XLA says of it."""
    program = with_aliases(cost_program(partition.module.root, partition.meshes))
    flat = lower(flatten(program, XLA_ON_CPU), XLA_ON_CPU)
    block = fuse(flat, XLA_ON_CPU)
    flops, matrix = loops_once(block)
    peak = find_peak(program, flat, XLA_ON_CPU, with_live=False, block=block)
    compiled = executable_of(partition, None, Engine.LOCAL)._compiled.compiled()
    memory, costs = compiled.memory_analysis(), compiled.cost_analysis() or {}
    pointers = 8 * len(program.outputs) if len(program.outputs) > 1 else 0  # XLA counts the table of the results
    held = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    return Compared(
        name,
        flops,
        costs.get("flops") or 0.0,
        matrix / flops if flops else 0.0,
        peak.bytes - peak.constant_bytes,
        held - memory.alias_size_in_bytes - pointers,
    )


def loops_once(block: Kernels) -> tuple[float, float]:
    """FLOPs of kernels, and those of products, with every loop counted once, as XLA's cost analysis does.

    What a kernel computes again counts again. What libraries are called for is left out, as XLA does not look into it.
    """
    flops = matrix = 0.0
    for kernel in block.kernels:
        for op in kernel.ops:
            if op.kind.name != "stablehlo.custom_call":
                work = work_of(op.kind)
                flops += work.flops
                matrix += work.flops if work.is_matrix else 0.0
        inside = [loops_once(region) for region in kernel.inner]
        if inside and not kernel.root.is_loop:
            inside = [max(inside)]
        flops += sum(found for found, _ in inside)
        matrix += sum(found for _, found in inside)
    return flops, matrix


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's: 1 if both put the programs in the same order."""
    return statistics.correlation(_ranks(left), _ranks(right))


def _ranks(values: Sequence[float]) -> list[int]:
    ranks = [0] * len(values)
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        ranks[place] = rank
    return ranks


def all_programs(names: Sequence[str] = ()) -> Iterator[tuple[str, Partition]]:
    """The programs of the corpus, and the example at several sizes."""
    from programs import PROGRAMS
    from support.programs import load_example

    for name, program in PROGRAMS.items():
        if (not names or name in names) and program.skip() is None:
            yield name, pyshardy.partition(pyshardy.load(program.lower()))
    example = load_example("transformer")
    for name, sizes in EXAMPLES.items():
        if not names or name in names:
            yield name, pyshardy.partition(pyshardy.load(example.lower(example.Config(**sizes))))


EXAMPLES: dict[str, dict[str, Any]] = {
    "example_2_layers": {"layers": 2, "width": 128, "heads": 4, "sequence": 64, "vocabulary": 512},
    "example_4_layers": {"data": 2, "model": 4},
    "example_8_layers_sgd": {"layers": 8, "width": 256, "heads": 4, "optimizer": "sgd", "data": 8, "model": 1},
    "example_wide": {"layers": 4, "width": 1024, "heads": 8, "sequence": 256, "batch": 8},
}


PAGE = Path(__file__).parents[2] / "docs/cost.md"
START, END = "<!-- written by python -m tests.cost.against_xla --write -->", "<!-- end of figures -->"
SETS = ("test programs and the example", "programs of published packages", "random programs")
_AGAIN = "XLA computes more cheap values again, in each of the kernels that read them"
REASONS = {
    "newton": "one buffer of 64 bytes more",
    "pipeline_stages": "XLA keeps the state of the loop in the memory of a result; the estimate lets one more value follow "
    "in the state's own",
    "fourier": "XLA counts 8 operations per point and step, and as steps of several dimensions the product of their "
    "logarithms; the textbook, which the estimate follows, 5 and their sum",
    "interpolation": "a scatter of one update, which XLA makes an update of a slice",
    "rlax.distributional_loss": "scatters of one update, which XLA makes updates of slices that compute the update again",
    "lineax.banded_solve": "XLA writes the triangular solve out as a loop",
    "tinygp.likelihood_step": "XLA writes the Cholesky decomposition and triangular solves out as loops",
    "flowjax.triangular_flow_step": "XLA drops more of the state of its loops (12 of 16 kB are left), and bounds of indices "
    "that hold anyway",
    "flax.nnx_classifier_step": "XLA runs the product that gives the gradient of a weight later, and keeps what it reads "
    "until then",
    "e3nn_jax.rotations": "9 kB are alive at a time; the estimate packs them with more holes between them than XLA",
    "numpyro.topic_predictions": "random draws in loops that are five deep; the copies of their states differ, it is not "
    "known by which rule",
    "brax.generalized_physics": "hundreds of buffers of a few bytes; some more are alive in the estimate, it is not known "
    "by which rule",
    "brax.positional_physics": "hundreds of buffers of a few bytes; XLA keeps some of them longer, it is not known by "
    "which rule",
    "stencil": _AGAIN,
    "blackjax.no_u_turn_chains": _AGAIN,
    "optimistix.least_squares": _AGAIN,
    "uneven": "XLA simplifies comparisons and additions of counters that fill up shards",
    "tinygp.quasiseparable_likelihood": "XLA is left with fewer small products",
}
"""Why an estimate is off by more than it should be, where that was looked into."""


def figures(rows: Sequence[Compared]) -> tuple[str, ...]:
    """What is judged: the median error and the part within 15 % of memory, ranks, FLOPs of two kinds of programs."""
    errors = [abs(row.memory_error) for row in rows]
    ranks = rank_correlation([row.bytes for row in rows], [row.xla_bytes for row in rows]) if len(rows) > 1 else 1.0
    found = [
        f"{statistics.median(errors):.1%}",
        f"{sum(error <= 0.15 for error in errors) / len(rows):.0%}",
        f"{ranks:.3f}",
    ]
    for is_heavy in (True, False):
        part = [abs(row.flops_error) for row in rows if (row.matrix_part > 0.9) == is_heavy and row.xla_flops >= 100]
        limit = 0.02 if is_heavy else 0.1
        within = f"{sum(error <= limit for error in part)} of {len(part)}"
        found.append(f"{statistics.median(part):.1%}, {within}" if part else "")
    return tuple(found)


def table(rows: Sequence[Compared]) -> str:
    """All programs with their errors, the worst last, and what is judged."""
    lines = [f"{'program':28} {'FLOPs':>12} {'XLA':>12} {'error':>7} {'memory':>12} {'XLA':>12} {'error':>7}"]
    for row in sorted(rows, key=lambda row: abs(row.memory_error)):
        lines.append(
            f"{row.name:28} {row.flops:12.0f} {row.xla_flops:12.0f} {row.flops_error:+7.1%} "
            f"{row.bytes:12} {row.xla_bytes:12} {row.memory_error:+7.1%}"
        )
    median, within, ranks, heavy, light = figures(rows)
    lines.append(f"memory: median error {median}, {within} within 15 %, ranks {ranks}")
    lines.append(f"FLOPs, mostly products: median and within 2 %: {heavy}; others, within 10 %: {light}")
    return "\n".join(lines)


def page_text(sets: Sequence[Sequence[Compared]]) -> str:
    """The figures of all sets and their outliers in Markdown."""
    lines = [
        "| programs | number | memory: median error | within 15 % | ranks | FLOPs, mostly products: median, within 2 % | "
        "others: median, within 10 % |",
        "|---|---|---|---|---|---|---|",
    ]
    both = [*sets[0], *sets[1]]
    for name, rows in (*zip(SETS, sets), ("the first two together", both)):
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(figures(rows)) + " |")
    lines += ["", "| outlier of memory | estimated bytes | XLA | error | reason |", "|---|---|---|---|---|"]
    for row in sorted(both, key=lambda row: -abs(row.memory_error)):
        if abs(row.memory_error) > 0.15:
            reason = REASONS.get(row.name, "not known")
            lines.append(f"| `{row.name}` | {row.bytes} | {row.xla_bytes} | {row.memory_error:+.0%} | {reason} |")
    lines += ["", "| outlier of FLOPs | estimated | XLA | error | reason |", "|---|---|---|---|---|"]
    for row in sorted(both, key=lambda row: -abs(row.flops_error)):
        if abs(row.flops_error) > (0.02 if row.matrix_part > 0.9 else 0.1):
            reason = REASONS.get(row.name, "not known")
            lines.append(
                f"| `{row.name}` | {row.flops:.0f} | {row.xla_flops:.0f} | {row.flops_error:+.0%} | {reason} |"
            )
    return "\n".join(lines)


def write(sets: Sequence[Sequence[Compared]]) -> None:
    """Put the figures into the page between their marks."""
    head, _, rest = PAGE.read_text().partition(START)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{START}\n{page_text(sets)}\n{END}{tail}")


def package_programs() -> Iterator[tuple[str, Partition]]:
    """The programs of published packages that are installed, with whole axes on some of their inputs."""
    from tests.differential.xla_campaign import plain
    from tests.packages import PROGRAMS

    for name, program in sorted(PROGRAMS.items()):
        if not program.missing():
            yield name, pyshardy.partition(pyshardy.load(plain(program.lower().as_text(), f"{name} 0")))


def held_out_programs() -> Iterator[tuple[str, Partition]]:
    """Random programs of every family, which nothing was chosen by."""
    from tests.differential.xla_campaign import random_programs

    for name, text in random_programs(12):
        yield name, pyshardy.partition(pyshardy.load(text))


def compared(programs: Iterator[tuple[str, Partition]]) -> list[Compared]:
    """Programs beside what XLA says of them; those that it or `pyshardy` refuses are named and left out."""
    found = []
    while True:
        try:
            for name, partition in programs:
                found.append(compare(name, partition))
            return found
        except pyshardy.ShardyError as error:
            print(f"{name}: {error}".splitlines()[0], file=sys.stderr)


if __name__ == "__main__":
    if "--write" in sys.argv:
        write([compared(programs) for programs in (all_programs(), package_programs(), held_out_programs())])
    else:
        print(table(compared(all_programs(sys.argv[1:]))))
