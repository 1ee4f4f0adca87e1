"""The cost of a program under many shardings of its inputs, by `pyshardy.cost`; all searches minimize it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import inf, prod
from random import Random
from re import sub
from typing import NamedTuple

from search.compare import given_back, with_specs

import pyshardy
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.searching.planning.candidates import LayeredCandidates

Spec = tuple[tuple[str, ...], ...]
"""The mesh axes of each dimension of an input, major to minor."""
Choice = tuple[Spec, ...]
"""The spec of each group of inputs."""


class Best(NamedTuple):
    """The result of a search.

    Attributes:
        seconds: Of one step; infinite if nothing fits.
        choice: The shardings.
        at: With which evaluation it was found, counted from 1.
        count: How many there were.
    """

    seconds: float
    choice: Choice | None
    at: int
    count: int


class Evaluator:
    """Costs of one program on one mesh.

    Args:
        module: The program, without shardings on its inputs.
        mesh: Names and sizes of the mesh axes.
        chip: The name of the chip.
        model: How collectives are priced.
        memory: Bytes that a device may use; by default what the chip has.

    Attributes:
        groups: The names of inputs that are sharded alike: those that differ by the number of a layer alone.
        shapes: The shape of the inputs of each group.
        ties: By the name of an output the input whose place it takes.
    """

    def __init__(
        self, module: pyshardy.Module, mesh: dict[str, int], chip: str, model: str = "formula", memory: float = 0.0
    ) -> None:
        self.module, self.mesh, self.chip, self.model = module, mesh, chip, model
        hardware = find_hardware(chip)
        self.memory = memory or hardware.memory_bytes
        self.topology = make_topology(hardware, tuple(mesh.items()))
        inputs = input_tensors(module.root)
        self._places = {port.name: place for place, port in enumerate(inputs)}
        found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for port in inputs:
            name = port.name if port.name.startswith("data") else sub(r"\[\d+\]", "[*]", port.name)
            found.setdefault((name, port.shape), []).append(port.name)
        self.groups = tuple(tuple(names) for names in found.values())
        self.shapes = tuple(shape for _, shape in found)
        self.ties = given_back(module)
        outputs = enumerate(output_tensors(module.root))
        self._outputs = {place: self.ties[port.name] for place, port in outputs if port.name in self.ties}
        whole = with_specs(module, self.specs(tuple(((),) * len(shape) for shape in self.shapes)))
        self._prices = LayeredCandidates(whole, "mesh", self.topology, CollectiveModel(model))

    def specs(self, choice: Choice) -> dict[str, Spec]:
        """The shardings by the names of inputs."""
        return {name: spec for names, spec in zip(self.groups, choice) for name in names}

    def seconds(self, choice: Choice) -> float:
        """The time of one step; infinite if it does not fit into memory."""
        if not self._prices.is_whole:
            return self.from_scratch(self.specs(choice))
        specs = {
            name: TensorSharding("mesh", [list(axes) for axes in spec]) for name, spec in self.specs(choice).items()
        }
        inputs = {self._places[name]: spec for name, spec in specs.items()}
        found = self._prices.price(inputs, {place: specs[name] for place, name in self._outputs.items()})
        return found.seconds if found.bytes <= self.memory else inf

    def from_scratch(self, specs: dict[str, Spec]) -> float:
        """The time of one step with shardings by the names of inputs, of the program of one device."""
        cost = pyshardy.cost(with_specs(self.module, specs), self.chip, collectives=self.model)
        return cost.step_seconds if cost.peak_bytes <= self.memory else inf

    def all_specs(self, shape: tuple[int, ...]) -> list[Spec]:
        """All shardings of an input: every axis on one dimension or none, in every order."""
        found = []
        for places in product(range(-1, len(shape)), repeat=len(self.mesh)):
            for order in permutations(zip(self.mesh, places)):
                spec = tuple(tuple(name for name, place in order if place == dim) for dim in range(len(shape)))
                if self.fits(shape, spec):
                    found.append(spec)
        return list(dict.fromkeys(found))

    def fits(self, shape: tuple[int, ...], spec: Spec) -> bool:
        """Whether shards are of equal size."""
        return all(size % prod(self.mesh[name] for name in axes) == 0 for size, axes in zip(shape, spec))


def best_of(evaluator: Evaluator, choices: Iterator[Choice], most: int) -> Best:
    """The best of the first of some choices, each evaluated."""
    best, count = Best(inf, None, 0, 0), 0
    for choice in choices:
        if count == most:
            break
        count += 1
        seconds = evaluator.seconds(choice)
        if seconds < best.seconds:
            best = Best(seconds, choice, count, 0)
    return best._replace(count=count)


def enumerated(evaluator: Evaluator) -> Iterator[Choice]:
    """All choices in order, the last group fastest."""
    return product(*map(evaluator.all_specs, evaluator.shapes))


def at_random(evaluator: Evaluator, seed: int = 0) -> Iterator[Choice]:
    """Choices at random, each once: every axis on a dimension or on none with equal chances, where it fits."""
    random, seen = Random(seed), set()
    failures = 0
    while failures < 1000:
        choice = tuple(_random_spec(evaluator, shape, random) for shape in evaluator.shapes)
        if choice in seen:
            failures += 1
            continue
        failures = 0
        seen.add(choice)
        yield choice


def _random_spec(evaluator: Evaluator, shape: tuple[int, ...], random: Random) -> Spec:
    spec: list[tuple[str, ...]] = [()] * len(shape)
    for name in random.sample(list(evaluator.mesh), len(evaluator.mesh)):
        dim = random.randrange(-1, len(shape))
        longer = [(*axes, name) if dim == place else axes for place, axes in enumerate(spec)]
        if evaluator.fits(shape, tuple(longer)):
            spec = longer
    return tuple(spec)
