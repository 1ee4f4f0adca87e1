"""`Propagation`: a program with a sharding for every tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyshardy.frontend.result_shardings import ResultShardings
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.passes.flow import propagation_ending
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.trace import Step
from pyshardy.propagation.user_priorities import up_to
from pyshardy.report.summary import Summary
from pyshardy.report.tables import summary_tables
from pyshardy.results.completed_sums import forget_marks
from pyshardy.results.engines import Engine
from pyshardy.results.program_result import ProgramResult
from pyshardy.results.sharded_program import ShardedProgram, shard
from pyshardy.results.stopwatch import Stopwatch
from pyshardy.results.summaries import summarize
from pyshardy.transforms.context import Traced

if TYPE_CHECKING:
    from pyshardy.explain.conflicts import Conflicts
    from pyshardy.explain.explanation import Explanation
    from pyshardy.explain.why import Why
    from pyshardy.results.partition import Partition
    from pyshardy.runtime.executable import Executable


@dataclass(frozen=True, eq=False, repr=False)
class Propagation(ProgramResult, ResultShardings):
    """A module with a sharding for every tensor.

    `module` has shardings on arguments, results and ops; `before` is the module that was given, `options` say how it
    was propagated. `inputs` and `outputs` have the shardings at the border, `summary` is all that `print` shows as
    plain data. `run` runs it on the devices of its mesh, by default as XLA's own partitioner partitions it.

    >>> from pyshardy import propagate
    >>> result = propagate('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }''')
    >>> result
    <Propagation of function @main: 1 input, 1 output, 2 devices>
    >>> result.outputs[0].sharding
    TensorSharding(<@mesh, [{"x"}]>)
    """

    traced: Traced | None = None

    @property
    def options(self) -> PropagateOptions:
        """How it was propagated."""
        return self.sharded.options

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every axis placed on every value, if `options.trace` asked for it."""
        return tuple(step for propagated in self.sharded.propagated for step in propagated.steps)

    @property
    def propagated(self) -> Propagation:
        """The same."""
        return self

    @cached_property
    def summary(self) -> Summary:
        """What the propagated program looks like from outside, as plain data."""
        return summarize(self)

    def explain(self, value: str, *, details: bool = False) -> Explanation:
        """Why a value is sharded as it is: where each axis was given and how it came, why the rest stayed whole.

        Without `PropagateOptions.trace`, the first explanation propagates once more.

        Args:
            value: The path of an argument such as `params['w2']`, an output such as `result[0]`, `FILE:LINE`, a name
                scope, or an op.
            details: Whether sentences name rules, factors, strategies and priorities.

        Raises:
            UsageError: Nothing has that name; names the nearest ones.

        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> print(result.explain("tanh"))
        the result of `tanh` at the text:4, shape [8]: [{"x"}] on mesh <["x"=2]>
          dimension 0 (size 8): "x", given to the input `arg0` on dimension 0, came in 1 step:
            1. through `tanh` at the text:4, from dimension 0 of `arg0` to dimension 0 of its result
        """
        return self.why.explain(value, details)

    def after_priority(self, priority: int) -> Propagation:
        """The program as it is after the rounds up to a user priority: what is annotated for later ones is ignored.

        Args:
            priority: The last priority to take part, from 0.

        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2, "y"=2]>
        ... func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}p1]>})
        ...     -> tensor<8x8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8x8xf32>
        ...   return %0 : tensor<8x8xf32>
        ... }''')
        >>> result.after_priority(0).outputs[0].sharding
        TensorSharding(<@mesh, [{"x"}, {}]>)
        """
        root = self.before.copy_root()
        meshes = module_meshes(root)
        transform_shardings(root, lambda sharding: up_to(sharding, meshes, priority))
        return finish_propagation(*shard(self.before.with_root(root), self.options))

    def conflicts(self) -> Conflicts:
        """Every place where two shardings met and one lost, ranked by the bytes of the reshard that follows."""
        from pyshardy.explain.conflicts import find_conflicts

        return find_conflicts(self.why)

    @cached_property
    def why(self) -> Why:
        """Explains the values of this result by their numbers."""
        from pyshardy.frontend.explained import make_why

        if self.traced is None:
            return finish_propagation(*shard(self.before, replace(self.options, trace=True))).why
        return make_why(self.traced, self.inputs, self.outputs, self.before, self.module)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, with places."""
        return self.summary.warnings

    @property
    def default_engine(self) -> Engine:
        """XLA's own partitioner, which takes a propagated program as it is."""
        return Engine.XLA

    @cached_property
    def bytes_on_all_devices(self) -> int:
        """An estimate of the most that all devices hold at a time: as much as one would, or else all their inputs."""
        from pyshardy.runtime.memory import peak_bytes

        tensors = [*self.inputs, *self.outputs]
        shards = sum(tensor_bytes(self.interface.local_shape(tensor), tensor.element) for tensor in tensors)
        return max(peak_bytes(self.module.root), self.device_count * shards)

    def for_engine(self, engine: Engine) -> ProgramResult:
        """This program for XLA's partitioner, the program of one device for the other engines."""
        return self if engine is Engine.XLA else self._partitioned

    @cached_property
    def _partitioned(self) -> Partition:
        from pyshardy.results.partition import finish_partition

        return finish_partition(self.sharded)

    def make_executable(self, engine: Engine, devices: Sequence[Any] | None) -> Executable:
        """What XLA's partitioner makes of the program for these devices."""
        from pyshardy.runtime.execute import GlobalExecutable

        return GlobalExecutable(self.module, self.interface, devices)

    def tables(self) -> Any:
        """The tables of inputs, outputs and totals, for a `rich` console."""
        return summary_tables(self.summary)


def finish_propagation(sharded: ShardedProgram, root: Op | None = None) -> Propagation:
    """The result of propagation from a program with final shardings.

    Args:
        sharded: The program.
        root: The nodes that propagation worked on, which may be changed; without, a copy is made.
    """
    watch = Stopwatch(sharded.stages, sharded.passes)
    diagnostics = Diagnostics()
    before = sharded.before
    traced = sharded.traced[-1] if sharded.traced and root is not None else None
    with pause_gc():
        with watch.stage("export"):
            root = sharded.copy_root() if root is None else root
            if sharded.completes_sums:
                forget_marks(root)
            run_on_root(before, root, propagation_ending(sharded.applied), diagnostics, watch.after_pass)
        module = before.with_root(root)
        with watch.stage("write"):
            _ = module.mlir
    messages = (*sharded.diagnostics, *diagnostics.messages)
    return Propagation(module, sharded, messages, watch.stages, watch.passes, traced)
