"""Prices the candidates of a search: a program under other shardings of its inputs, outputs and constraints.

Propagation runs on the plain-data program (`pyshardy.graph.program`). This module does what passes do after
propagation, and prices the result as `QuickProgram` does.
"""

from __future__ import annotations

from functools import cache

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.costing.program import Program
from pyshardy.errors import UsageError
from pyshardy.graph.program import NO_VALUE
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.program import build_program
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.trip_counts import LOOP
from pyshardy.passes.exporting.remove_sub_axes_in_input_output_shardings import remove_sub_axes
from pyshardy.passes.exporting.update_non_divisible_input_output_shardings import divisible_sharding
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.run import propagate_program
from pyshardy.quick_cost.merging import Merging
from pyshardy.quick_cost.quick_program import QuickProgram
from pyshardy.quick_cost.versions import Shardings
from pyshardy.results.completed_sums import mark_completed_sums
from pyshardy.transforms.round_dumps import erase_dead

_MERGER = "sdy-constant-or-scalar-merger"
"""What it merges depends on shardings: `Merging` does it for each candidate."""
_DOING = "pricing candidates"


class Candidates(QuickProgram):
    """A program that is propagated and priced under many shardings.

    If a loop uses an argument from outside, import gives the loop a copy that may be sharded further, but only if the
    argument has a sharding. For exact prices, give such arguments a sharding, at least one without axes.

    Args:
        module: The program, as `load` returns it.
        options: The options of propagation.
        partition_options: The options of partitioning.

    Attributes:
        program: The program before propagation, with the annotations as its shardings.
        inputs: The numbers of its arguments.
        outputs: The numbers of its results.

    Raises:
        UsageError: The program has several functions, several meshes, sharding groups, or a manual computation whose
            body propagation may shard.

    >>> from dataclasses import replace
    >>> from pyshardy import load
    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.costing.counting import count_collectives
    >>> found = Candidates(load('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x8xf32>) -> tensor<8x8xf32> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    ...   return %0 : tensor<8x8xf32>
    ... }'''))
    >>> for text in ('<@mesh, [{"x"}, {}]>', '<@mesh, [{}, {"x"}]>'):
    ...     shardings = found.propagated({found.inputs[0]: parse_sharding(text)})
    ...     [one.op.kind.name for one in count_collectives(found.price(shardings))]
    []
    ['stablehlo.all_reduce']
    """

    def __init__(
        self,
        module: Module,
        options: PropagateOptions = PropagateOptions(),
        partition_options: PartitionOptions = PartitionOptions(),
    ) -> None:
        with module.context, pause_gc():
            root = module.copy_root()
            if mark_completed_sums(root, module.attrs) or ops_named(root, ("sdy.sharding_group",)):
                raise UsageError(_DOING, got="a program with sharding groups or completed sums", needed="one without")
            if sum(bool(mesh.axes) for mesh in module_meshes(root).values()) != 1:
                raise UsageError(_DOING, got="a program with no mesh or several", needed="one mesh")
            if _has_partly_manual(root):
                raise UsageError(
                    _DOING, got="a shard_map with axes that are not manual", needed="all axes manual, or no shard_map"
                )
            applied = for_module(options, root)
            importing, _, exporting = sharding_stages(applied)
            context = run_on_root(module, root, importing.passes)
            self.program, index = build_program(root, context.specs, applied.conservative)
            self.options = applied
            propagated = propagate_program(self.program, applied)
            index.store(propagated.shardings, self.program.shardings)
            erase_dead([index.ops[number] for number in propagated.erased])
            index.store_rules()
            context = run_on_root(
                module, root, [one for one in exporting.passes if one.name != _MERGER], context=context
            )
            if len(list(functions(root))) != 1:
                raise UsageError(_DOING, got="a program of several functions", needed="one whose calls are inlined")
        self._prepare(module, root, applied, partition_options)
        self._merging = Merging(self.skeleton)
        numbers = {value: number for number, value in enumerate(index.values) if isinstance(value, Value)}
        self._numbers = [numbers.get(value, NO_VALUE) for value in self.skeleton.values]
        self._lists = [entry.results for entry in self.entries if len(entry.results) > 1]
        self._loops = [entry for entry in self.entries if entry.op.name == LOOP]
        self.inputs = tuple([self._numbers[value] for value in self.skeleton.body.arguments])
        self.outputs = tuple([place.result for place in self.program.main_results])

    def propagated(self, given: dict[int, TensorSharding | None]) -> Shardings:
        """The sharding of every value of `program` after propagation, with these annotations on some values."""
        from dataclasses import replace

        shardings = list(self.program.shardings)
        for number, sharding in given.items():
            shardings[number] = sharding
        return propagate_program(replace(self.program, shardings=tuple(shardings)), self.options).shardings

    def price(self, shardings: Shardings) -> Program:
        """The cost program of one device.

        Args:
            shardings: The sharding of every value of `program` after propagation.

        Raises:
            PassError: The program cannot be partitioned under these shardings; the error names the op.
        """
        closed = cache(TensorSharding.closed)
        holders = self.program.holders
        held: list[TensorSharding | None] = []
        for number in self._numbers:
            holder = NO_VALUE if number == NO_VALUE else holders[number]
            held.append(None if holder == NO_VALUE else shardings[holder])
        found = [None if sharding is None else closed(sharding) for sharding in held]
        for value, number in zip(self.skeleton.body.arguments, self.inputs):
            found[value] = self._at_border(shardings[number], value)
        self._complete_lists(found)
        results = []
        for value, place in zip(self.skeleton.body.returned, self.program.main_results):
            sharding = shardings[place.result] or shardings[holders[place.returned]]
            results.append(self._at_border(sharding, value))
        return self.cost_program(found, results, self._merging.merged(held))

    def _complete_lists(self, shardings: list[TensorSharding | None]) -> None:
        """Give all results of an op a sharding if one has it, as they are written in one list; loops carry them on."""
        for values in self._lists:
            first = next((one for one in map(shardings.__getitem__, values) if one is not None), None)
            if first is None:
                continue
            for value in values:
                if shardings[value] is None:
                    rank = self.skeleton.values[value].type.rank
                    shardings[value] = TensorSharding.fully_replicated(first.mesh, rank)
        for entry in self._loops:
            for block in entry.blocks:
                for argument, result in zip(block.arguments, entry.results):
                    shardings[argument] = shardings[result]

    def _at_border(self, sharding: TensorSharding | None, value: int) -> TensorSharding | None:
        """The sharding of an argument or a result: even and along whole axes, unless it was annotated otherwise."""
        type = self.skeleton.values[value].type
        if sharding is None:
            return None
        if type.is_static and type.shape is not None and sharding.dims:
            sharding = divisible_sharding(sharding, type.shape, mesh_of(sharding, self.meshes))
        return remove_sub_axes(sharding).closed()


def _has_partly_manual(root: Op) -> bool:
    """Whether propagation may shard the body of a manual computation; so far a body is priced as it is imported."""
    axes = {axis for mesh in module_meshes(root).values() for axis, size in mesh.axes if size > 1}
    return any(not axes <= set(op.attrs["manual_axes"]) for op in ops_named(root, ("sdy.manual_computation",)))
