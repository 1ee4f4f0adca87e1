"""The front of this room: from a program with final shardings to the description of the program of one device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from jaxlib.mlir import ir

from pyshardy.core.sharding import Meshes, TensorSharding
from pyshardy.costing.program import Program
from pyshardy.ir.cost_program import Interned
from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import make_string
from pyshardy.ir.trip_counts import TripCounts
from pyshardy.passes.partitioning.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.rules.traits import BY_ATTRIBUTE
from pyshardy.quick_cost.assemble import assemble
from pyshardy.quick_cost.excerpt import TARGET, Excerpt
from pyshardy.quick_cost.pieces import Passes
from pyshardy.quick_cost.skeleton import Entry, Skeleton
from pyshardy.quick_cost.versions import Version, Versions


class QuickProgram:
    """A program that can be priced under many shardings, without making the program of one device for any.

    Args:
        module: What the nodes come from.
        root: The program with final shardings, as nodes; nobody may change them as long as this is in use.
        applied: How shardings have propagated.
        options: How the program would be partitioned.
    """

    def __init__(
        self, module: Module, root: Op, applied: PropagateOptions, options: PartitionOptions = PartitionOptions()
    ) -> None:
        self.module = module
        (function,) = [one for one in functions(root) if not is_declaration(one)]
        self.skeleton = Skeleton(root, function)
        self.meshes: Meshes = module_meshes(root)
        self.interned = Interned()
        self.passes = Passes(module, applied, options)
        self.versions = Versions(self.skeleton, self.passes, self.meshes, self.interned)
        self.entries = list(self.skeleton.body.walk())

    @cached_property
    def trips(self) -> TripCounts:
        """How often loops run."""
        return TripCounts(self.skeleton.root)

    def cost_program(self, shardings: Sequence[TensorSharding | None] | None = None) -> Program:
        """The description of the program of one device.

        Args:
            shardings: The sharding of every value of the skeleton; as the nodes have it if there are none.
        """
        with self.module.context, pause_gc():
            shardings = self.skeleton.shardings() if shardings is None else shardings
            found = self.versions.find(self.entries, shardings)
            versions: dict[Entry, Version | None] = dict(zip(self.entries, found))
            keeping = {"call_target_name": make_string(TARGET), BY_ATTRIBUTE: ir.BoolAttr.get(True)}
            excerpt = Excerpt(self.skeleton, shardings, versions, keeping)
            root = excerpt.piece.root
            self.passes.make(root, self.passes.plan(root))
            return assemble(excerpt, versions, self.meshes, self.trips, self.interned, self.module.name)
