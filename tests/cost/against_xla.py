"""Estimates beside what XLA says when it compiles the same program of one device: FLOPs and peak memory.

python -m tests.cost.against_xla [PROGRAM ...]    prints a table of all programs, the worst last
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyshardy
from pyshardy.costing.compilers import XLA_ON_CPU
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import Kernels, fuse
from pyshardy.costing.lowering import lower
from pyshardy.costing.peak import find_peak
from pyshardy.costing.work import work_of
from pyshardy.ir.cost_program import cost_program
from pyshardy.results.engines import Engine, executable_of
from pyshardy.results.partition import Partition


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
    program = cost_program(partition.module.root, partition.meshes)
    flat = lower(flatten(program), XLA_ON_CPU)
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


def table(rows: Sequence[Compared]) -> str:
    """All programs with their errors, the worst last, and what is judged."""
    lines = [f"{'program':28} {'FLOPs':>12} {'XLA':>12} {'error':>7} {'memory':>12} {'XLA':>12} {'error':>7}"]
    for row in sorted(rows, key=lambda row: abs(row.memory_error)):
        lines.append(
            f"{row.name:28} {row.flops:12.0f} {row.xla_flops:12.0f} {row.flops_error:+7.1%} "
            f"{row.bytes:12} {row.xla_bytes:12} {row.memory_error:+7.1%}"
        )
    errors = sorted(abs(row.memory_error) for row in rows)
    ranks = rank_correlation([row.bytes for row in rows], [row.xla_bytes for row in rows])
    within = sum(error <= 0.15 for error in errors) / len(errors)
    lines.append(f"memory: median error {statistics.median(errors):.1%}, {within:.0%} within 15 %, ranks {ranks:.3f}")
    heavy = [abs(row.flops_error) for row in rows if row.matrix_part > 0.9]
    light = [abs(row.flops_error) for row in rows if row.matrix_part <= 0.9]
    for name, found, limit in (("mostly products", heavy, 0.02), ("others", light, 0.1)):
        if found:
            share = sum(error <= limit for error in found) / len(found)
            lines.append(f"FLOPs, {name}: median {statistics.median(found):.1%}, {share:.0%} within {limit:.0%}")
    return "\n".join(lines)


if __name__ == "__main__":
    found = []
    for name, partition in all_programs(sys.argv[1:]):
        found.append(compare(name, partition))
        print(name, file=sys.stderr)
    print(table(found))
