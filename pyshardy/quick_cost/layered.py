"""Prices candidates for a program with many equal layers on a short version of it, so further layers take no time.

The short version has three layers of every kind; the middle one stands for all in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.brief import NOWHERE, Brief, Part, brief_estimate
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.least import least_seconds
from pyshardy.costing.program import Op as CostOp
from pyshardy.costing.topology import Topology
from pyshardy.ir.attributes import NO_ATTRS, PART
from pyshardy.ir.cost_program import NodePlace, cost_program
from pyshardy.ir.functions import SHARDING, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes
from pyshardy.quick_cost.candidates import Candidates
from pyshardy.transforms.search_program import short_program
from pyshardy.transforms.shorten import BETWEEN, MIDDLE, stretch_counts

ShardingsByPosition = Mapping[int, TensorSharding]
"""The shardings of arguments or results, by position."""


class LayeredCandidates:
    """Prices candidates of one program.

    Args:
        module: The program, as `load` returns it.
        mesh: The name of its mesh.
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.

    Attributes:
        is_exact: Whether no layer is left out, so prices equal those of the full estimate.

    Raises:
        UsageError: `Candidates` does not take the program.

    >>> from pyshardy import load
    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.costing.chips import find_hardware
    >>> from pyshardy.costing.topology import make_topology
    >>> module = load('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8192x4096xf32>, %b: tensor<4096x8192xf32>) -> tensor<8192x8192xf32> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
    ...   return %0 : tensor<8192x8192xf32>
    ... }''')
    >>> prices = LayeredCandidates(module, "mesh", make_topology(find_hardware("h100"), (("x", 2),)))
    >>> rows, contracted = (parse_sharding(f"<@mesh, {text}>") for text in ('[{"x"}, {}]', '[{}, {"x"}]'))
    >>> prices.price({0: rows}, {}).seconds < prices.price({0: contracted}, {}).seconds
    True
    """

    def __init__(
        self, module: Module, mesh: str, topology: Topology, model: CollectiveModel = CollectiveModel.FORMULA
    ) -> None:
        self.topology, self.model = topology, model
        with pause_gc():
            short, families = short_program(module.root)
            self.is_exact = not families
            self._counts = stretch_counts(families)
            _share_nothing(short.root, mesh)
            self._short = short.root
            self.candidates = Candidates(module.with_root(short.root))
        self._inputs = dict(zip(short.inputs, self.candidates.inputs))
        self._outputs = dict(zip(short.outputs, self.candidates.outputs))

    def price(self, inputs: ShardingsByPosition, outputs: ShardingsByPosition) -> Brief:
        """Time and memory with these shardings of arguments and results.

        Raises:
            ShardyError: The shardings do not fit, or the program cannot be partitioned.
        """
        given: dict[int, TensorSharding | None] = {}
        for numbers, shardings in ((self._inputs, inputs), (self._outputs, outputs)):
            given.update((numbers[place], one) for place, one in shardings.items() if place in numbers)
        with pause_gc():
            program = self.candidates.price(self.candidates.propagated(given))
            return brief_estimate(program, self.topology, self.model, part_of=self._part_of)

    def least_seconds(self) -> float:
        """The seconds that no shardings of the program can be faster than: see `pyshardy.costing.least`."""
        with pause_gc():
            program = cost_program(self._short, module_meshes(self._short))

        def count(op: CostOp) -> int:
            part = self._part_of(op)
            return 1 if part is None else 1 + part.more

        return least_seconds(program, self.topology.hardware, self.topology.devices, count)

    def _part_of(self, op: CostOp) -> Part | None:
        found = op.place.node.attrs.get(PART) if isinstance(op.place, NodePlace) else None
        if found is None:
            return None
        stretch, kind, offset = found
        if kind == BETWEEN:
            return NOWHERE
        return Part(offset, self._counts[stretch] - 3 if kind == MIDDLE else 0)


def _share_nothing(root: Op, mesh: str) -> None:
    """Give arguments without a sharding one without axes, so import treats them as it treats sharded ones."""
    main = main_function(root)
    args = main.region.blocks[0].args
    entries: list[Any] = list(main.attrs.get("arg_attrs") or (NO_ATTRS,) * len(args))
    for place, arg in enumerate(args):
        if arg.type.shape is not None and SHARDING not in entries[place]:
            entries[place] = entries[place].with_value(SHARDING, TensorSharding.fully_replicated(mesh, arg.type.rank))
    main.set_attr("arg_attrs", tuple(entries))
