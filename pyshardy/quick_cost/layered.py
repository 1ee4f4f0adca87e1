"""Prices of candidates for a program with many equal layers: from short versions of it, so that layers cost no time.

A version has two layers of every kind, another three. Time is a straight line through both, and so is the memory of
every part of the program: the first layer, the last one, what is between. Both lines are as good as layers are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.brief import Brief, brief_estimate
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.program import Op as CostOp
from pyshardy.costing.topology import Topology
from pyshardy.ir.attributes import NO_ATTRS
from pyshardy.ir.cost_program import NodePlace
from pyshardy.ir.functions import SHARDING, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.quick_cost.candidates import Candidates
from pyshardy.transforms.layers import find_families
from pyshardy.transforms.shorten import PART, Short, shorten

Border = Mapping[int, TensorSharding]
"""Shardings of arguments or results by position."""


class _Version(NamedTuple):
    """A short version of the program.

    Attributes:
        candidates: Prices it.
        inputs: By position of the argument in the whole program its number in this one.
        outputs: The same of results.
        rounds: How many layers of the program each layer stands for that this version has more than the first one.
    """

    candidates: Candidates
    inputs: dict[int, int]
    outputs: dict[int, int]
    rounds: int


class LayeredCandidates:
    """Prices candidates of one program.

    Args:
        module: The program, as `load` returns it.
        mesh: The name of its mesh.
        topology: The chip, and where the mesh lies.
        model: How collectives are priced.

    Attributes:
        is_exact: Whether no layers are left out, so that prices are those of the whole estimate.

    Raises:
        UsageError: A program that `Candidates` does not take.

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
            families = find_families(module.root)
            counts = sorted({family.count for family in families})
            self.is_exact = not counts
            chosen = [(0, ())] + [
                (count - 2, tuple([number for number, family in enumerate(families) if family.count == count]))
                for count in counts
            ]
            self.versions = [
                _version(module, shorten(module.root, families, three), mesh, rounds) for rounds, three in chosen
            ]

    def price(self, inputs: Border, outputs: Border) -> Brief:
        """Time and memory with arguments and results sharded so.

        Raises:
            ShardyError: They do not fit, or the program cannot be partitioned.
        """
        first, *others = [(self._estimate(version, inputs, outputs), version.rounds) for version in self.versions]
        base = first[0]
        seconds = base.seconds + sum(rounds * (longer.seconds - base.seconds) for longer, rounds in others)
        bytes_ = {
            part: held + sum(rounds * (longer.bytes.get(part, held) - held) for longer, rounds in others)
            for part, held in base.bytes.items()
        }
        return Brief(seconds, bytes_)

    def _estimate(self, version: _Version, inputs: Border, outputs: Border) -> Brief:
        given: dict[int, TensorSharding | None] = {}
        for numbers, shardings in ((version.inputs, inputs), (version.outputs, outputs)):
            given.update((numbers[place], one) for place, one in shardings.items() if place in numbers)
        candidates = version.candidates
        with pause_gc():
            program = candidates.price(candidates.propagated(given))
            return brief_estimate(program, self.topology, self.model, part_of=_part_of)


def _version(module: Module, short: Short, mesh: str, rounds: int) -> _Version:
    _share_nothing(short.root, mesh)
    candidates = Candidates(module.with_root(short.root))
    inputs, outputs = dict(zip(short.inputs, candidates.inputs)), dict(zip(short.outputs, candidates.outputs))
    return _Version(candidates, inputs, outputs, rounds)


def _share_nothing(root: Op, mesh: str) -> None:
    """Give arguments without a sharding one of no axes, so that import makes of each what it makes of a sharded one."""
    main = main_function(root)
    args = main.region.blocks[0].args
    entries: list[Any] = list(main.attrs.get("arg_attrs") or (NO_ATTRS,) * len(args))
    for place, arg in enumerate(args):
        if arg.type.shape is not None and SHARDING not in entries[place]:
            entries[place] = entries[place].with_value(SHARDING, TensorSharding.fully_replicated(mesh, arg.type.rank))
    main.set_attr("arg_attrs", tuple(entries))


def _part_of(op: CostOp) -> int | None:
    return op.place.node.attrs.get(PART) if isinstance(op.place, NodePlace) else None
