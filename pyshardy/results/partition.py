"""`Partition`: the program of one device, with explicit collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyshardy.core.mesh import Mesh
from pyshardy.costing.traffic import Traffic
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.interface import Interface
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.traffic import collectives_of, traffic_by_compiler
from pyshardy.passes.exporting.remove_propagation_debug_info import has_debug_info
from pyshardy.passes.flow import partition_ending
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.excess import Excess, excesses
from pyshardy.report.partition_summary import PartitionSummary
from pyshardy.report.printing import DEFAULTS, TableOptions
from pyshardy.report.tables import partition_tables
from pyshardy.results.dumps import write_index
from pyshardy.results.partitioning import partition_in_place
from pyshardy.results.program_result import PerDevice
from pyshardy.results.propagation import Propagation, finish_propagation
from pyshardy.results.sharded_program import ShardedProgram, shard
from pyshardy.results.stopwatch import Stopwatch
from pyshardy.results.verbs import Result
from pyshardy.runtime.engine import Engine
from pyshardy.transforms.reshards.survey import distinct_shardings

if TYPE_CHECKING:
    from pathlib import Path

    from pyshardy.costing.hardware import Hardware
    from pyshardy.explain.collectives import CollectiveStory, ExplainedCollectives
    from pyshardy.explain.why import Why
    from pyshardy.report.values import Values
    from pyshardy.results.hints.remedies import Remedy
    from pyshardy.runtime.executable import Executable


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Result, PerDevice):
    """A per-device program, with local shapes and explicit collectives.

    `module` is the per-device module, `before` the given module. `inputs`, `outputs` and `meshes` are those of the
    whole program. `summary` is plain data, `traffic` lists every collective. `run` runs the program on all devices.

    Attributes:
        options: The options of partitioning.
        used_interface: The inputs and outputs, and the meshes that shardings are on.
        known_propagation: The result of propagation that it was made from, if there was one.

    >>> from pyshardy import partition
    >>> found = partition('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }''')
    >>> found
    <Partition of function @main: 1 input, 1 output, 2 devices>
    >>> [(row.kind, row.axes, row.sent_bytes_per_device) for row in found.traffic.collectives]
    [('all_reduce', ('"x"',), 16)]
    """

    options: PartitionOptions
    used_interface: Interface
    known_propagation: Propagation | None = None

    @property
    def interface(self) -> Interface:
        """The inputs and outputs of the whole program, and the meshes that shardings are on."""
        return self.used_interface

    @cached_property
    def propagated(self) -> Propagation:
        """The whole program with its shardings, as XLA's own partitioner takes it; it is not propagated again."""
        return self.known_propagation or finish_propagation(self.sharded, dumps=False)

    @cached_property
    def bytes_per_device(self) -> int:
        """An estimate of the peak memory of a device: inputs, outputs, and intermediate values."""
        from pyshardy.runtime.memory import peak_bytes_of_program

        return peak_bytes_of_program(self.module.root)

    @property
    def bytes_on_all_devices(self) -> int:
        """The same for all devices."""
        return self.device_count * self.bytes_per_device

    @cached_property
    def traffic(self) -> Traffic:
        """Every collective: its kind, axes and bytes, and the op and source line that require it."""
        if self.answer is not None:
            return traffic_by_compiler(self.module, self.meshes)
        return Traffic(tuple(collectives_of(self.module.root, dict(self.meshes), self.before.name)))

    @property
    def values(self) -> Values:
        """Every value of the whole program, with its shape and bytes on each device; see `Propagation.values`."""
        return self.propagated.values

    @property
    def why(self) -> Why:
        """Explains the values of the whole program; without a `Propagation`, the first call propagates again."""
        return self.propagated.why

    @cached_property
    def collectives(self) -> tuple[CollectiveStory, ...]:
        """Every collective with its reason in one sentence, largest traffic first; equal ones are merged."""
        return tuple(found.story for found in self.explained_collectives)

    @cached_property
    def explained_collectives(self) -> Sequence[ExplainedCollectives]:
        """The same, with the causes of each."""
        from pyshardy.explain.collectives import explain_collectives

        return explain_collectives(self.why, self.traffic.collectives, self.answer is not None)

    def hints(self, most: int = 3, hardware: Hardware | str | Path | None = None) -> tuple[CollectiveStory, ...]:
        """What makes the program send less, for the conflicts that send most: other annotations, or other code.

        Each way is tried: `hints` partitions the program with it, at most ten times per conflict besides the ways that
        are tried once for all. Annotations that propagate to the same shardings are tried once, and those that change
        no sharding are not tried. What constrains a value at its line is a patch of the source, too.

        Args:
            most: The number of conflicts to look for hints for.
            hardware: The chip whose memory hints state, as for `pyshardy.cost`; by default that of the compiler that
                was asked, or else none in particular.

        Raises:
            UsageError: The chip is unknown.
        """
        from pyshardy.costing.chips import find_hardware
        from pyshardy.results.hints.ways import hints

        chip = hardware or (self.answer.target.chip if self.answer is not None else None)
        return hints(self, most, find_hardware(chip) if chip else None)

    def remedies(self, most: int = 3) -> tuple[Remedy, ...]:
        """Constraints with which the compiler that partitioned the program does not replicate tensors.

        Each is tried: the compiler is asked again. Nothing is found for a program that no compiler partitioned.

        Args:
            most: The number of replicated tensors to find constraints for, the largest first.
        """
        if not self.replications:
            return ()
        from pyshardy.results.hints.remedies import remedies

        return remedies(self, most)

    def excesses(self) -> tuple[Excess, ...]:
        """The lines at which the compiler's program sends at least twice as much as pyshardy's own partitioner would.

        Nothing is found for a program that no compiler partitioned.

        Raises:
            ShardyError: pyshardy cannot partition the program.
        """
        if self.answer is None:
            return ()
        root = _partitioned_by_passes(self.sharded, self.options, None, None).module.root
        own = Traffic(tuple(collectives_of(root, dict(self.meshes), self.before.name)))
        return excesses(self.traffic, own)

    @cached_property
    def summary(self) -> PartitionSummary:
        """The traffic of the program and the time to make it, as plain data."""
        return PartitionSummary(
            title=self.title,
            device_count=self.device_count,
            meshes=tuple((name, mesh) for name, mesh in self.meshes.items() if mesh.axes),
            traffic=self.traffic,
            stages=self.stages,
            passes=self.passes,
            warnings=self.warnings,
            compiler="" if self.answer is None else str(self.answer),
            replications=self.replications,
        )

    @property
    def default_engine(self) -> Engine:
        """The per-device program on JAX's devices."""
        return Engine.LOCAL

    @property
    def per_device(self) -> Partition:
        """The same."""
        return self

    def remade(self, sharded: ShardedProgram, root: Op) -> Partition:
        """The program of one device of another program, with the same options."""
        return finish_partition(sharded, self.options, root)

    def make_executable(self, engine: Engine, devices: Sequence[Any] | None) -> Executable:
        """The per-device program for these devices, or for the interpreter.

        Raises:
            UsageError: A compiler for other devices made the program.
        """
        if self.answer is not None:
            hint = 'leave the compiler out, or engine="xla"'
            needed = "a program that pyshardy partitioned"
            got = f"the program of {self.answer}"
            raise UsageError(f"running {self.title}", got=got, needed=needed, hint=hint)
        if engine is Engine.INTERPRETER:
            from pyshardy.runtime.interpreter import InterpreterExecutable

            return InterpreterExecutable(self.module, self.interface)
        from pyshardy.runtime.local import LocalExecutable

        return LocalExecutable(self.module, self.interface, devices)

    def tables(self, options: TableOptions = DEFAULTS) -> Any:
        """The devices, the bytes held and sent, the warnings, and the collectives, for a `rich` console."""
        summary = replace(self.propagated.summary, stages=self.stages, warnings=self.warnings)
        return partition_tables(summary, self.traffic, options)


def finish_partition(
    sharded: ShardedProgram,
    options: PartitionOptions = PartitionOptions(),
    root: Op | None = None,
    propagation: Propagation | None = None,
) -> Partition:
    """Partition a program with final shardings.

    Args:
        sharded: The program.
        options: The options of partitioning.
        root: A copy of its nodes that may be changed; by default, one is made.
        propagation: The result of propagation, if known.

    Raises:
        PassError: The program cannot be partitioned; the error names the op.
        ShardyError: Shardings are on meshes with different numbers of devices.
    """
    partition = _partitioned_by_compiler if sharded.options.compiler else _partitioned_by_passes
    return partition(sharded, options, root, propagation)


def partition_of(module: Module, options: PropagateOptions) -> Partition:
    """Propagate and partition a module, by default options of partitioning.

    Raises:
        PassError: The program cannot be partitioned; the error names the op.
        ShardyError: Shardings are on meshes with different numbers of devices, or the compiler refuses the program.
    """
    sharded, root = shard(module, options)
    return finish_partition(sharded, root=root)


def _partitioned_by_passes(
    sharded: ShardedProgram, options: PartitionOptions, root: Op | None, propagation: Propagation | None
) -> Partition:
    """The program of one device as pyshardy's own passes make it."""
    watch = Stopwatch(sharded.stages, sharded.passes)
    diagnostics = Diagnostics()
    before = sharded.before
    interface = sharded.interface.on(_meshes_in_use(sharded))
    with pause_gc():
        with watch.stage("partition"):
            root = sharded.copy_root() if root is None else root
            follows = bool(sharded.dumps) and propagation is not None
            dumped = replace(options, dump_directory=options.dump_directory or sharded.dumps)
            ending = partition_ending(sharded.applied, dumped, follows, has_debug_info(root))
            partition_in_place(before, root, interface.meshes, ending, diagnostics, watch.after_pass)
        module = before.with_root(root)
        with watch.stage("write"):
            module.verify()
    write_index(sharded.dumps)
    messages = (*sharded.diagnostics, *diagnostics.messages)
    return Partition(module, sharded, messages, watch.stages, watch.passes, options, interface, propagation)


def _partitioned_by_compiler(
    sharded: ShardedProgram, options: PartitionOptions, _root: Op | None, propagation: Propagation | None
) -> Partition:
    """The program of one device as a compiler made it.

    Raises:
        ShardyError: The compiler decided on shardings, and could not partition the program.
    """
    from pyshardy.compilers.ask import ask, partitioned_module

    watch = Stopwatch(sharded.stages, sharded.passes)
    before, compiler = sharded.before, sharded.options.compiler
    assert compiler
    interface = sharded.interface.on(_meshes_in_use(sharded))
    with pause_gc(), watch.stage("partition"):
        module = partitioned_module(ask(before, compiler), before)
    return Partition(module, sharded, sharded.diagnostics, watch.stages, watch.passes, options, interface, propagation)


def _meshes_in_use(sharded: ShardedProgram) -> Mapping[str, Mesh]:
    """The meshes in use, all with one number of devices; all meshes if no sharding is on a mesh with axes."""
    meshes = sharded.interface.meshes
    used = {sharding.mesh for function in functions(sharded.root) for sharding in distinct_shardings(function)}
    found = {name: mesh for name, mesh in meshes.items() if name in used}
    counts = sorted({mesh.size for mesh in found.values() if mesh.axes})
    if len(counts) > 1:
        raise ShardyError(
            "partitioning a program",
            got=f"shardings on meshes of {' and of '.join(map(str, counts))} devices",
            needed="the same devices for all, because they run one program together",
        )
    return found if counts else meshes
