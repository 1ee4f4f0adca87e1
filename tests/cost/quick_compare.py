"""The same estimate from shardings alone and from the program of one device, program by program.

python -m tests.cost.quick_compare [COUNT]    counts how many of the programs are equal, and prints the others
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from differential.local_programs import FAMILIES
from differential.random_programs import Features, random_program

import pyshardy
from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.estimate import Estimate, estimate
from pyshardy.costing.program import Program, SourceLine
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.functions import main_function, set_arg_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.quick_cost.quick_program import QuickProgram, why_not

_RANDOM = Features(ops=12, calls=0.0, groups=0.0, manual=0.05, control_flow=0.15, annotated=0.4, constraints=0.2)


@dataclass(frozen=True)
class Figures:
    """What is compared.

    Attributes:
        collectives: Per kind, how many there are and how many bytes each device sends.
        causes: How many there are of each kind along which axes, from which line and for what.
        flops: Operations of a device.
        bytes: What its kernels read and write.
        seconds: The step time.
        peak: Peak memory.
    """

    collectives: tuple[tuple[str, int, int], ...]
    causes: Counter[tuple[str, str | None, SourceLine | None, str | None]]
    flops: float
    bytes: float
    seconds: float
    peak: int

    @classmethod
    def of(cls, program: Program) -> Figures:
        """The figures of a program on a chip that has all kinds of networks."""
        found: Estimate = estimate(program, make_topology(find_hardware("v5e"), program.mesh_axes))
        counts: Counter[str] = Counter()
        sent: Counter[str] = Counter()
        for row in found.collectives:
            counts[row.kind] += row.count
            sent[row.kind] += row.sent_bytes_per_device
        causes = Counter({(row.kind, row.axes, row.source, row.cause): 0 for row in found.collectives})
        for row in found.collectives:
            causes[row.kind, row.axes, row.source, row.cause] += row.count
        rows = tuple((kind, counts[kind], sent[kind]) for kind in sorted(counts))
        return cls(rows, causes, found.flops_per_device, found.bytes_per_device, found.step_seconds, found.memory.bytes)

    def differences(self, other: Figures, tolerance: float = 1e-9) -> list[str]:
        """The names of the figures that are not the same; sums of floating-point numbers may round otherwise."""
        found = [name for name in ("collectives", "causes", "peak") if getattr(self, name) != getattr(other, name)]
        for name in ("flops", "bytes", "seconds"):
            one, two = getattr(self, name), getattr(other, name)
            if abs(one - two) > tolerance * max(one, two):
                found.append(name)
        return found


def verdict(program: object) -> str:
    """ "equal", why the program is partitioned as a whole, "refused" if it cannot be, or what is different."""
    try:
        propagation = pyshardy.propagate(program)
        partition = pyshardy.partition(propagation)
    except ShardyError:
        return "refused"
    reason = why_not(propagation.sharded)
    if reason is not None:
        return reason
    whole = Figures.of(cost_program(partition.module.root, partition.meshes, partition.before.name))
    quick = Figures.of(QuickProgram(propagation.sharded).cost_program())
    found = whole.differences(quick)
    return f"different: {', '.join(found)}" if found else "equal"


def annotated_programs(seeds: int, names: Sequence[str] | None = None) -> Iterator[tuple[str, Module]]:
    """The test programs of one mesh under other shardings of their arguments and results, at random, even or not."""
    from programs import PROGRAMS

    for name in PROGRAMS if names is None else names:
        if PROGRAMS[name].skip() is None:
            module = pyshardy.load(PROGRAMS[name].lower())
            for seed in range(seeds):
                yield f"{name} {seed}", _annotated(module, Random(f"{name} {seed}"))


def _annotated(module: Module, random: Random) -> Module:
    root = module.copy_root()
    found = [(name, mesh) for name, mesh in module_meshes(root).items() if mesh.axes]
    main = main_function(root)
    for arg in main.region.blocks[0].args if found else ():
        name, mesh = found[0]
        if arg.type.is_ranked_tensor and arg.type.rank and random.random() < 0.7:
            dims: list[list[AxisRef]] = [[] for _ in range(arg.type.rank)]
            for axis in mesh.axis_names:
                if random.random() < 0.6:
                    dims[random.randrange(len(dims))].append(AxisRef(axis))
            set_arg_sharding(main, arg.index, TensorSharding(name, [DimSharding(axes) for axes in dims]))
    return module.with_root(root)


def random_modules(count: int) -> Iterator[tuple[str, str]]:
    """Random programs: of single ops, of chains, and of many ops with loops and branches."""
    for family, (make, _) in FAMILIES.items():
        for seed in range(count):
            yield f"{family} {seed}", make(seed)
    for seed in range(count):
        yield f"random {seed}", random_program(seed, _RANDOM)


def main() -> None:
    """Print a table."""
    from programs import PROGRAMS

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found: Counter[str] = Counter()
    programs = ((name, program.lower()) for name, program in PROGRAMS.items() if program.skip() is None)
    for group in (programs, annotated_programs(max(1, count // 20)), random_modules(count)):
        for name, text in group:
            try:
                result = verdict(text)
            except ShardyError as error:
                result = f"different: quick refuses: {type(error).__name__}"
            except Exception as error:  # a crash is counted as well
                result = f"different: crash: {type(error).__name__} {str(error)[:60]}"
            found[result if not result.startswith("different") else "different"] += 1
            if result.startswith("different"):
                print(f"{name:32} {result}", flush=True)
        print(dict(found), flush=True)


if __name__ == "__main__":
    main()
