"""Compares two results, which it aligns by names and source lines.

Inputs and outputs are aligned by name. Results of ops are aligned by source line, name scope and op, and in program
order if several are alike. If the programs have different numbers in their names, these do not count: layers 0 to 23
are aligned with layers 0 to 31.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyshardy.core.folding import fold_names
from pyshardy.core.mesh import Mesh
from pyshardy.core.scopes import scope_path
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.errors import ShardyError
from pyshardy.explain.names import place_text, short_label
from pyshardy.explain.subject import Label
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import main_function
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import get_sharding
from pyshardy.report.changes import Change, CollectiveChange, Communication, Total, folded_changes
from pyshardy.report.difference import Difference
from pyshardy.results.decided import is_laid_out_alike
from pyshardy.results.explained import label_of
from pyshardy.results.program_result import ProgramResult

MeshPair = tuple[Mapping[str, Mesh], Mapping[str, Mesh]]
_NUMBER = re.compile(r"(?<![A-Za-z\d])\d+(?![A-Za-z\d])")
"""A number that is not part of a word, such as that of a layer."""
_HIDDEN = frozenset(
    ("sdy.constant", "stablehlo.constant", "sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge")
)
"""Ops that no user wrote, or that carry the sharding of their result themselves."""


class ComparedTensor(NamedTuple):
    """An input, an output, or the result of an op.

    Attributes:
        kind: "input", "output" or "value".
        name: The name.
        key: The key by which tensors of two programs are aligned.
        shape: The shape.
        dtype: The element type.
        sharding: The sharding.
        size: The bytes that one device holds of an input or output.
    """

    kind: str
    name: str
    key: Hashable
    shape: tuple[int, ...]
    dtype: str
    sharding: TensorSharding | None
    size: int | None = None


def compare_results(before: ProgramResult, after: ProgramResult, how: str = "") -> Difference:
    """The difference between two results of the same program, or of similar ones.

    Args:
        before: One result.
        after: The other.
        how: What was propagated for the comparison, in words; may be empty.
    """
    one, other = before.propagated, after.propagated
    meshes = one.meshes, other.meshes
    tensors = [*port_tensors(one.interface)], [*port_tensors(other.interface)]
    is_same_text = _ops(one.module.root) == _ops(other.module.root)
    values = [[*_values(result.module.root, result.before.name, is_same_text)] for result in (one, other)]
    layers, done = _layers(tensors[0], tensors[1], meshes)
    rest = [[one for one in side if one.key not in done] for side in tensors]
    kinds = [*layers, *folded_changes([*_changes(rest[0], rest[1], meshes)])]
    changes = [*sorted(kinds, key=lambda one: one.kind), *_changes(values[0], values[1], meshes)]
    return Difference(
        changes=tuple(changes),
        sizes=tuple(sizes_of(*tensors)),
        compared=(max(map(len, tensors)), max(map(len, values))),
        how=how,
        find_communication=lambda: communication_of(before, after),
    )


def port_tensors(interface: Interface) -> Iterator[ComparedTensor]:
    """The inputs and outputs of a program."""
    for kind, tensors in (("input", interface.inputs), ("output", interface.outputs)):
        for tensor in tensors:
            yield port_tensor(kind, tensor, interface)


def port_tensor(kind: str, tensor: InterfaceTensor, interface: Interface) -> ComparedTensor:
    """An input or output."""
    size = known_bytes(interface.local_shape(tensor), tensor.element)
    return ComparedTensor(kind, tensor.name, (kind, tensor.name), tensor.shape, tensor.element, tensor.sharding, size)


def sizes_of(before: Sequence[ComparedTensor], after: Sequence[ComparedTensor]) -> Iterator[Total]:
    """The bytes that a device holds of inputs and of outputs."""
    for kind in ("input", "output"):
        sums = [sum(one.size or 0 for one in tensors if one.kind == kind) for tensors in (before, after)]
        yield Total(f"{kind}s", *sums)


def _ops(root: Op) -> list[str]:
    """The names of the ops of a program, without ops that only carry shardings."""
    return [op.name for op in ops_in(main_function(root)) if op.name not in _HIDDEN]


def _values(root: Op, name: str, is_same_text: bool) -> Iterator[ComparedTensor]:
    """The results of the ops of a program.

    Args:
        root: The program.
        name: The name of the text that it was read from; line numbers in different texts are not comparable.
        is_same_text: Whether both programs have the same ops in the same order.
    """
    labels: dict[tuple[str, object], Label] = {}
    for number, op in enumerate(op for op in ops_in(main_function(root)) if op.name not in _HIDDEN):
        location = op.location
        label = labels.get((op.name, location))
        if label is None:
            label = labels[op.name, location] = label_of(op.name, location, name)
        key = (number,) if is_same_text else _key(label, name)
        for result in op.results:
            if result.type.shape is not None:
                shape, element = result.type.shape, result.type.element
                yield ComparedTensor("value", value_name(label), key, shape, element, get_sharding(result))


def value_name(label: Label) -> str:
    """The name of the result of an op in a table."""
    scope = scope_path(label.scope)
    return f"`{short_label(label)}`" + (f" in `{scope}`" if scope else "") + place_text(label)


def _key(label: Label, name: str) -> Hashable:
    place = None if label.file is None or label.file == name else (label.file, label.line)
    return starred(label.scope or ""), label.name, place


def starred(text: str) -> str:
    """A text with a star for every number that is not part of a word.

    >>> starred("params['layers'][3]['w2']"), starred("block_12/mlp")
    ("params['layers'][*]['w2']", 'block_*/mlp')
    """
    return _NUMBER.sub("*", text)


# Alignment


def _changes(before: Sequence[ComparedTensor], after: Sequence[ComparedTensor], meshes: MeshPair) -> Iterator[Change]:
    """The tensors whose shardings differ, or that only one program has."""
    left, right = _by_key(before), _by_key(after)
    found: list[Change] = []
    for key in {**left, **right}:
        ones, others = left.get(key, []), right.get(key, [])
        if len(ones) == len(others):
            found += [_change([one], [other]) for one, other in zip(ones, others) if not _is_alike(one, other, meshes)]
        elif ones and others:
            found += _unequal(ones, others, meshes)
    found += [_change([one], []) for key, ones in left.items() if key not in right for one in ones]
    found += [_change([], [one]) for key, ones in right.items() if key not in left for one in ones]
    yield from joined_changes(found)


def _layers(
    before: Sequence[ComparedTensor], after: Sequence[ComparedTensor], meshes: MeshPair
) -> tuple[list[Change], set[Hashable]]:
    """Inputs and outputs, such as those of layers, of which one program has more, if they are sharded alike.

    Returns:
        One row for all names that differ only in a number, and their keys.
    """
    sides = _by_general_name(before), _by_general_name(after)
    found: list[Change] = []
    done: set[Hashable] = set()
    for key, ones in sides[0].items():
        others = sides[1].get(key, [])
        names = [{one.key for one in side} for side in (ones, others)]
        is_uniform = all(len({(one.shape, one.dtype, one.sharding) for one in side}) == 1 for side in (ones, others))
        if is_uniform and names[0] != names[1] and (names[0] < names[1] or names[1] < names[0]):
            larger = max(ones, others, key=len)
            rows = fold_names((one.name, None) for one in larger)
            if len(rows) == 1:
                row = replace(_change(ones, others), name=rows[0].name)
                found.append(replace(row, after=row.before) if _is_alike(ones[0], others[0], meshes) else row)
                done |= names[0] | names[1]
    return found, done


def _by_general_name(tensors: Iterable[ComparedTensor]) -> dict[Hashable, list[ComparedTensor]]:
    found: dict[Hashable, list[ComparedTensor]] = {}
    for one in tensors:
        found.setdefault((one.kind, starred(one.name)), []).append(one)
    return found


def _by_key(tensors: Iterable[ComparedTensor]) -> dict[Hashable, list[ComparedTensor]]:
    found: dict[Hashable, list[ComparedTensor]] = {}
    for one in tensors:
        found.setdefault(one.key, []).append(one)
    return found


def _is_alike(one: ComparedTensor, other: ComparedTensor, meshes: MeshPair) -> bool:
    """Whether two tensors are sharded alike, even if one is larger, or on more devices along the same axes."""
    left, right = one.sharding, other.sharding
    if len(one.shape) != len(other.shape):
        return False
    if left is right and meshes[0] == meshes[1]:
        return True
    if left is None or right is None or mesh_of(left, meshes[0]).axis_names != mesh_of(right, meshes[1]).axis_names:
        return is_laid_out_alike(left, right, one.shape, meshes)
    return left.dim_axes == right.dim_axes and left.unreduced == right.unreduced


def _unequal(ones: Sequence[ComparedTensor], others: Sequence[ComparedTensor], meshes: MeshPair) -> Iterator[Change]:
    """The differences of equally named tensors if one program has more of them: equal shardings match."""
    left, right = list(_counted(ones).values()), list(_counted(others).values())
    rest = (
        [one for group in left if not any(_is_alike(group[0], other[0], meshes) for other in right) for one in group],
        [one for group in right if not any(_is_alike(other[0], group[0], meshes) for other in left) for one in group],
    )
    if len(_counted(rest[0])) == len(_counted(rest[1])) == 1:
        yield _change(rest[0], rest[1])
        return
    for group in _counted(rest[0]).values():
        yield _change(group, [])
    for group in _counted(rest[1]).values():
        yield _change([], group)


def _counted(tensors: Iterable[ComparedTensor]) -> dict[Hashable, list[ComparedTensor]]:
    found: dict[Hashable, list[ComparedTensor]] = {}
    for one in tensors:
        found.setdefault((one.shape, one.sharding), []).append(one)
    return found


def _change(before: Sequence[ComparedTensor], after: Sequence[ComparedTensor]) -> Change:
    first = (*before, *after)[0]
    return Change(
        kind=first.kind,
        name=first.name,
        shape=(after or before)[0].shape,
        dtype=first.dtype,
        before=before[0].sharding if before else None,
        after=after[0].sharding if after else None,
        count_before=len(before),
        count_after=len(after),
        bytes_before=_size(before),
        bytes_after=_size(after),
    )


def _size(tensors: Sequence[ComparedTensor]) -> int | None:
    known = [one.size for one in tensors if one.size is not None]
    return sum(known) if known else None


def joined_changes(changes: Sequence[Change]) -> Iterator[Change]:
    """The changes, with equal changes of values merged, because unrolled layers have the same source lines."""
    together: dict[Hashable, list[Change]] = {}
    for number, one in enumerate(changes):
        is_there = bool(one.count_before), bool(one.count_after)
        key = (one.name, one.shape, one.before, one.after, is_there) if one.kind == "value" else number
        together.setdefault(key, []).append(one)
    for group in together.values():
        first = group[0]
        counts = sum(one.count_before for one in group), sum(one.count_after for one in group)
        yield (
            first
            if len(group) == 1
            else Change(*(first.kind, first.name, first.shape, first.dtype, first.before, first.after), *counts)
        )


# What the devices send


def communication_of(before: ProgramResult, after: ProgramResult) -> Communication:
    """The differences in traffic; partitions the programs that are not partitioned yet."""
    try:
        one, other = before.per_device, after.per_device
        totals = (
            Total("sent in collectives", one.traffic.sent_bytes_per_device, other.traffic.sent_bytes_per_device),
            Total("held at most", one.bytes_per_device, other.bytes_per_device),
        )
        return Communication(tuple(compare_traffic(one.traffic, other.traffic)), totals)
    except ShardyError as error:
        return Communication(unknown=" ".join(str(error).split()))


def compare_traffic(before: Traffic, after: Traffic) -> list[CollectiveChange]:
    """The collectives that were added, removed or changed, the largest difference first."""
    left, right = _groups(before), _groups(after)
    found = []
    for key in {**left, **right}:
        one, other = left.get(key, []), right.get(key, [])
        if Counter(map(_essence, one)) != Counter(map(_essence, other)):
            found.append(_collective_change(one, other))
    return sorted(found, key=lambda change: -abs(change.bytes_after - change.bytes_before))


def _groups(traffic: Traffic) -> dict[Hashable, list[CollectiveRow]]:
    found: dict[Hashable, list[CollectiveRow]] = {}
    for row in traffic.collectives:
        place = None if row.place is None else row.place[:2]
        found.setdefault((row.kind, row.axes, row.cause, place), []).append(row)
    return found


def _essence(row: CollectiveRow) -> Hashable:
    return row.times, row.sent_bytes_per_device, row.shape_before, row.shape_after, row.dtype, row.is_counted


def _collective_change(before: Sequence[CollectiveRow], after: Sequence[CollectiveRow]) -> CollectiveChange:
    first = (*before, *after)[0]
    return CollectiveChange(
        kind=first.kind,
        axes=first.axes,
        cause=first.cause,
        place=first.place,
        ops=tuple(dict.fromkeys(row.op for row in (*before, *after) if row.op is not None)),
        count_before=sum(row.times for row in before),
        count_after=sum(row.times for row in after),
        bytes_before=sum(row.total_bytes for row in before),
        bytes_after=sum(row.total_bytes for row in after),
    )
