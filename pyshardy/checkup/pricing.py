"""The price of a program with a cure: of many equal layers a few are priced."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from time import perf_counter
from typing import NamedTuple

from pyshardy.api.cost import cost
from pyshardy.api.propagate import propagate
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.pricing_workers import Change, PricingWorkers
from pyshardy.checkup.program.annotating import OtherInputs
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.cost_kinds import SharedKinds
from pyshardy.ir.module import Module
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.program_keys import ProgramKeys
from pyshardy.ir.shardings import module_meshes
from pyshardy.report.diagnosis import Figures
from pyshardy.results.sharded_program import Imported
from pyshardy.rules.user_rules import USER_RULES
from pyshardy.searching.planning.candidates import LayeredCandidates
from pyshardy.searching.program.layers import LayerFamily
from pyshardy.searching.program.search_program import short_program
from pyshardy.searching.program.shorten import Short

_LEAST_SECONDS = 0.2
"""The time of a price from which on it pays to start other processes."""


class _Few(NamedTuple):
    """A program with a few of its layers.

    Attributes:
        module: It.
        inputs: The numbers of its inputs in the whole program.
        outputs: The same for its outputs.
        families: The layers of the whole program.
    """

    module: Module
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    families: tuple[LayerFamily, ...]

    @classmethod
    def of(cls, module: Module) -> _Few:
        """A program with a few of the layers of another."""
        with module.context, pause_gc():
            (root, inputs, outputs), families = short_program(module.root)
        return cls(module.with_root(root), inputs, outputs, families)

    def with_inputs(self, change: OtherInputs) -> _Few:
        """It with other shardings of inputs, as far as it has them."""
        places = {number: place for place, number in enumerate(self.inputs)}
        return self._replace(module=change.at(places)(self.module))


class Pricer:
    """Prices programs, and counts them.

    Args:
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.

    Attributes:
        tries: The number of programs so far.
    """

    def __init__(self, topology: Topology, model: CollectiveModel) -> None:
        self.topology, self.model = topology, model
        self.tries = 0
        self._seconds = 0.0
        """How long the last price took."""
        self._workers = PricingWorkers((topology, model))
        self._few = lru_cache(maxsize=1)(_Few.of)
        self._keys, self._kinds = ProgramKeys(), SharedKinds()
        self._known: dict[Hashable, Figures] = {}
        """The estimates of programs by what propagation makes of them; many constraints lead to the same."""

    @property
    def limit(self) -> float:
        """The bytes of memory of a device."""
        return self.topology.hardware.memory_bytes

    def ops(self, module: Module) -> int:
        """The number of ops that are partitioned for a price."""
        return sum(1 for _ in ops_in(self._few(module).module.root))

    def price(self, module: Module, change: Change | None = None) -> Figures | None:
        """The estimate of a program, with a change; None if it cannot be partitioned, or the change does not fit it."""
        self.tries += 1
        start = perf_counter()
        try:
            return self._layered(module, change)
        except UsageError:  # several meshes, or sharding groups
            return self._whole(module, change)
        except ShardyError:
            return None
        finally:
            self._seconds = perf_counter() - start

    def prices(self, module: Module, cures: Iterable[Cure]) -> Iterator[tuple[Cure, Figures | None]]:
        """The cures in order, each with the estimate of a program with it; other processes help with a large program.

        Args:
            module: The program.
            cures: The cures.
        """
        if self._seconds < _LEAST_SECONDS or USER_RULES:
            yield from ((cure, self.price(module, cure.apply)) for cure in cures)
            return
        tries, given = self.tries, list[Cure]()

        def changes() -> Iterator[Change]:
            for cure in cures:
                given.append(cure)
                yield cure.apply

        found = self._workers.prices(module, changes(), partial(self.price, module))
        self.tries = tries + len(given)
        yield from zip(given, found)

    def close(self) -> None:
        """End the processes."""
        self._workers.close()

    def input_shardings(self, module: Module, change: OtherInputs) -> Mapping[int, TensorSharding | None]:
        """The shardings of the inputs after propagation, by their numbers; of many equal layers those of a few.

        Args:
            module: The program.
            change: The shardings that some inputs have before.
        """
        try:
            few = self._few(module).with_inputs(change)
            _, candidate = self._propagated(few)
        except UsageError:  # several meshes, or sharding groups
            return {one.index: one.sharding for one in propagate(change(module), compiler="none").inputs}
        return {few.inputs[one.index]: one.sharding for one in input_tensors(candidate.root)}

    def _propagated(self, few: _Few) -> tuple[LayeredCandidates, Imported]:
        module = few.module
        mesh = next(name for name, one in module_meshes(module.root).items() if one.axes)
        short = Short(module.root, few.inputs, few.outputs), few.families
        with pause_gc():
            layered = LayeredCandidates(
                module, mesh, self.topology, self.model, is_open=True, short_one=short, kinds=self._kinds
            )
            return layered, layered.propagated({}, {})

    def _layered(self, module: Module, change: Change | None) -> Figures:
        if change is None:
            few = self._few(module)
        elif isinstance(change, OtherInputs):
            few = self._few(module).with_inputs(change)
        else:
            few = _Few.of(change(module))
        layered, candidate = self._propagated(few)
        key = tuple(layered.runs), self._keys.key(candidate.root)
        known = self._known.get(key)
        if known is None:
            found = layered.price_of(candidate)
            known = self._known[key] = Figures(found.seconds, round(found.bytes))
        return known

    def _whole(self, module: Module, change: Change | None) -> Figures | None:
        try:
            found = cost(module if change is None else change(module), self.topology.hardware, collectives=self.model)
        except ShardyError:
            return None
        return Figures(found.step_seconds, found.peak_bytes)
