"""Compares plans with the programs that XLA compiles: scaled down, in f32, run on eight virtual devices.

From `tests`, with XLA_FLAGS=--xla_force_host_platform_device_count=8:

    python -m search.truth --write     # some minutes: the tables of docs/search.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import jax
import numpy as np
from cost.against_xla import compare
from scipy.stats import spearmanr
from search.compare import load, partition_spec, with_specs
from search.evaluator import Evaluator, at_random
from search.experts import random_plans
from search.models import PROGRAMS, small
from search.page import markdown, write_part

import pyshardy
from pyshardy.costing.traffic import KindTotal
from pyshardy.frontend.interface import input_tensors
from pyshardy.runtime.hlo import hlo_kinds

MESH = {"data": 2, "model": 4}
CHIPS = ("v5e", "h100", "v5p")
RANKED = ("dense", "decode")
PLANS = 50
_QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options that affect machine code only."""
PLANS_FILE = Path(__file__).parent / "plans.json"
"""Shardings that the search found for the programs at their full size."""


class Compiled(NamedTuple):
    """A program compiled by XLA.

    Attributes:
        kinds: The collectives.
        bytes: The bytes of temporaries, arguments and results, without aliases, on a device.
        inputs: The shardings of the inputs, as a flat list.
        outputs: The shardings of the outputs.
    """

    kinds: tuple[KindTotal, ...]
    bytes: int
    inputs: list[Any]
    outputs: list[Any]

    @property
    def counts(self) -> dict[str, int]:
        """The number of collectives that run, by kind."""
        return {total.kind: total.count for total in self.kinds}


class Truth(NamedTuple):
    """A plan compared with the program that XLA compiles from it.

    Attributes:
        program: The program.
        error: The largest difference between the numbers of eight devices and those of one, as a part of the largest.
        predicted: The collectives of the program of one device.
        local: The same when XLA has compiled that program.
        memory_error: The estimated memory over what XLA says, less one.
        stock: What `jax.jit` makes of the function with the shardings of the plan.
        ours: What XLA makes of the module that the plan is applied to.
        is_sharded_so: Whether inputs and outputs of `stock` are sharded as the plan says, and those of `ours` too.
    """

    program: str
    error: float
    predicted: tuple[KindTotal, ...]
    local: tuple[KindTotal, ...]
    memory_error: float
    stock: Compiled
    ours: dict[str, int]
    is_sharded_so: bool


def sent(kinds: Iterable[KindTotal]) -> int:
    """The bytes that a device sends."""
    return sum(total.sent_bytes_per_device for total in kinds)


def jax_mesh() -> Any:
    """The mesh, of JAX's devices."""
    auto = (jax.sharding.AxisType.Auto,) * len(MESH)
    return jax.make_mesh(tuple(MESH.values()), tuple(MESH), axis_types=auto)


def small_module(program: str) -> pyshardy.Module:
    """A scaled-down program, as JAX lowers it for this machine, without donation."""
    step, arguments, _ = small(program)
    return pyshardy.load(jax.jit(step), *arguments, mesh=jax_mesh())


def stock(program: str, in_shardings: Any, out_shardings: Any) -> Compiled:
    """A scaled-down program compiled by `jax.jit`, without pyshardy."""
    step, arguments, _ = small(program)
    jitted = jax.jit(step, in_shardings=in_shardings, out_shardings=out_shardings)
    return compiled(jitted.lower(*arguments).compile(compiler_options=_QUICKLY))


def compiled(executable: Any) -> Compiled:
    """The figures of XLA for an executable of JAX."""
    memory = executable.memory_analysis()
    held = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    inputs, outputs = jax.tree.leaves(executable.input_shardings[0]), jax.tree.leaves(executable.output_shardings)
    return Compiled(hlo_kinds(executable.as_text()), held - memory.alias_size_in_bytes, inputs, outputs)


def are_same(wanted: Sequence[Any], found: Sequence[Any], leaves: Sequence[Any]) -> bool:
    """Whether shardings put the same parts onto the same devices."""
    pairs = zip(wanted, found, leaves, strict=True)
    return all(one.is_equivalent_to(other, len(leaf.shape)) for one, other, leaf in pairs)


def numbers(program: str) -> tuple[Any, ...]:
    """Arguments of a scaled-down program; of a training step the state is such that gradients are seen in results."""
    rng = np.random.default_rng(0)
    is_training = len(small(program)[2]) == 3

    def make(path: Any, leaf: Any) -> np.ndarray[Any, Any]:
        place = path[0].idx
        if np.issubdtype(leaf.dtype, np.integer):
            return rng.integers(0, 16, leaf.shape, leaf.dtype)
        if is_training and place in (1, 2):
            return np.full(leaf.shape, place - 1, leaf.dtype)
        return rng.normal(size=leaf.shape).astype(leaf.dtype) * (0.1 if place == 0 else 1.0)

    arguments: tuple[Any, ...] = jax.tree_util.tree_map_with_path(make, small(program)[1])
    return arguments


def largest_difference(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """The largest difference of numbers, relative to the largest number of an output; NaN if any number is NaN."""
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        right = np.asarray(other, np.float64)
        scale = max(1e-6, float(np.max(np.abs(right), initial=0.0)))
        worst = float(np.maximum(worst, np.max(np.abs(np.asarray(one, np.float64) - right), initial=0.0) / scale))
    return worst


def truth(program: str, specs: dict[str, Any]) -> Truth:
    """Compare shardings, by names of inputs and outputs, with XLA's program for a scaled-down copy."""
    step, arguments, _ = small(program)
    propagation = pyshardy.propagate(pyshardy.annotate(small_module(program), specs))
    partition = pyshardy.partition(propagation)
    arrays = numbers(program)
    wanted, found = jax.jit(step)(*arrays), partition.run(*arrays)
    in_shardings, out_shardings = (
        shardings(sub_axes="gather") for shardings in (propagation.input_shardings, propagation.output_shardings)
    )
    by_jax = stock(program, in_shardings, out_shardings)
    by_xla = compiled(propagation.executable(engine="xla")._compiled.compiled())
    ins, outs = jax.tree.leaves(in_shardings), jax.tree.leaves(out_shardings)
    shapes = jax.tree.leaves(arguments), jax.tree.leaves(jax.eval_shape(step, *arguments))
    kept = propagation.module.origin.kept
    is_so = are_same([*ins, *outs], [*by_jax.inputs, *by_jax.outputs], [*shapes[0], *shapes[1]])
    used = [*(ins[place] for place in kept), *outs], [*(shapes[0][place] for place in kept), *shapes[1]]
    is_so &= are_same(used[0], [*by_xla.inputs, *by_xla.outputs], used[1])
    return Truth(
        program,
        largest_difference(jax.tree.leaves(found), jax.tree.leaves(wanted)),
        partition.traffic.kinds,
        pyshardy.compiled_collectives(partition),
        compare(program, partition).memory_error,
        by_jax,
        by_xla.counts,
        is_so,
    )


def found_specs(program: str, chip: str) -> dict[str, Any]:
    """The plan of a program at its full size, as data: axes by the names of inputs and outputs."""
    plan = pyshardy.search(load(program, MESH), hardware=chip, budget_s=600, candidates=60)
    return {spec.name: spec.axes for spec in plan.summary.specs}


def saved_specs(program: str) -> dict[str, pyshardy.PartitionSpec]:
    """The plan that was saved."""
    found = json.loads(PLANS_FILE.read_text())[program]
    return {name: partition_spec(axes) for name, axes in found.items()}


class Ranks(NamedTuple):
    """Spearman's correlations of two orders of random plans: by the estimate, and by XLA's figures.

    Attributes:
        program: The program.
        kind: How plans were drawn, a key of `DRAWN`.
        plans: How many.
        sent: Bytes of collectives, beside the program of one device as XLA compiles it.
        sent_by_stock: The same beside what stock JAX compiles.
        memory: Of a device, beside the program of one device.
        memory_of_stock: The same beside what stock JAX compiles.
    """

    program: str
    kind: str
    plans: int
    sent: float
    sent_by_stock: float
    memory: float
    memory_of_stock: float


DRAWN = ("a task for every axis", "every input by itself")
"""The two kinds of random plans: random tasks for axes, as people use them; or random axes on every input."""


def drawn(program: str, kind: str, module: pyshardy.Module) -> Iterator[dict[str, Any]]:
    """Random plans: axes by the names of inputs."""
    if kind == DRAWN[0]:
        shapes = {port.name: port.shape for port in input_tensors(module.root)}
        yield from (plan.specs for plan in random_plans(program, shapes, MESH, Random(1)))
    else:
        evaluator = Evaluator(module, MESH, "v5e")
        yield from map(evaluator.specs, at_random(evaluator, seed=1))


def ranks(program: str, kind: str = DRAWN[0], plans: int = PLANS) -> Ranks:
    """Random plans of a scaled-down program: predicted figures, and those of the program that XLA compiles."""
    module = small_module(program)
    rows = [measured(program, module, specs) for specs in islice(drawn(program, kind, module), plans)]
    predicted, local, by_jax, bytes_, local_bytes, jax_bytes = zip(*rows)
    correlations = [correlation(predicted, other) for other in (local, by_jax)]
    correlations += [correlation(bytes_, other) for other in (local_bytes, jax_bytes)]
    return Ranks(program, kind, len(rows), *correlations)


def measured(program: str, module: pyshardy.Module, specs: dict[str, Any]) -> tuple[int, ...]:
    """Bytes of collectives and of memory: predicted, in our program of one device, and in that of stock JAX.

    Memory is estimated for XLA on CPUs, which compiles the programs.
    """
    propagation = pyshardy.propagate(with_specs(module, specs))
    partition = pyshardy.partition(propagation)
    estimate = pyshardy.cost(partition, "h100").estimate  # for TPUs, f32 that products read would be sent as bf16
    memory = compare(program, partition)
    by_jax = stock(
        program, propagation.input_shardings(sub_axes="gather"), propagation.output_shardings(sub_axes="gather")
    )
    return (
        sum(row.sent_bytes_per_device for row in estimate.collectives),
        sent(pyshardy.compiled_collectives(partition)),
        sent(by_jax.kinds),
        memory.bytes,
        memory.xla_bytes,
        by_jax.bytes,
    )


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's correlation: 1 if both are in the same order; equal numbers share a rank."""
    return float(spearmanr(one, other).statistic)


def truth_table(found: Sequence[Truth]) -> str:
    """The comparison of plans with XLA, as a Markdown table."""
    heads = ["program", "numbers differ by", "bytes predicted", "compiled", "memory", "stock JAX", "as ours"]
    rows = [
        [
            one.program,
            f"{one.error:.0e}",
            sent(one.predicted),
            sent(one.local),
            f"{one.memory_error:+.0%}",
            ", ".join(f"{count} {kind}" for kind, count in one.stock.counts.items()) or "none",
            "yes" if one.stock.counts == one.ours and one.is_sharded_so else "no",
        ]
        for one in found
    ]
    return markdown(heads, rows)


def ranks_table(found: Sequence[Ranks]) -> str:
    """The correlations as a Markdown table."""
    heads = ["program", "random plans", "bytes sent", "by stock JAX", "memory", "of stock JAX"]
    rows = [[one.program, f"{one.plans}: {one.kind}", *(f"{value:.3f}" for value in one[3:])] for one in found]
    return markdown(heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", action="store_true", help="search, save plans, and put the tables into docs/search.md"
    )
    parser.add_argument("--saved", action="store_true", help="take the plans that are saved")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--ranked", default=",".join(RANKED))
    parser.add_argument("--kinds", default=",".join(DRAWN))
    parser.add_argument("--plans", type=int, default=PLANS)
    options = parser.parse_args()
    names = [name for name in options.programs.split(",") if name]
    if not options.saved:
        plans = {name: found_specs(name, CHIPS[number % len(CHIPS)]) for number, name in enumerate(names)}
        PLANS_FILE.write_text(json.dumps(plans, indent=1) + "\n")
    found = []
    for name in names:
        found.append(truth(name, saved_specs(name)))
        print(found[-1], flush=True)
    ranked = []
    for name, kind in product(filter(None, options.ranked.split(",")), options.kinds.split(",")):
        ranked.append(ranks(name, kind, options.plans))
        print(ranked[-1], flush=True)
    text = f"{truth_table(found)}\n\n{ranks_table(ranked)}"
    print(text)
    if options.write:
        write_part("truth", text)


if __name__ == "__main__":
    main()
