"""The values of a propagated program, with the origin of each sharding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyshardy.core.boxes import local_shape
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.why import Place
from pyshardy.ir.dataflow import DATA_FLOW_OPS
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import main_function, return_op
from pyshardy.ir.locations import read_location
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import named_values
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.shardings import get_sharding
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.summary import Summary, TensorRow
from pyshardy.report.value_row import INPUT, OP, OUTPUT, Frame, ValueRow, short_scope
from pyshardy.report.values import Values
from pyshardy.rules.properties import EDGES

if TYPE_CHECKING:
    from pyshardy.report.origins import OriginNames
    from pyshardy.results.program_result import ProgramResult
    from pyshardy.transforms.context import Traced

_AROUND = DATA_FLOW_OPS | {"func.func", "builtin.module"}
"""Ops whose bodies compute tensors of the program; bodies of other ops, such as reductions, do not."""


def values_of(summary: Summary, result: ProgramResult, run: Traced, origins: OriginNames) -> Values:
    """The inputs, results of ops, and outputs of a propagated program.

    Args:
        summary: The summary of its inputs and outputs, with the annotations that their shardings come from.
        result: The program.
        run: The run of propagation, on the nodes of its module.
        origins: The names of the annotations that shardings come from.
    """
    maker = _Maker(result, run, origins)
    rows = [*map(maker.tensor, summary.inputs), *maker.results(), *maker.outputs(summary.outputs)]
    return Values(summary.title, summary.meshes, tuple(rows))


def place_of_row(row: ValueRow) -> Place:
    """Where the values of a row are in the program."""
    if row.kind != OP or not row.frames:
        return Place(row.name)
    return Place(row.name, row.shape, tuple(frame.place[:2] for frame in row.frames))


def places_of_variable(module: Module, name: str) -> list[Place]:
    """Where the user's source assigns a variable; empty if it does not.

    Args:
        module: The program.
        name: The variable, such as "h", "h of layer" or "`h` of `layer`".
    """
    wanted = name.replace("`", "")
    values = named_values(module.root)
    fitting = [one.value for one in values if wanted in (one.name, f"{one.name} of {one.value.function}")]
    return [Place(f"{one.span.file}:{one.span.line}", one.shape) for one in fitting]


class _Maker:
    """Makes the rows of a program; the arguments are those of `values_of`."""

    def __init__(self, result: ProgramResult, run: Traced, origins: OriginNames) -> None:
        self._whole, self._root = result, result.module.root
        self._numbers: dict[Any, int] = {value: number for number, value in enumerate(run.places.values)}
        self._program = run.program
        self._origins = origins
        self._places: dict[Any, tuple[str | None, tuple[Frame, ...]]] = {}

    def tensor(self, row: TensorRow, maker: Op | None = None, kind: str = INPUT) -> ValueRow:
        """The row of an input, or of an output with the op that computes it."""
        return ValueRow(
            name=row.name,
            kind=kind,
            op=None if maker is None else maker.name,
            frames=() if maker is None else self._place(maker)[1],
            shape=row.shape,
            dtype=row.dtype,
            sharding=row.sharding,
            local_shape=row.local_shape,
            bytes_total=row.bytes_total,
            bytes_per_device=row.bytes_per_device,
            is_given=row.is_split and not row.is_inferred,
            origins=row.origins,
        )

    def outputs(self, rows: Sequence[TensorRow]) -> Iterator[ValueRow]:
        """The rows of the outputs."""
        returned = return_op(main_function(self._root)).operands
        for row, tensor in zip(rows, self._whole.outputs):
            yield self.tensor(row, returned[tensor.index].defining_op, OUTPUT)

    def results(self) -> Iterator[ValueRow]:
        """The rows of results of ops, in program order."""
        for op in walk(self._root):
            if op.results and op.name not in EDGES and _is_in_program(op):
                yield from (self._result(op, value) for value in op.results if value.type.is_ranked_tensor)

    def _result(self, op: Op, value: Value) -> ValueRow:
        scope, frames = self._place(op)
        sharding = get_sharding(value)
        shape, element = tuple(value.type.shape or ()), value.type.element
        local = _local_shape(sharding, self._whole.meshes, shape)
        number = self._numbers.get(value)
        maker = None if number is None else self._program.kind(self._program.owners[number]).name
        return ValueRow(
            name=short_scope(scope) or op.name,
            kind=OP,
            op=op.name,
            frames=frames,
            shape=shape,
            dtype=element,
            sharding=sharding,
            local_shape=local,
            bytes_total=known_bytes(shape, element),
            bytes_per_device=known_bytes(local, element),
            is_given=maker == CONSTRAINT,
            origins=() if number is None else self._origins.of(number),
        )

    def _place(self, op: Op) -> tuple[str | None, tuple[Frame, ...]]:
        """By location, JAX's name for an op and the calls that led to it; many ops share a location."""
        location = op.location
        found = self._places.get(location)
        if found is None:
            scope, _, calls = read_location(location, self._whole.before.name)
            found = self._places[location] = scope, tuple(Frame(call.function, call.place) for call in calls)
        return found


def _is_in_program(op: Op) -> bool:
    parent = op.parent_op
    while parent is not None:
        if parent.name not in _AROUND:
            return False
        parent = parent.parent_op
    return True


def _local_shape(sharding: TensorSharding | None, meshes: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if sharding is None else local_shape(sharding, mesh_of(sharding, meshes), shape)
