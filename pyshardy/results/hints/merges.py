"""Dimensions that a reshape merges although they are split: what loses axes by that, or is looked up in all rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from pyshardy.core.axes import Axes
from pyshardy.explain.why import Why
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.callers import Callers
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.results.hints.code import Code, CodeEdit
from pyshardy.source.places import SourcePlace, format_place
from pyshardy.transforms.code_changes import RESHAPE, merge_the_other_way, merged_dimension, two_of_one
from pyshardy.transforms.example_lookups import GATHER, SCATTER, flat_dimension, look_up_in_examples

_FUNCTION = "func.func"
_SAME = frozenset(("stablehlo.convert", "sdy.sharding_constraint"))
_Reshape = tuple[SourcePlace, tuple[int, ...] | None, tuple[int, ...] | None]
"""The line of a reshape and its two shapes."""


def merged_behind(why: Why, module: Module) -> Iterator[CodeEdit]:
    """Dimensions that are merged behind whole ones and lose their axes, merged before them instead.

    Args:
        why: Explains the values of the propagated program.
        module: The program as the user gave it.
    """
    lost = dict(_losses(why))
    pairs: dict[tuple[int, int], list[tuple[Code, Axes, int]]] = {}
    for op in ops_named(module.root, (RESHAPE,)):
        dim = merged_dimension(op)
        if dim is None:
            continue
        code, shapes = Code.of(op, module.name), (op.operands[0].type.shape, op.result.type.shape)
        axes = lost.get((code.path[0], *shapes)) if code.path else None
        if axes is not None:
            first, second, *_ = max((shape or () for shape in shapes), key=len)[dim:]
            pairs.setdefault((first, second), []).append((code, axes, dim))
    for (first, second), found in pairs.items():
        merges = [one for one in found if len(one[0].shapes[0] or ()) > len(one[0].shapes[1] or ())]
        for code, axes, dim in merges[:1]:
            names = " and ".join(f'"{axis.name}"' for axis in axes)
            place = code.path[0]
            swap = f".swapaxes({dim}, {dim + 1})"
            what = (
                f"the reshape at {format_place(place)} merges dimension {dim + 1} of {second} behind dimension {dim} "
                f"of {first}, so it loses {names}"
            )
            text = (
                f"merge them in the other order at {format_place(place)}: x{swap}.reshape(...), and reshape(...){swap} "
                f"where they are made of one again; or keep both, as jax.vmap twice does"
            )
            codes = tuple(dict.fromkeys(one for one, _, _ in found))
            yield CodeEdit(what, text, place, codes, merge_the_other_way, "if each row is computed by itself")


def _losses(why: Why) -> Iterator[tuple[_Reshape, Axes]]:
    """The reshapes that merge a dimension that is split behind one that is whole, or make such ones, and its axes."""
    subject, program = why.subject, why.subject.program
    for number in range(subject.op_count):
        if program.kind(number).name != RESHAPE:
            continue
        label, values = why.names.label(number), (program.operands[number][0], program.results[number][0])
        before, after = (program.shapes[value] for value in values)
        apart, whole = sorted(values, key=lambda value: -len(program.shapes[value] or ()))
        given, merged = subject.sharding(apart), subject.sharding(whole)
        if given is None or given.rank < 2 or label.file is None:
            continue
        for first, second in zip(range(given.rank), range(1, given.rank)):
            axes = given.dims[second].axes
            is_kept = merged is not None and any(axis in dim.axes for dim in merged.dims for axis in axes)
            if axes and not given.dims[first].axes and not is_kept:
                yield ((label.file, label.line, label.column), before, after), axes


def flat_lookups(why: Why, module: Module) -> Iterator[tuple[CodeEdit, str]]:
    """Lookups of rows in what a reshape merges of a batch that is split and the rows of each of its examples.

    They are looked up in each example instead, also in the gradient.

    Args:
        why: Explains the values of the propagated program.
        module: The program as the user gave it.

    Yields:
        The edit, and why the axes are lost.
    """
    lines: dict[tuple[str, int], dict[tuple[int, int, int], Axes]] = {}
    for line, axes, dim, (examples, rows) in _lookups(why):
        lines.setdefault(line, {})[dim, examples, rows] = axes
    codes: dict[tuple[SourcePlace, int, int], dict[Code, Axes]] = {}
    callers = Callers(module.root)
    for op in ops_named(module.root, (GATHER, SCATTER)):
        places = list(_places(op, callers, module.name))
        if not places or any(place[:2] not in lines for place in places):
            continue
        for (dim, examples, rows), axes in lines[places[0][:2]].items():
            count = prod(op.operands[1].type.shape or ())
            is_flat = flat_dimension(op) == dim and (op.operands[0].type.shape or ())[dim] == examples * rows
            if is_flat and count % examples == 0:
                place = *places[0][:2], 0
                codes.setdefault((place, examples, rows), {})[Code.of(op, module.name)] = axes
    for (place, examples, rows), found in codes.items():
        names = " and ".join(f'"{axis.name}"' for axis in next(iter(found.values())))
        at = format_place(place)
        edit = CodeEdit(
            f"rows of {examples} examples are looked up in one list of all at {at}, which loses {names}",
            f"look up in each example by itself: jnp.take_along_axis, or jax.vmap(lambda x, i: x[i]) at {at}",
            place,
            tuple(found),
            partial(_in_examples, examples),
            "if all its rows are its own",
        )
        yield edit, f"the reshape merges the batch with {rows} rows of each example, and any device may need any row"


def _places(op: Op, callers: Callers, name: str) -> Iterator[SourcePlace]:
    """The line of an op, or those of the calls of its function, as of `jnp.take`."""
    path, function = Code.of(op, name).path, op.enclosing(_FUNCTION)
    if path:
        yield path[0]
    for call in callers.of(function) if function is not None and not path else ():
        yield from _places(call, callers, name)


def _in_examples(examples: int, op: Op, attrs: AttrTable) -> None:
    look_up_in_examples(op, attrs, examples)


def _lookups(why: Why) -> Iterator[tuple[tuple[str, int], Axes, int, tuple[int, int]]]:
    """The lines of lookups in merged rows, the axes of the batch, its dimension, and the sizes of what is merged."""
    subject, program = why.subject, why.subject.program
    made = {result: number for number in range(subject.op_count) for result in program.results[number]}
    for number in range(subject.op_count):
        if program.kind(number).name != GATHER or (label := why.names.label(number)).file is None:
            continue
        source = made.get(program.operands[number][0])
        while source is not None and program.kind(source).name in _SAME:
            source = made.get(program.operands[source][0])
        if source is None or program.kind(source).name != RESHAPE:
            continue
        apart, whole = program.operands[source][0], program.results[source][0]
        before, after = program.shapes[apart] or (), program.shapes[whole] or ()
        given, dim = subject.sharding(apart), two_of_one(before, after)
        if len(before) > len(after) and dim is not None and given is not None and given.dims[dim].axes:
            yield (label.file, label.line), given.dims[dim].axes, dim, (before[dim], before[dim + 1])
