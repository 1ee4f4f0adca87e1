"""Our search beside shardings written by people, program by program, mesh by mesh, chip by chip.

    python -m search.compare --write    # from `tests`: writes the table of docs/search.md

Costs are estimates of `pyshardy.cost`, the same for both sides.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
from search.experts import Expert, experts_of
from search.models import PROGRAMS

import pyshardy
from pyshardy.frontend.interface import input_tensors, output_tensors

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
BEGIN, END = "<!-- written by python -m search.compare --write -->", "<!-- end -->"
MESHES = ({"data": 8}, {"data": 2, "model": 4}, {"data": 2, "fsdp": 2, "model": 2}, {"data": 16, "model": 16})
CHIPS = ("v5e", "v5p", "h100")
MODELS = ("formula", "measured", "xla")
SAME = 1.001
"""Costs that differ by less are equal."""


class Result(NamedTuple):
    """What came out for one program, mesh and chip.

    Attributes:
        program, mesh, chip: For which.
        plan: The seconds of our plan.
        expert: The seconds of the best of the experts that fit.
        name: Which that is.
        fits: Whether our plan fits.
        candidates: How many candidates the search looked at.
        seconds: How long it took.
    """

    program: str
    mesh: str
    chip: str
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
        return "equal" if self.plan * SAME >= self.expert else "win"


def load(program: str, mesh: dict[str, int], **sizes: int) -> pyshardy.Module:
    step, arguments, donated = PROGRAMS[program](**sizes)
    return pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")


def with_specs(module: pyshardy.Module, specs: dict[str, Any]) -> pyshardy.Module:
    """A module with an expert's shardings on its inputs, and on the outputs that take their place."""
    from pyshardy.frontend.annotate import annotate_ports

    inputs = {port.name: port for port in input_tensors(module.root)}
    found = [("arg_attrs", port, _spec(specs[name])) for name, port in inputs.items()]
    heads = list(dict.fromkeys(name.split("[")[0] for name in inputs))
    for port in output_tensors(module.root):
        for head in heads:
            for place in ("[0]", "[1]", "[2]"):
                name = head + port.name.removeprefix(f"result{place}")
                is_first = {"params": "[0]", "mean": "[1]", "square": "[2]", "cache": "[0]"}.get(head) == place
                if is_first and port.name.startswith(f"result{place}[") and name in inputs:
                    found.append(("res_attrs", port, _spec(specs[name])))
    return annotate_ports(module, found)


def _spec(axes: Any) -> pyshardy.PartitionSpec:
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


def compared(program: str, mesh: dict[str, int], chip: str, model: str = "formula", **options: Any) -> Result:
    """The search beside the experts."""
    module = load(program, mesh)
    plan = pyshardy.search(module, hardware=chip, collectives=model, **options)
    cost = pyshardy.cost(plan.apply(module), chip, collectives=model)  # from scratch
    expert, name = best_expert(program, module, mesh, chip, model)
    shape = "×".join(str(size) for size in mesh.values())
    seconds = plan.summary.seconds
    return Result(program, shape, chip, cost.step_seconds, expert, name, cost.fits, plan.candidates, seconds)


def table(results: list[Result]) -> str:
    """The results as a table of Markdown, with a line that counts them."""
    lines = [
        "| program | mesh | chip | plan ms | best expert ms | which | ratio | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        ratio = f"{one.plan / one.expert:.2f}" if one.expert < float("inf") else ""
        expert = f"{one.expert * 1e3:.3f}" if one.expert < float("inf") else ""
        lines.append(
            f"| {one.program} | {one.mesh} | {one.chip} | {one.plan * 1e3:.3f} | {expert} | {one.name} | {ratio} | "
            f"{one.verdict} |"
        )
    counts = [
        f"{sum(one.verdict == kind for one in results)} {kind}" for kind in ("win", "equal", "loss", "does not fit")
    ]
    return "\n".join([*lines, "", f"Of {len(results)}: {', '.join(counts)}."])


def all_results(meshes: Any = MESHES, chips: Any = CHIPS) -> Iterator[Result]:
    for program in PROGRAMS:
        for mesh in meshes:
            for chip in chips:
                yield compared(program, mesh, chip, budget_s=6, candidates=120)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--meshes", type=int, default=len(MESHES))
    arguments = parser.parse_args()
    results = []
    for one in all_results(MESHES[: arguments.meshes], arguments.chips.split(",")):
        print(one, one.verdict, flush=True)
        results.append(one)
    text = table(results)
    print(text)
    if arguments.write:
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}")


if __name__ == "__main__":
    main()
