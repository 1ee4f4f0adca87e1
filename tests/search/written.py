"""Our search beside what people write: shardings of inputs with their constraints of activations, as compiled.

From `tests`. Both sides are estimated by `pyshardy.cost`, and then partitioned by XLA for the chip; the figures are
those of the compiler's programs:

    python -m search.written --write                                # the table of docs/search.md: about half an hour
    python -m search.written --programs routed --chips h100

The constraints follow tables below, which come from people's rules: the batch stays where it is; heads, hidden units,
vocabulary and experts have the axis of tensors; between layers the sequence may have it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple
from unittest.mock import patch

from search.compare import MESHES, experts_for, load, with_specs
from search.experts import BATCHED, Expert
from search.page import markdown, write_part

import pyshardy
from pyshardy.core.axes import Dims
from pyshardy.ir.named_values import named_values, with_shardings
from pyshardy.ir.source_values import constrained
from pyshardy.searching.program.search_program import mesh_to_search

ACTIVATIONS: dict[str, dict[str, str]] = {
    "transformer": {"x": "bs.", "wide": "bs.", "": "bs.", "scores": "bt..", "logits": "bst", "wanted": "bs"},
    "experts": {"gates": "b.", "sent": "eb.", "made": "eb."},
    "routed": {"gates": "bs.", "made": "eb..", "mixed": "bs."},
    "decode": {"keys": "b.t.", "values": "b.t.", "scores": "bt.", "x": "b."},
    "prefill": {"q": "bst..", "scores": "bt.s.", "x": "bs."},
    "vision": {"x": "bs.", "wide": "bs.", "": "bs.", "scores": "bt..", "logits": "bt"},
    "unet": {"x": "bs..", "flat": "b..", "wide": "b..", "": "b..", "scores": "bt..", "low": "bs..", "high": "bs.."},
    "convolutions": {"x": "bs.."},
}
"""Per program and name of a value the roles of its dimensions: batch, sequence (of images the height), tensor, expert;
the dimension of a point stays whole."""
COMPILERS = {"v5e": "tpu:v5e:2x4", "h100": "cuda:h100"}
PART = [(program, chip) for program in ("transformer", "routed", "prefill", "vision") for chip in COMPILERS]
PART += [("experts", "v5e"), ("decode", "h100"), ("unet", "v5e"), ("convolutions", "h100")]
MOST = 4
"""The number of people's ways that are compiled, the best by estimates."""
SAME = 1.03
"""A share of time, bytes or memory up to which two programs are called equal."""


class Figures(NamedTuple):
    """What a program costs on a device.

    Attributes:
        seconds: The time of a step.
        sent: The bytes that it sends.
        peak: The bytes that it needs.
    """

    seconds: float
    sent: int
    peak: int


class Way(NamedTuple):
    """A way to shard a program.

    Attributes:
        name: What it is.
        module: The program with its shardings.
        seconds: Its estimated time, as pyshardy partitions it.
    """

    name: str
    module: pyshardy.Module
    seconds: float


class Result(NamedTuple):
    """Both sides for one program and chip, as the compiler makes them.

    Attributes:
        program: The program.
        chip: The chip.
        estimated: Estimated seconds of our plan beside those of the best of people's ways.
        plan: The figures of our plan.
        written: The figures of the best of people's ways.
        name: Which that is.
    """

    program: str
    chip: str
    estimated: float
    plan: Figures
    written: Figures
    name: str

    @property
    def ratios(self) -> tuple[float, ...]:
        """Our figures beside people's."""
        return tuple(one / other if other else float(one > 0) + 1 for one, other in zip(self.plan, self.written))

    @property
    def verdict(self) -> str:
        """Whether our plan is as fast; then, whether it gains time, or memory in the same time."""
        seconds, _, peak = self.ratios
        if seconds > SAME:
            return "loss"
        return "win" if seconds * SAME < 1 else "less memory" if peak * SAME < 1 else "equal"


def roles_to_axes(expert: Expert, program: str, mesh: Mapping[str, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ways in which people constrain activations beside shardings of inputs: the axes of every role."""
    data = [axis for name, dim in BATCHED[program].items() if name in expert.specs for axis in expert.specs[name][dim]]
    data = list(dict.fromkeys(data))
    rest = [axis for axis in mesh if axis not in data]
    yield "the batch", {"b": data}
    if rest:
        yield "batch and tensors", {"b": data, "t": rest, "e": rest}
        yield "batch, tensors, sequences between layers", {"b": data, "t": rest, "e": rest, "s": rest}
    last = list(mesh)[-1:]
    yield "experts first", {"e": last, "b": [axis for axis in data if axis not in last], "t": rest}


def dims_of(roles: str, shape: tuple[int, ...], axes: Mapping[str, Any], mesh: Mapping[str, int]) -> Dims:
    """The axes of a value: those of its roles that divide it; what is inside of a layer comes before the sequence."""
    found: list[tuple[str, ...]] = [()] * len(roles)
    for role in "ebts":
        for dim in (dim for dim, own in enumerate(roles) if own == role):
            for axis in axes.get(role, ()):
                longer = (*found[dim], axis)
                if not any(axis in one for one in found) and shape[dim] % prod(mesh[one] for one in longer) == 0:
                    found[dim] = longer
    return tuple(found)


def written(program: str, mesh: dict[str, int], chip: str) -> list[Way]:
    """People's ways that fit, the fastest by estimates first: every sharding of inputs, alone and with constraints."""
    module = load(program, mesh)
    values, table = named_values(module.root), ACTIVATIONS[program]
    found: list[Way] = []
    for expert in experts_for(program, module, mesh):
        placed = with_specs(module, expert.specs)
        name, _ = mesh_to_search(placed.root)
        ways = [(expert.name, placed)]
        for words, axes in roles_to_axes(expert, program, mesh):
            chosen = {
                number: dims_of(table[one.name], one.value.shape, axes, mesh)
                for number, one in enumerate(values)
                if len(table.get(one.name, "")) == len(one.value.shape)
            }
            ways.append(
                (f"{expert.name}; {words} constrained", constrained(placed, with_shardings(values, chosen, name)))
            )
        for title, made in ways:
            try:
                cost = pyshardy.cost(made, chip)
            except pyshardy.ShardyError:  # axes of a constraint may clash with those of an input
                continue
            if cost.fits:
                found.append(Way(title, made, cost.step_seconds))
    return sorted(found, key=lambda way: way.seconds)


def compiled(module: pyshardy.Module, chip: str) -> Figures:
    """The figures of the program that the chip's compiler makes."""
    cost = pyshardy.cost(pyshardy.partition(module, compiler=COMPILERS[chip]), chip)
    sent = sum(row.sent_bytes_per_device for row in cost.estimate.collectives)
    return Figures(cost.step_seconds, sent, cost.peak_bytes)


def compared(program: str, chip: str, mesh: dict[str, int], **options: Any) -> Result:
    """Our plan beside the best of people's ways, as the compiler makes them."""
    module = load(program, mesh)
    with patch("time.monotonic", time.process_time):  # the budget is the same on a machine that is busy otherwise
        plan = pyshardy.search(module, hardware=chip, compiler=COMPILERS[chip], **options)
    ways = written(program, mesh, chip)
    asked = [(compiled(way.module, chip), way) for way in ways[:MOST]]
    best, way = min(asked, key=lambda pair: pair[0])
    estimated = pyshardy.cost(plan.apply(module), chip).step_seconds / ways[0].seconds
    return Result(program, chip, estimated, compiled(plan.apply(module), chip), best, way.name)


def table(results: list[Result]) -> str:
    """The results as a table of Markdown, with a line that counts them."""
    heads = ["program", "chip", "best of people's ways", "estimated", "ms", "sent MiB", "peak MiB", ""]
    rows = []
    for one in results:
        figures = [
            f"{ours * scale:.{places}f} ({theirs * scale:.{places}f})"
            for ours, theirs, scale, places in zip(one.plan, one.written, (1e3, 2**-20, 2**-20), (2, 1, 0))
        ]
        rows.append([one.program, one.chip, one.name, f"{one.estimated:.2f}", *figures, one.verdict])
    kinds = [
        f"{sum(one.verdict == kind for one in results)} {kind}" for kind in ("win", "less memory", "equal", "loss")
    ]
    return f"{markdown(heads, rows)}\n\nOf {len(results)}: {', '.join(kinds)}."


def options_parser() -> argparse.ArgumentParser:
    """The options of tools that compile people's plans."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/search.md")
    parser.add_argument("--programs", default=",".join(ACTIVATIONS))
    parser.add_argument("--chips", default=",".join(COMPILERS))
    parser.add_argument("--mesh", default="2x4", choices=list(MESHES))
    return parser


def main() -> None:
    parser = options_parser()
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of processor time for each")
    options = parser.parse_args()
    results = []
    for program, chip in PART:
        if program in options.programs.split(",") and chip in options.chips.split(","):
            mesh = MESHES[options.mesh]
            results.append(compared(program, chip, mesh, budget_s=options.budget, candidates=options.candidates))
            print(results[-1], results[-1].verdict, flush=True)
    text = table(results)
    print(text)
    if options.write:
        write_part("written", text)


if __name__ == "__main__":
    main()
