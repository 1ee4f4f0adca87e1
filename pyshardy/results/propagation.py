"""`Propagation`: a program with a sharding for every tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyshardy.core.intern import as_integer
from pyshardy.errors import UsageError
from pyshardy.frontend.result_shardings import ResultShardings
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics, Severity
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.passes.flow import propagation_ending
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.table import pass_of
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.recorder import Steps
from pyshardy.propagation.trace import Step
from pyshardy.propagation.user_priorities import up_to
from pyshardy.report.summary import Summary
from pyshardy.report.tables import summary_tables
from pyshardy.results.completed_sums import forget_marks
from pyshardy.results.dumps import write_index
from pyshardy.results.sharded_program import ShardedProgram, shard
from pyshardy.results.stopwatch import Stopwatch
from pyshardy.results.summaries import summarize
from pyshardy.results.verbs import Result
from pyshardy.runtime.engine import Engine
from pyshardy.transforms.context import Traced

if TYPE_CHECKING:
    from pyshardy.explain.conflicts import Conflicts
    from pyshardy.explain.explanation import Explanation
    from pyshardy.explain.why import Why
    from pyshardy.report.origins import OriginNames
    from pyshardy.report.value_row import ValueRow
    from pyshardy.report.values import Values
    from pyshardy.results.partition import Partition
    from pyshardy.runtime.executable import Executable


@dataclass(frozen=True, eq=False, repr=False)
class Propagation(Result, ResultShardings):
    """A module with a sharding for every tensor.

    `module` has shardings on arguments, results and ops; `before` is the given module; `options` are the options of
    propagation. `inputs` and `outputs` have the shardings of the main function; `summary` is the content of `print` as
    plain data. `run` runs the program on the devices of its mesh, by default with XLA's own partitioner.

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

    has_run: bool = False

    @property
    def options(self) -> PropagateOptions:
        """The options of propagation."""
        return self.sharded.options

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step of propagation that placed an axis, if `options.trace` asked for it."""
        return tuple(step for propagated in self.sharded.propagated for step in propagated.steps)

    @property
    def last_run(self) -> Traced:
        """The run of propagation, on nodes that later passes changed; if `has_run`, these are those of `module`."""
        return self.sharded.runs[-1]

    @property
    def propagated(self) -> Propagation:
        """The same."""
        return self

    @cached_property
    def summary(self) -> Summary:
        """A summary of the propagated program's inputs, outputs and totals, as plain data."""
        return summarize(self)

    @cached_property
    def values(self) -> Values:
        """Every value: inputs, results of ops, outputs; by number, or by path, line, name scope, function or op.

        Each has its shape, sharding, spec and bytes per device, and the origin of its sharding.

        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> row = result.values["tanh"][0]
        >>> row.spec, row.local_shape, row.given_by, row.origins
        (PartitionSpec('x'), (4,), 'propagation', ('arg0',))
        """
        from pyshardy.results.values import values_of

        return values_of(self.summary_with_origins, self.with_run, self.with_run.last_run, self.origins)

    def explain(self, value: str | ValueRow, *, details: bool = False) -> Explanation:
        """Why a value is sharded as it is: the origin and path of each axis, and why the other dimensions stayed whole.

        Args:
            value: The path of an argument such as `params['w2']`, an output such as `result[0]`, `FILE:LINE`, a name
                scope, an op, or a variable such as `h` or "`h` of `layer`"; or a row of `values`.
            details: Whether sentences name rules, factors, strategies and priorities.

        Raises:
            UsageError: No value has that name; the error gives the nearest names.

        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> print(result.explain("tanh"))
        the result of `tanh` at the text:4, returned as `result`, shape [8]: [{"x"}] on mesh <["x"=2]>
          dimension 0 (size 8): "x", given to the input `arg0` on dimension 0, came in 1 step:
            1. through `tanh` at the text:4, from dimension 0 of `arg0` to dimension 0 of its result
        """
        from pyshardy.report.value_row import ValueRow
        from pyshardy.results.values import place_of_row, places_of_variable

        if isinstance(value, ValueRow):
            return self.why.explain(value.name, details, [place_of_row(value)])
        try:
            return self.why.explain(value, details)
        except UsageError:
            places = places_of_variable(self.before, value) if isinstance(value, str) else []
            if not places:
                raise
            return self.why.explain(value, details, places)

    def after_priority(self, priority: int) -> Propagation:
        """The program after the rounds up to a user priority; annotations of later priorities are ignored.

        Args:
            priority: The last priority that takes part, from 0.

        Raises:
            InvalidShardingError: The priority is no integer.

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
        last = as_integer(priority, "propagating up to a priority")
        root = self.before.copy_root()
        meshes = module_meshes(root)
        transform_shardings(root, lambda sharding: up_to(sharding, meshes, last))
        sharded, root = shard(self.before.with_root(root), replace(self.options, dump_directory=""))
        return finish_propagation(sharded, root, dumps=False)

    def conflicts(self) -> Conflicts:
        """Every place where two shardings met and one lost, ranked by the bytes of the reshard that follows."""
        from pyshardy.explain.conflicts import find_conflicts

        return find_conflicts(self.why)

    @cached_property
    def why(self) -> Why:
        """Explains the values of this result by their numbers."""
        from pyshardy.results.explained import make_why

        whole = self.with_run
        run = whole.last_run
        steps = Steps(run.program, run.recording(whole.sharded.applied).visits)
        run = run._replace(propagated=replace(run.propagated, steps=steps))
        positions = whole.sharded.annotations.positions
        return make_why(run, whole.inputs, whole.outputs, positions, whole.module)

    @cached_property
    def with_run(self) -> Propagation:
        """The same with its run of propagation, on the nodes of its module; propagated again if the run is gone."""
        if self.has_run:
            return self
        sharded, root = shard(self.before, replace(self.options, dump_directory=""))
        return finish_propagation(sharded, root, dumps=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings and notes for the user, with places."""
        return self.summary.warnings

    @property
    def default_engine(self) -> Engine:
        """XLA's own partitioner, which takes the propagated program."""
        return Engine.XLA

    @cached_property
    def bytes_on_all_devices(self) -> int:
        """The larger of two estimates: the peak of the whole program on one device, and all inputs and outputs."""
        from pyshardy.runtime.memory import peak_bytes_of_program

        tensors = [*self.inputs, *self.outputs]
        shards = sum(tensor_bytes(self.interface.local_shape(tensor), tensor.element) for tensor in tensors)
        return max(peak_bytes_of_program(self.module.root), self.device_count * shards)

    @cached_property
    def per_device(self) -> Partition:
        """The program of one device, as `partition` makes it."""
        from pyshardy.results.partition import finish_partition

        return finish_partition(self.sharded)

    def remade(self, sharded: ShardedProgram, root: Op) -> Propagation:
        """The propagated form of another program; its module is written on first use."""
        return finish_propagation(sharded, root, dumps=False)

    def make_executable(self, engine: Engine, devices: Sequence[Any] | None) -> Executable:
        """The propagated program, compiled by XLA with its own partitioner for these devices."""
        from pyshardy.runtime.execute import GlobalExecutable

        module = self.module
        if self.options.origins or self.options.edges:  # which XLA refuses where it drops shardings
            root = module.copy_root()
            run_on_root(module, root, [pass_of("sdy-remove-propagation-debug-info")])
            module = module.with_root(root)
        return GlobalExecutable(module, self.interface, devices)

    def tables(self) -> Any:
        """The tables of inputs, outputs and totals, for a `rich` console; they say where shardings come from."""
        return summary_tables(self.summary_with_origins)

    @cached_property
    def summary_with_origins(self) -> Summary:
        """The summary with the annotations that shardings come from."""
        arguments, results = self.with_run.last_run.places.borders()
        return self.summary.with_origins(
            [self.origins.of(arguments[tensor.index]) for tensor in self.inputs],
            [self.origins.of(results[tensor.index]) for tensor in self.outputs],
        )

    @cached_property
    def origins(self) -> OriginNames:
        """Names the annotations that the shardings of values come from, by the numbers of `why`."""
        from pyshardy.report.origins import OriginNames

        return OriginNames(self.why.subject)


def finish_propagation(sharded: ShardedProgram, root: Op | None = None, dumps: bool = True) -> Propagation:
    """The result of propagation from a program with final shardings.

    Args:
        sharded: The program.
        root: The nodes that propagation worked on, which may be changed; by default, a copy is made.
        dumps: Whether to write the module now, not on first use, and where the options say so, its dumps.
    """
    watch = Stopwatch(sharded.stages, sharded.passes)
    diagnostics = Diagnostics()
    before = sharded.before
    has_run = root is not None
    with pause_gc():
        with watch.stage("export"):
            root = sharded.copy_root() if root is None else root
            forget_marks(root)
            options = sharded.applied if dumps else replace(sharded.applied, dump_directory="")
            run_on_root(before, root, propagation_ending(options), diagnostics, watch.after_pass)
        module = before.with_root(root)
        if dumps:
            with watch.stage("write"):
                _ = module.mlir
    write_index(sharded.dumps)
    messages = (*sharded.diagnostics, *diagnostics.messages, *_faults(module, sharded))
    return Propagation(module, sharded, messages, watch.stages, watch.passes, has_run)


def _faults(module: Module, sharded: ShardedProgram) -> Iterator[Diagnostic]:
    """Warnings of values that are sharded otherwise than the compiler decided, which is a fault of pyshardy."""
    options = sharded.options
    if not options.compiler or options.alters_results:  # which the compiler does not know
        return
    from pyshardy.compilers.ask import ask
    from pyshardy.results.compiled import check_with_compiler

    answer = ask(sharded.before, options.compiler)
    for found in check_with_compiler(module, answer).differences:
        where = f"{found.where} is {found.here} here, and {found.in_xla} as compiled by {answer}"
        yield Diagnostic(Severity.WARNING, f"a fault of pyshardy: {where}; please report it, with this program")
