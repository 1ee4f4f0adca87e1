"""Our search beside shardings written by people, program by program, mesh by mesh, chip by chip.

From `tests`; costs are estimates of `pyshardy.cost`, the same for both sides:

    python -m search.compare --write                   # a part of all there is: the table of docs/search.md
    python -m search.compare --all                     # every program, mesh, chip and model of collectives: an hour
    python -m search.compare --all --programs dense,unet --meshes 2x4,4x64 --chips h100 --collectives xla
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
from search.experts import Expert, experts_of
from search.models import PROGRAMS
from search.page import markdown, write_part

import pyshardy
from pyshardy.frontend.interface import input_tensors, output_tensors

MESHES: dict[str, dict[str, int]] = {
    "8": {"data": 8},
    "2x4": {"data": 2, "model": 4},
    "2x2x2": {"data": 2, "fsdp": 2, "model": 2},
    "16x16": {"data": 16, "model": 16},
    "4x64": {"data": 4, "model": 64},
}
CHIPS = ("v5e", "v5p", "h100")
MODELS = ("formula", "measured", "xla")
VERDICTS = ("win", "equal", "loss", "does not fit")
SAME, BETTER = 1.001, 1.01
"""A plan slower by more than a thousandth loses; a win must be faster by a hundredth."""


class Case(NamedTuple):
    """A case of the comparison: both sides find shardings for it.

    Attributes:
        program, mesh, chip: For which, by name.
        model: How collectives are priced.
    """

    program: str
    mesh: str
    chip: str
    model: str = "formula"


class Result(NamedTuple):
    """The result of one case.

    Attributes:
        case: For which.
        plan: The seconds of our plan.
        expert: The seconds of the best of the experts that fit.
        name: Which that is.
        fits: Whether our plan fits.
        candidates: How many candidates the search looked at.
        seconds: The processor time of the search.
    """

    case: Case
    plan: float
    expert: float
    name: str
    fits: bool
    candidates: int
    seconds: float

    @property
    def verdict(self) -> str:
        if not self.fits:
            return "does not fit"
        if self.plan > self.expert * SAME:
            return "loss"
        return "win" if self.plan * BETTER < self.expert else "equal"


def load(program: str, mesh: dict[str, int], **sizes: int) -> pyshardy.Module:
    step, arguments, donated = PROGRAMS[program](**sizes)
    return pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")


STATE = {"params": "result[0]", "mean": "result[1]", "square": "result[2]", "cache": "result[0]"}
"""The arguments that a step returns, and at which position."""


def given_back(module: pyshardy.Module) -> dict[str, str]:
    """The input that an output replaces in the next step, by name of the output."""
    inputs = {port.name for port in input_tensors(module.root)}
    found = {}
    for port in output_tensors(module.root):
        for head, place in STATE.items():
            name = head + port.name.removeprefix(place)
            if port.name.startswith(f"{place}[") and name in inputs:
                found[port.name] = name
    return found


def with_specs(module: pyshardy.Module, specs: dict[str, Any]) -> pyshardy.Module:
    """A module with shardings on its inputs, and on the outputs that replace them."""
    from pyshardy.frontend.annotate import annotate_ports

    ties = given_back(module)
    found = [("arg_attrs", port, partition_spec(specs[port.name])) for port in input_tensors(module.root)]
    outputs = [port for port in output_tensors(module.root) if port.name in ties]
    found += [("res_attrs", port, partition_spec(specs[ties[port.name]])) for port in outputs]
    return annotate_ports(module, found)


def partition_spec(axes: Any) -> pyshardy.PartitionSpec:
    """The mesh axes of every dimension as a spec."""
    return pyshardy.PartitionSpec(*[list(entry) or None for entry in axes])


def experts_for(program: str, module: pyshardy.Module, mesh: dict[str, int]) -> list[Expert]:
    shapes = {port.name: port.shape for port in input_tensors(module.root)}
    return list(experts_of(program, shapes, mesh))


def best_expert(
    program: str, module: pyshardy.Module, mesh: dict[str, int], chip: str, model: str
) -> tuple[float, str]:
    """The seconds and the name of the fastest of the experts that fit."""
    found = []
    for expert in experts_for(program, module, mesh):
        cost = pyshardy.cost(with_specs(module, expert.specs), chip, collectives=model)
        if cost.fits:
            found.append((cost.step_seconds, expert.name))
    return min(found, default=(float("inf"), "none fits"))


def compared(case: Case, **options: Any) -> Result:
    """The search beside the experts."""
    program, mesh = case.program, MESHES[case.mesh]
    module = load(program, mesh)
    with patch("time.monotonic", time.process_time):  # the budget is the same on a machine that is busy otherwise
        plan = pyshardy.search(module, hardware=case.chip, collectives=case.model, **options)
    cost = pyshardy.cost(plan.apply(module), case.chip, collectives=case.model)  # from scratch
    expert, name = best_expert(program, module, mesh, case.chip, case.model)
    return Result(case, cost.step_seconds, expert, name, cost.fits, plan.candidates, plan.summary.seconds)


def part() -> Iterator[Case]:
    """Every program on every mesh; every mesh with every pair of a chip and a model of collectives."""
    for row, program in enumerate(PROGRAMS):
        for column, mesh in enumerate(MESHES):
            yield Case(program, mesh, CHIPS[(row + column) % 3], MODELS[(row // 3 + column) % 3])


def every(programs: Iterable[str], meshes: Iterable[str], chips: Iterable[str], models: Iterable[str]) -> list[Case]:
    """All cases."""
    return [
        Case(program, mesh, chip, model)
        for program in programs
        for mesh in meshes
        for chip in chips
        for model in models
    ]


def table(results: list[Result]) -> str:
    """The results as a table of Markdown, with a line that counts them."""
    heads = [
        "program",
        "mesh",
        "chip",
        "collectives",
        "plan ms",
        "best of people's ms",
        "which",
        "ratio",
        "",
        "search s",
    ]
    rows = []
    for one in results:
        ratio = f"{one.plan / one.expert:.2f}" if one.expert < inf else ""
        expert = f"{one.expert * 1e3:.3f}" if one.expert < inf else ""
        case = [one.case.program, one.case.mesh.replace("x", "×"), one.case.chip, one.case.model]
        rows.append([*case, f"{one.plan * 1e3:.3f}", expert, one.name, ratio, one.verdict, f"{one.seconds:.0f}"])
    kinds = [f"{sum(one.verdict == kind for one in results)} {kind}" for kind in VERDICTS]
    return f"{markdown(heads, rows)}\n\nOf {len(results)}: {', '.join(kinds)}."


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/search.md")
    parser.add_argument("--all", action="store_true", help="all combinations, rather than a part of them")
    for name, known in (("programs", PROGRAMS), ("meshes", MESHES), ("chips", CHIPS), ("collectives", MODELS)):
        parser.add_argument(f"--{name}", default=",".join(known))
    parser.add_argument("--candidates", type=int, default=120)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of processor time for each")
    options = parser.parse_args()
    chosen = [value.split(",") for value in (options.programs, options.meshes, options.chips, options.collectives)]
    wanted = every(*chosen)
    results = []
    for case in wanted if options.all else [case for case in part() if case in wanted]:
        results.append(compared(case, budget_s=options.budget, candidates=options.candidates))
        print(results[-1], results[-1].verdict, flush=True)
    text = table(results)
    print(text)
    if options.write:
        write_part("compare", text)


if __name__ == "__main__":
    main()
