"""Prices the candidates of a search: one program under other shardings of its inputs and outputs.

The program is imported once. For each candidate the passes propagate and partition a copy, and the program of one
device is priced as `pyshardy.cost` does. A program with many equal layers gets a short version with three layers of
every kind. The passes run on that. Then the kernels of the middle layer are repeated, for all layers that it stands
for. So further layers take little time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.counting import count_collectives
from pyshardy.costing.further_layers import MIDDLE, OUTSIDE, Layer
from pyshardy.costing.least import least_seconds
from pyshardy.costing.program import CostOp, CostProgram
from pyshardy.costing.step_cost import StepCost, step_cost
from pyshardy.costing.topology import Topology
from pyshardy.errors import UsageError
from pyshardy.ir.attributes import NO_ATTRS
from pyshardy.ir.cost_kinds import SharedKinds
from pyshardy.ir.cost_program import CostReader, NodePlace, cost_program
from pyshardy.ir.functions import SHARDING, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.flow import partition_ending
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.cost import view_for
from pyshardy.results.partitioning import partition_in_place
from pyshardy.results.sharded_program import Imported, import_program, propagate_in_place
from pyshardy.searching.program.search_program import ShortProgram, short_program
from pyshardy.searching.program.shorten import BETWEEN, layer_runs, part_of

CollectiveCounts = Mapping[tuple[str, str], tuple[int, int]]
"""How many collectives of a kind over some axes a step runs, and the bytes that every device sends for them."""
ShardingsByPosition = Mapping[int, TensorSharding]
"""The shardings of arguments or results, by position."""
_DOING = "pricing candidates"


class LayeredCandidates:
    """Prices candidates of one program.

    Args:
        module: The program, as `load` returns it.
        mesh: The name of its mesh.
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.
        is_open: Whether propagation may shard arguments that have no sharding; else they stay whole.
        short_one: The short program, which changes; by default, it is made.
        kinds: What the costs of ops depend on, shared by programs of one context.

    Attributes:
        runs: What the short program leaves out.
        is_whole: Whether no layer is left out. Prices of a short program equal those of `pyshardy.cost` as well, if all
            layers of the whole program are partitioned alike.

    Raises:
        UsageError: The program has no mesh, several meshes, or sharding groups, whose members share annotations before
            propagation.

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
        self,
        module: Module,
        mesh: str,
        topology: Topology,
        model: CollectiveModel = CollectiveModel.FORMULA,
        is_open: bool = False,
        short_one: ShortProgram | None = None,
        kinds: SharedKinds | None = None,
    ) -> None:
        self.topology, self.model = topology, model
        self.meshes = {name: one for name, one in module_meshes(module.root).items() if one.axes}
        if len(set(self.meshes.values())) != 1:
            raise UsageError(_DOING, got="a program with no mesh or several", needed="one mesh")
        if ops_named(module.root, ("sdy.sharding_group",)):
            raise UsageError(_DOING, got="a program with sharding groups", needed="one without")
        with module.context, pause_gc():
            short, families = short_one or short_program(module.root)
            if not is_open:
                _share_nothing(short.root, mesh)
        self.is_whole = not families
        self._short, self.runs = short.root, layer_runs(families)
        self._places = {
            kind: {place: at for at, place in enumerate(places)}
            for kind, places in (("arg_attrs", short.inputs), ("res_attrs", short.outputs))
        }
        view = view_for(topology.hardware)
        self._imported = import_program(module.with_root(short.root), PropagateOptions(view=view))
        self._ending = partition_ending(self._imported.applied, PartitionOptions())
        self._kinds = kinds or SharedKinds()

    def price(self, inputs: ShardingsByPosition, outputs: ShardingsByPosition) -> StepCost:
        """Time and memory with these shardings of arguments and results.

        Raises:
            ShardyError: The shardings do not fit, or the program cannot be partitioned.
        """
        with pause_gc():
            return self.price_of(self.propagated(inputs, outputs))

    def price_of(self, candidate: Imported) -> StepCost:
        """Time and memory of a program that `propagated` gave; it changes.

        Raises:
            ShardyError: The program cannot be partitioned.
        """
        with pause_gc():
            return step_cost(self._partitioned(candidate), self.topology, self.model, layer_of=self._layer_of)

    def price_with_collectives(
        self, inputs: ShardingsByPosition, outputs: ShardingsByPosition
    ) -> tuple[StepCost, CollectiveCounts]:
        """Time and memory with these shardings, and the collectives by kind and axes, such as "data+model".

        Raises:
            ShardyError: The shardings do not fit, or the program cannot be partitioned.
        """
        with pause_gc():
            program = self._program(inputs, outputs)
            return step_cost(program, self.topology, self.model, layer_of=self._layer_of), self._collectives(program)

    def _collectives(self, program: CostProgram) -> CollectiveCounts:
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for one in count_collectives(program):
            traffic = one.op.traffic
            if traffic is not None and traffic.group_size > 1:
                times = one.times * self._times(one.op)
                axes = "+".join(name.strip('"') for name, _ in traffic.axes) if traffic.axes else "several groups"
                count, bytes = found.get((traffic.kind, axes), (0, 0))
                found[traffic.kind, axes] = count + times, bytes + times * traffic.sent_bytes
        return found

    def propagated(self, inputs: ShardingsByPosition, outputs: ShardingsByPosition) -> Imported:
        """The short program with these shardings and what they lead to.

        Raises:
            ShardyError: The shardings do not fit.
        """
        given = [
            (kind, self._places[kind][place], sharding)
            for kind, shardings in (("arg_attrs", inputs), ("res_attrs", outputs))
            for place, sharding in shardings.items()
            if place in self._places[kind]
        ]
        candidate = self._imported.annotated(given)
        propagate_in_place(candidate)
        return candidate

    def _program(self, inputs: ShardingsByPosition, outputs: ShardingsByPosition) -> CostProgram:
        """The program of one device, with as few layers as the short version."""
        return self._partitioned(self.propagated(inputs, outputs))

    def _partitioned(self, candidate: Imported) -> CostProgram:
        module, root = candidate.module, candidate.root
        partition_in_place(module, root, self.meshes, self._ending)
        return CostReader(root, self.meshes, module.name, self._kinds).program()

    def least_seconds(self) -> float:
        """The seconds that no shardings of the program can be faster than: see `pyshardy.costing.least`."""
        with pause_gc():
            program = cost_program(self._short, module_meshes(self._short))

        return least_seconds(program, self.topology.hardware, self.topology.devices, self._times)

    def _times(self, op: CostOp) -> int:
        """The layers for which the layer of an op stands."""
        layer = self._layer_of(op)
        return 1 if layer is None else layer.times

    def _layer_of(self, op: CostOp) -> Layer | None:
        if self.is_whole:
            return OUTSIDE
        part = part_of(op.place.node) if isinstance(op.place, NodePlace) else None
        if part is None:
            return None
        if part.kind == BETWEEN:
            return OUTSIDE
        run = self.runs[part.stretch]
        times = run.size - 2 if part.kind == MIDDLE else 1
        return Layer(run.family, part.stretch, run.sign, part.kind, part.offset, times)


def _share_nothing(root: Op, mesh: str) -> None:
    """Give arguments without a sharding one without axes, so import treats them as it treats sharded ones."""
    main = main_function(root)
    args = main.region.blocks[0].args
    entries: list[Any] = list(main.attrs.get("arg_attrs") or (NO_ATTRS,) * len(args))
    for place, arg in enumerate(args):
        if arg.type.shape is not None and SHARDING not in entries[place]:
            entries[place] = entries[place].with_value(SHARDING, TensorSharding.fully_replicated(mesh, arg.type.rank))
    main.set_attr("arg_attrs", tuple(entries))
