"""The entry point of this package: from a program with final shardings to the cost program of one device."""

from __future__ import annotations

from functools import cached_property

from jaxlib.mlir import ir

from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.costing.program import Program
from pyshardy.errors import UsageError
from pyshardy.ir.cost_program import SharedKinds
from pyshardy.ir.functions import functions, is_declaration, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import make_string
from pyshardy.ir.trip_counts import TripCounts
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.quick_cost.assemble import assemble
from pyshardy.quick_cost.excerpt import TARGET, Excerpt
from pyshardy.quick_cost.isolation import isolated
from pyshardy.quick_cost.pieces import Passes
from pyshardy.quick_cost.skeleton import Skeleton
from pyshardy.quick_cost.spread import Spread
from pyshardy.quick_cost.versions import Shardings, Versions
from pyshardy.results.sharded_program import ShardedProgram
from pyshardy.rules.traits import BY_ATTRIBUTE
from pyshardy.transforms.reshards.survey import distinct_shardings


class QuickProgram:
    """A program that can be priced under many shardings without building the per-device program.

    It keeps what an op becomes under some shardings, and reuses it for all equal ops and all later shardings.

    Args:
        sharded: The program with final shardings: the attribute `sharded` of the result of `propagate`.
        options: The options of partitioning.

    Raises:
        UsageError: The program can only be partitioned as a whole; `why_not` says why.

    >>> from pyshardy import propagate
    >>> from pyshardy.costing.counting import count_collectives
    >>> found = propagate('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }''')
    >>> program = QuickProgram(found.sharded).cost_program()
    >>> [(one.op.kind.name, one.times, one.sent_bytes) for one in count_collectives(program)]
    [('stablehlo.all_reduce', 1, 16)]
    """

    def __init__(self, sharded: ShardedProgram, options: PartitionOptions = PartitionOptions()) -> None:
        reason = why_not(sharded)
        if reason is not None:
            raise UsageError(
                "estimating cost from shardings alone", got=reason, needed="a program that is partitioned op by op"
            )
        self._prepare(sharded.before, sharded.root, sharded.applied, options)

    def _prepare(self, module: Module, root: Op, applied: PropagateOptions, options: PartitionOptions) -> None:
        """Read a program."""
        self.module, self.meshes = module, _meshes_in_use(root)
        with module.context, pause_gc():
            self.skeleton = Skeleton(root, main_function(root))
        self.interned = SharedKinds()
        self.passes = Passes(module, applied, options)
        self.versions = Versions(self.skeleton, self.passes, self.meshes, self.interned)
        self.entries = list(self.skeleton.body.walk())
        self.spread = Spread(self.entries, self.meshes, self.interned.specs)

    @cached_property
    def trips(self) -> TripCounts:
        """The numbers of rounds of loops."""
        return TripCounts(self.skeleton.root)

    def cost_program(
        self,
        shardings: Shardings | None = None,
        results: Shardings | None = None,
        skeleton: Skeleton | None = None,
    ) -> Program:
        """The description of the program of one device, for `pyshardy.costing.estimate.estimate`.

        Args:
            shardings: The sharding of every value of `skeleton`; as the nodes have it if there are none.
            results: How the function gives its results; as the nodes say if there are none.
            skeleton: The program, if ops are merged under these shardings.

        Raises:
            PassError: The program cannot be partitioned under these shardings; the error names the op.
        """
        with self.module.context, pause_gc():
            shardings = self.skeleton.shardings() if shardings is None else shardings
            shardings = self.spread.apply(shardings)
            results = self.skeleton.results() if results is None else results
            entries = self.entries if skeleton is None else list(skeleton.body.walk())
            skeleton = skeleton or self.skeleton
            found = self.versions.find(entries, shardings)
            versions = isolated(skeleton, dict(zip(entries, found)), shardings, results)
            keeping = {"call_target_name": make_string(TARGET), BY_ATTRIBUTE: ir.BoolAttr.get(True)}
            excerpt = Excerpt(skeleton, shardings, results, versions, keeping, self.meshes)
            root = excerpt.piece.root
            self.passes.make(root, self.passes.plan(root))
            return assemble(excerpt, versions, self.meshes, self.trips, self.interned, self.module.name)


def why_not(sharded: ShardedProgram) -> str | None:
    """The reason why a program can only be partitioned as a whole; None if it can be priced op by op."""
    found = list(functions(sharded.root))
    if len(found) != 1 or is_declaration(found[0]):
        return "a program of several functions"
    if sum(bool(mesh.axes) for mesh in _meshes_in_use(sharded.root).values()) > 1:
        return "a program with several meshes"
    if getattr(sharded.before.origin, "partitioners", None):
        return "a program with the user's own partitioners"
    if sharded.completes_sums:
        return "a program with collectives that complete sums"
    if any(sharding.unreduced for sharding in distinct_shardings(found[0])):
        return "a program with unreduced shardings"
    return None


def _meshes_in_use(root: Op) -> Meshes:
    """The meshes in use by shardings; all meshes if no sharding is on a mesh with axes."""
    meshes = module_meshes(root)
    used = {sharding.mesh for function in functions(root) for sharding in distinct_shardings(function)}
    found = {name: mesh for name, mesh in meshes.items() if name in used}
    return found if any(mesh.axes for mesh in found.values()) else meshes
