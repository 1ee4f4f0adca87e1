"""Small modules of a few ops of a program, each with one function, on which the partitioner's passes run.

The modules are nodes, like those of a whole program; no MLIR is created.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attributes import NO_ATTRS, Attributes
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.functions import SHARDING, signature
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Block, Op, Value, ValueType
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import partition_ending
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.transforms.context import PassContext

_LAST_OF_PLANNING = "pyshardy-share-reshards"
"""After the first pass of this name all reshards exist, and none has become a collective."""


class Piece:
    """A module with one private function, whose arguments may be sharded unevenly.

    Args:
        like: The root of the module to take meshes and attributes from.
        first: The names of the meshes that come first.
    """

    def __init__(self, like: Op, first: Collection[str]) -> None:
        self.root = Op("builtin.module", attrs=like.attrs, region_count=1, location=like.place)
        top = self.root.region.add_block()
        meshes = [op for op in like.region.block if op.name == "sdy.mesh"]
        for op in sorted(meshes, key=lambda op: op.attrs["sym_name"] not in first):
            top.append(op.clone())
        attrs = {"sym_name": "main", "sym_visibility": "private"}
        self.function = Op("func.func", attrs=attrs, region_count=1, location=like.place)
        self.block = self.function.region.add_block()
        self.arg_attrs: list[Attributes] = []
        top.append(self.function)

    def argument(self, type: ValueType, sharding: TensorSharding | None, place: Any = None) -> Value:
        """A new argument, with the location of a value of the program."""
        self.arg_attrs.append(_border(sharding))
        return self.block.add_arg(type, place)

    def finish(self, results: Sequence[Value], shardings: Iterable[TensorSharding | None], place: Any = None) -> None:
        """Return values with these shardings, and set the function's type and attributes."""
        self.block.append(Op("func.return", results, location=place))
        self.function.set_attr("arg_attrs", tuple(self.arg_attrs))
        self.function.set_attr("res_attrs", tuple(map(_border, shardings)))
        self.function.set_attr("function_type", signature(self.function))


def _border(sharding: TensorSharding | None) -> Attributes:
    return NO_ATTRS if sharding is None else Attributes({SHARDING: sharding})


class Passes:
    """The passes that `partition` runs, in two parts.

    Args:
        module: The module that the nodes come from.
        applied: The options of propagation.
        options: The options of partitioning.
    """

    def __init__(self, module: Module, applied: PropagateOptions, options: PartitionOptions) -> None:
        self.module = module
        passes = partition_ending(applied, options)
        cut = next(index for index, one in enumerate(passes) if one.name == _LAST_OF_PLANNING) + 1
        self.planning: list[Pass] = passes[:cut]
        self.making: list[Pass] = passes[cut:]

    def plan(self, root: Op) -> PassContext:
        """Insert the reshards, and whatever else an op needs to run on shards."""
        return run_on_root(self.module, root, self.planning, Diagnostics())

    def make(self, root: Op, context: PassContext) -> None:
        """Turn reshards into collectives, and all ops into per-device ops."""
        run_on_root(self.module, root, self.making, context=context)


def ops_behind(values: Iterable[Value], block: Block) -> list[Op]:
    """The ops of a block that some values depend on, directly or not, in program order."""
    found: set[Op] = set()
    pending = list(values)
    while pending:
        op = pending.pop().defining_op
        while op is not None and op.block is not block:
            op = op.parent_op
        if op is None or op in found:
            continue
        found.add(op)
        pending += op.operands
        for region in op.regions:
            for inner in region.blocks:
                for one in inner:
                    pending += one.operands
    if not found:
        return []
    if len(found) == 1:
        return [*found]
    first = next(iter(found))
    first.is_before(first)  # numbers the ops of the block
    return sorted(found, key=lambda op: op.order)


def with_shardings(op: Op, shardings: Sequence[TensorSharding | None]) -> Op:
    """Give the results of an op these shardings, and return it; an op without results keeps its own."""
    if not op.results:
        return op
    if any(one is not None for one in shardings):
        op.set_attr(SHARDING, tuple(shardings))
    else:
        op.remove_attr(SHARDING)
    return op
