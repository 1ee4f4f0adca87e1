"""The start of all edits of a propagated program: its run of propagation, and what an edit can reach.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.names import Names
from pyshardy.explain.subject import Subject
from pyshardy.frontend.annotate import Checked
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.program_index import FunctionResultPlace
from pyshardy.passes.exporting.remove_sub_axes_in_input_output_shardings import remove_sub_axes
from pyshardy.passes.exporting.update_non_divisible_input_output_shardings import divisible_sharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.program import NO_VALUE, Program
from pyshardy.propagation.timeline import ShardingTimeline
from pyshardy.results.explained import labels_of
from pyshardy.results.sharded_program import Imported, ShardedProgram, import_program
from pyshardy.transforms.context import Traced

INPUT, OUTPUT = "arg_attrs", "res_attrs"
ShardingsByValue = Mapping[int, TensorSharding | None]


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of a program an edit was propagated through.

    Attributes:
        ops: The number of visited ops; all ops unless the edit is local.
        of_ops: The number of ops in the program.
        why_all: The reason why propagation visited everything; None if it did not.
        is_imported_again: Whether the steps before propagation ran again, too.
    """

    ops: int
    of_ops: int
    why_all: str | None = None
    is_imported_again: bool = False

    def __str__(self) -> str:
        if self.why_all is None:
            return f"propagated again through {self.ops} of {self.of_ops} ops"
        start = "prepared and propagated again" if self.is_imported_again else "propagated again through all ops"
        return f"{start}, because {self.why_all}"


@dataclass(frozen=True, slots=True, eq=False)
class EditState:
    """A program with some edits.

    Attributes:
        base: The program without the edits.
        annotations: The edited annotations, by kind and number of the input or output.
        shardings: The propagated shardings that differ from the base, by value.
        reach: How much of the program the edits were propagated through.
    """

    base: Base
    annotations: Mapping[tuple[str, int], Checked] = field(default_factory=dict)
    shardings: ShardingsByValue = field(default_factory=dict)
    reach: Reach = Reach(0, 0)

    def sharding(self, value: int) -> TensorSharding | None:
        """The propagated sharding of a value."""
        return self.shardings[value] if value in self.shardings else self.base.run.propagated.shardings[value]


def first_state(sharded: ShardedProgram) -> EditState:
    """The state without edits."""
    return EditState(Base(sharded))


class Base:
    """A propagated program that is edited.

    Args:
        sharded: The program.
    """

    def __init__(self, sharded: ShardedProgram) -> None:
        self.sharded = sharded
        self._finals: dict[tuple[TensorSharding, tuple[int, ...]], TensorSharding] = {}
        self._sizes: dict[tuple[tuple[int, ...], str, TensorSharding | None], int] = {}

    @property
    def run(self) -> Traced:
        """The run of propagation over it."""
        return self.sharded.runs[-1]

    @property
    def program(self) -> Program:
        """The program as propagation saw it."""
        return self.run.program

    @cached_property
    def erased(self) -> frozenset[int]:
        """The ops that were removed as dead code."""
        return frozenset(self.run.propagated.erased)

    @cached_property
    def computed_values(self) -> int:
        """The number of values that ops compute."""
        results = self.program.results
        return len(results.numbers) - sum(len(results[op]) for op in self.erased)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes of the program as it was given."""
        return self.sharded.annotations.meshes

    @cached_property
    def timeline(self) -> ShardingTimeline:
        """The log of what the run wrote, and when."""
        program, options = self.program, self.sharded.applied
        recording = self.run.recording(options)
        return ShardingTimeline(Layout(program, options, recording), recording.visits)

    @cached_property
    def imported(self) -> Imported:
        """The input of propagation as nodes, read again for the first result of an edit."""
        return import_program(self.sharded.before, replace(self.sharded.options, dump_directory=""))

    @cached_property
    def values(self) -> Mapping[tuple[str, int], int]:
        """The values of the inputs and outputs, by kind and number; none if the main function has no results."""
        if not self.program.main_results:
            return {}
        sides = zip((INPUT, OUTPUT), self.run.places.borders())
        return {(kind, index): value for kind, found in sides for index, value in found.items()}

    @cached_property
    def names(self) -> Names:
        """The names of ops and values."""
        keyed = [(self.values.get((kind, tensor.index)), tensor.name) for kind, tensor in self.tensors()]
        names = {value: name for value, name in keyed if value is not None}
        labels = labels_of(self.run, self.sharded.before.name)
        return Names(Subject(self.program, self.run.propagated.shardings, (), labels, names))

    def tensors(self) -> Iterator[tuple[str, InterfaceTensor]]:
        """The inputs and outputs, with the shardings that propagation gave them."""
        yield from ((INPUT, tensor) for tensor in self.sharded.interface.inputs)
        yield from ((OUTPUT, tensor) for tensor in self.sharded.interface.outputs)

    def given(self, kind: str, index: int) -> TensorSharding | None:
        """The annotation of an input or output of the base."""
        annotations = self.sharded.annotations
        return (annotations.inputs if kind == INPUT else annotations.outputs)[index]

    def final(self, state: EditState, kind: str, tensor: InterfaceTensor) -> TensorSharding | None:
        """The sharding of an input or output in the result of propagation."""
        program = self.program
        value = self.values[kind, tensor.index]
        found = state.sharding(value)
        if found is None and kind == OUTPUT:
            returned = self._returned.get(value, NO_VALUE)
            found = None if returned == NO_VALUE else state.sharding(returned)
            found = None if found is None or mesh_of(found, program.meshes).is_single_device else found
        if found is None:
            return None
        key = found, tensor.shape
        known = self._finals.get(key)
        if known is None:
            if found.dims and -1 not in tensor.shape:
                found = divisible_sharding(found, tensor.shape, mesh_of(found, program.meshes))
            known = self._finals[key] = remove_sub_axes(found).closed()
        return known

    def dtype(self, value: int) -> str:
        """The element type of a value that an op computes, or of an argument of a block."""
        place = self.run.places.values[value]
        return "" if isinstance(place, FunctionResultPlace) else place.type.element

    @cached_property
    def _returned(self) -> Mapping[int, int]:
        """The returned value, by holder, for every value that stands for a result of the main function."""
        return {result: self.program.holders[returned] for returned, result in self.program.main_results}

    @cached_property
    def _ports_at(self) -> Mapping[int, list[tuple[str, InterfaceTensor]]]:
        """The inputs and outputs whose sharding may depend on that of a value."""
        found: dict[int, list[tuple[str, InterfaceTensor]]] = {}
        for kind, tensor in self.tensors():
            value = self.values[kind, tensor.index]
            found.setdefault(value, []).append((kind, tensor))
            if kind == OUTPUT:
                found.setdefault(self._returned.get(value, NO_VALUE), []).append((kind, tensor))
        return found

    def ports_of(self, *states: EditState) -> dict[tuple[str, int], tuple[str, InterfaceTensor]]:
        """The inputs and outputs whose sharding may differ between these states and the base."""
        values = sorted({value for state in states for value in state.shardings})
        found = [one for value in values for one in self._ports_at.get(value, ())]
        ordered = sorted(found, key=lambda one: (one[0], one[1].index))
        return {(kind, tensor.index): (kind, tensor) for kind, tensor in ordered}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The bytes that one device holds of all inputs and of all outputs."""
        found = {INPUT: 0, OUTPUT: 0}
        for kind, tensor in self.tensors():
            found[kind] += self.size(tensor, tensor.sharding)
        return found

    def size(self, tensor: InterfaceTensor, sharding: TensorSharding | None) -> int:
        """The bytes that one device holds of an input or output."""
        key = tensor.shape, tensor.element, sharding
        size = self._sizes.get(key)
        if size is None:
            shape = tensor.shape
            if sharding is not None:
                shape = local_shape(sharding, mesh_of(sharding, self.program.meshes), shape)
            size = self._sizes[key] = known_bytes(shape, tensor.element)
        return size

    @cached_property
    def knows_ports(self) -> bool:
        """Whether the shardings of inputs and outputs follow from those of values, as they nearly always do."""
        state = EditState(self)
        return all(
            (kind, tensor.index) in self.values and self.final(state, kind, tensor) is tensor.sharding
            for kind, tensor in self.tensors()
        )
