"""Other code that may send less: an op in `jax.shard_map`, micro-batches and pieces that are interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pyshardy.core.axes import Axes, Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.explain.collective_causes import Cause
from pyshardy.explain.subject import Subject
from pyshardy.explain.why import Why
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.locations import source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.rules.rule import FactorKind
from pyshardy.source.places import SourcePlace, format_place, is_library
from pyshardy.transforms.code_changes import (
    CONCATENATE,
    PAD,
    RESHAPE,
    SLICE,
    interleave_pieces,
    pieces_of,
    run_on_shards,
    stride_micro_batches,
    takes_micro_batches,
)

_KERNELS = frozenset(
    f"stablehlo.{name}" for name in ("cholesky", "convolution", "custom_call", "fft", "triangular_solve")
)
"""Ops that compilers run on whole tensors although they may treat each row alone."""
_MANUAL = "sdy.manual_computation"
_ROWS_AND_HEADS = 4
"""From this rank on, all dimensions of an unknown kernel but the last are tried, as for attention; else the first."""
CodeChange = Callable[[Op, AttrTable], None]


class Code(NamedTuple):
    """What makes an op: ops of unrolled layers share it.

    Attributes:
        name: The op.
        path: The user's calls that led to it, innermost first.
        shapes: The shapes of its operands, then of its results.
    """

    name: str
    path: tuple[SourcePlace, ...]
    shapes: tuple[tuple[int, ...] | None, ...]

    @classmethod
    def of(cls, op: Op, name: str) -> Code:
        """What makes an op of a program that was read from a text of this name."""
        frames = source_frames(op.location, name)
        own = tuple(frame for frame in frames if not is_library(frame[0])) or tuple(frames[:1])
        return cls(op.name, own, tuple(value.type.shape for value in (*op.operands, *op.results)))


@dataclass(frozen=True, slots=True)
class CodeEdit:
    """Other code.

    Attributes:
        what: What it replaces, in words.
        text: What to write.
        place: The line that it is about.
        codes: The code that it replaces, for each kind of op that this makes.
        change: Changes one op of these kinds.
        condition: What else has to hold, in words, if the results may differ; else empty.
    """

    what: str
    text: str
    place: SourcePlace
    codes: tuple[Code, ...]
    change: CodeChange = field(compare=False)
    condition: str = ""
    patch = ""

    def apply(self, module: Module) -> Module:
        """The program with it."""
        root = module.copy_root()
        with module.context:
            names = [code.name for code in self.codes]
            for op in [op for op in ops_named(root, names) if Code.of(op, module.name) in self.codes]:
                self.change(op, module.attrs)
        return module.with_root(root)


class ShardMap(NamedTuple):
    """A kernel that every device runs on its shards.

    Attributes:
        edit: The program with it.
        inputs: The axes of its operands.
        outputs: The axes of its results.
    """

    edit: CodeEdit
    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]


def shard_maps(why: Why, cause: Cause, module: Module, name: str, mesh: Mesh) -> Iterator[ShardMap]:
    """The kernel that makes devices communicate, run by every device on its shards.

    Args:
        why: Explains the values of the propagated program.
        cause: The cause of a collective.
        module: The program as the user gave it.
        name: The name of its mesh.
        mesh: The mesh.
    """
    subject, number = why.subject, cause.op
    label = None if number is None or number >= subject.op_count else why.names.label(number)
    if number is None or label is None or label.file is None or label.name not in _KERNELS:
        return
    place = label.file, label.line, label.column
    for op in ops_named(module.root, _KERNELS):
        if not op.operands or not op.results or op.enclosing(_MANUAL) is not None:
            continue
        code = Code.of(op, module.name)
        shardings = _by_rows(op, subject, number, name, mesh) if code.path[:1] == (place,) else None
        if shardings is None:
            continue
        given = [tuple(tuple(axis.name for axis in axes) for axes in one.dim_axes) for one in shardings]
        specs, count = [format_spec(dims) for dims in given], len(op.operands)
        what = why.names.op(number)
        edit = CodeEdit(
            what,
            f"call {what} in jax.shard_map with in_specs={_tuple(specs[:count])}, out_specs={_tuple(specs[count:])}",
            place,
            (code,),
            partial(_run_on_shards, shardings, mesh),
            "" if subject.rule(number) is not None else "if it computes a shard from that shard alone",
        )
        yield ShardMap(edit, tuple(given[:count]), tuple(given[count:]))
        return


def _run_on_shards(shardings: Sequence[TensorSharding], mesh: Mesh, op: Op, attrs: AttrTable) -> None:
    run_on_shards(op, shardings, mesh, attrs)


def _tuple(specs: Sequence[str]) -> str:
    return specs[0] if len(specs) == 1 else f"({', '.join(specs)})"


def _by_rows(op: Op, subject: Subject, number: int, name: str, mesh: Mesh) -> list[TensorSharding] | None:
    """The shardings of the tensors of an op by the axes of its rows; None if there are none.

    Rows are the dimensions whose factors the first operand and the results share. Without a rule, they are the first
    dimension, or all but the last one of four, of the tensors that have as many dimensions as the result; and the first
    one of other operands, such as lengths, that have its size and come with its axes.
    """
    tensors = [value.type.shape for value in (*op.operands, *op.results)]
    known = [*subject.program.operands[number], *subject.program.results[number]]
    if len(known) != len(tensors) or any(shape is None or -1 in shape for shape in tensors):
        return None
    shapes = [shape for shape in tensors if shape is not None]
    rule = subject.rule(number)
    if rule is not None:
        of_rows = [
            factor
            for factor in rule.factors_of(FactorKind.PASS_THROUGH)
            if all(any(dim == (factor,) for dim in tensor) for tensor in (rule.operands[0], *rule.results))
        ]
        rows = [[dim[0] if len(dim) == 1 and dim[0] in of_rows else None for dim in one] for one in rule.tensors]
    else:
        result = shapes[len(op.operands)]
        first = range((len(result) - 1 if len(result) >= _ROWS_AND_HEADS else 1) if len(result) > 1 else 0)
        of_batch = subject.sharding(known[0])
        rows = [
            [dim if dim in first and size == result[dim] and (
                len(shape) == len(result) or (not dim and _come_alike(subject.sharding(value), of_batch))
            ) else None for dim, size in enumerate(shape)]
            for value, shape in zip(known, shapes)
        ]  # fmt: skip
    axes: dict[int, Axes] = {}
    for value, one, shape in zip(known, rows, shapes):
        sharding = subject.sharding(value)
        for dim, row in enumerate(() if sharding is None else one):
            found = sharding.dims[dim].axes if sharding is not None else ()
            if row is not None and found and row not in axes and divides(found, shape[dim], mesh):
                axes[row] = found
    if not axes:
        return None
    return [
        TensorSharding(name, [DimSharding(() if row is None else axes.get(row, ()), False) for row in one])
        for one in rows
    ]


def _come_alike(one: TensorSharding | None, other: TensorSharding | None) -> bool:
    """Whether two tensors are split along their first dimension, by the same axes."""
    given = [sharding.dims[0].axes if sharding is not None and sharding.rank else () for sharding in (one, other)]
    return bool(given[0]) and given[0] == given[1]


def divides(axes: Axes, size: int, mesh: Mesh) -> bool:
    """Whether whole axes divide a dimension."""
    ways = 1
    for axis in axes:
        if not axis.is_full:
            return False
        ways *= mesh.axis_size(axis.name)
    return size % ways == 0


def strided_micro_batches(why: Why, module: Module) -> Iterator[CodeEdit]:
    """Micro-batches of stretches of rows that are split, of every n-th row instead.

    Args:
        why: Explains the values of the propagated program.
        module: The program as the user gave it.
    """
    split = set(_split_reshapes(why))
    for op in ops_named(module.root, (RESHAPE,)):
        code = Code.of(op, module.name)
        place = code.path[0] if code.path else None
        if place is None or not takes_micro_batches(op) or (place, op.result.type.shape) not in split:
            continue
        count, size, *rest = op.result.type.shape or ()
        more = ", ..." if rest else ""
        what = f"the {count} parts at {format_place(place)}"
        text = (
            f"let each of {what} have every {_ordinal(count)} row: "
            f"x.reshape({size}, {count}{more}).swapaxes(0, 1) instead of x.reshape({count}, {size}{more})"
        )
        yield CodeEdit(what, text, place, (code,), stride_micro_batches, "if parts may have other rows")


def _split_reshapes(why: Why) -> Iterator[tuple[SourcePlace, tuple[int, ...] | None]]:
    """The lines and results of reshapes whose operand is split along its first dimension."""
    subject, program = why.subject, why.subject.program
    for number in range(subject.op_count):
        if program.kind(number).name != RESHAPE:
            continue
        sharding = subject.sharding(program.operands[number][0])
        label = why.names.label(number)
        if sharding is not None and sharding.rank and sharding.dims[0].axes and label.file is not None:
            yield (label.file, label.line, label.column), program.shapes[program.results[number][0]]


def interleaved_pieces(why: Why, cause: Cause, module: Module) -> Iterator[CodeEdit]:
    """The pieces of a split dimension, of every n-th element instead of a stretch of them.

    Args:
        why: Explains the values of the propagated program.
        cause: The cause of a collective.
        module: The program as the user gave it.
    """
    number = cause.op
    label = None if number is None or number >= why.subject.op_count else why.names.label(number)
    if label is None or label.file is None or label.name != SLICE:
        return
    place = label.file, label.line, label.column
    found: dict[Code, tuple[int, int]] = {}
    for op in ops_named(module.root, (SLICE, PAD, CONCATENATE)):
        code, pieces = Code.of(op, module.name), pieces_of(op)
        if code.path[:1] == (place,) and pieces is not None:
            found[code] = pieces
    slices = [(code, pieces) for code, pieces in found.items() if code.name == SLICE]
    if not slices:
        return
    (code, (dim, count)) = slices[0]
    shape = code.shapes[0] or ()
    size, what = shape[dim] // count, f"the {count} pieces at {format_place(place)}"
    at = ":" + ", :" * (dim - 1) + ", " if dim else ""
    taken = f"x.reshape(*x.shape[:{dim}], {size}, {count}, *x.shape[{dim + 1}:])[{at}:, i]"
    if dim == len(shape) - 1:
        taken = f"x.reshape(*x.shape[:-1], {size}, {count})[..., i]"
    text = f"let each of {what} be {taken}, every {_ordinal(count)} element of dimension {dim}, and not {size} in a row"
    condition = "if the weights can have their elements in that order"
    yield CodeEdit(what, text, place, tuple(found), interleave_pieces, condition)


def _ordinal(count: int) -> str:
    """An ordinal number.

    >>> [_ordinal(count) for count in (2, 3, 4, 11, 21)]
    ['2nd', '3rd', '4th', '11th', '21st']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th") if count % 100 not in (11, 12, 13) else "th"
    return f"{count}{ending}"
