"""The plain data of the tables of a propagated program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import format_shape
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.nodes import walk
from pyshardy.ir.shardings import get_sharding
from pyshardy.report.replications import replications_line
from pyshardy.report.specs import format_sharding
from pyshardy.report.summary import Summary, TensorRow, Undivided

if TYPE_CHECKING:
    from pyshardy.results.program_result import ProgramResult

_ByPosition = dict[int, TensorSharding | None]


def summarize(propagation: ProgramResult) -> Summary:
    """The summary of a propagated program."""
    sharded = replicated = 0
    for op in walk(propagation.module.root):
        for result in op.results:
            if result.type.is_ranked_tensor:
                is_sharded = _splits(get_sharding(result))
                sharded, replicated = sharded + is_sharded, replicated + (not is_sharded)
    given, meshes = propagation.sharded.annotations, propagation.meshes
    sides = zip((propagation.inputs, propagation.outputs), (given.inputs, given.outputs), _at_borders(propagation))
    inputs, outputs = (
        tuple(_row(one, annotated[one.index], wanted.get(one.index), given.meshes, meshes) for one in tensors)
        for tensors, annotated, wanted in sides
    )
    return Summary(
        title=propagation.title,
        meshes=tuple((name, mesh) for name, mesh in meshes.items() if mesh.axes),
        inputs=inputs,
        outputs=outputs,
        tensors_sharded=sharded,
        tensors_replicated=replicated,
        stages=propagation.stages,
        compiler="" if propagation.answer is None else str(propagation.answer),
        replicated=replications_line(propagation.replications),
        stand_in=propagation.stand_in,
        warnings=(
            *propagation.diagnostic_texts(),
            *_lost("input", inputs),
            *_lost("output", outputs),
        ),
    )


def _lost(side: str, rows: Iterable[TensorRow]) -> Iterator[str]:
    """Messages for annotations that propagation had to reduce, because inputs and outputs have even shards."""
    for row in rows:
        if row.bytes_per_device > row.bytes_per_device_before:
            sharding, shape = format_sharding(row.sharding), format_shape(row.shape, row.dtype)
            yield f"{side} {row.name} is split less than annotated: {sharding} divides {shape} evenly"


def _at_borders(propagation: ProgramResult) -> tuple[_ByPosition, _ByPosition]:
    """The shardings that propagation gave to inputs and outputs, before these got even shards, by position."""
    if not propagation.sharded.runs:
        return {}, {}
    _, places, propagated, _ = propagation.sharded.runs[-1]
    inputs, outputs = (
        {index: propagated.shardings[value] for index, value in found.items()} for found in places.borders()
    )
    return inputs, outputs


def _undivided(sharding: TensorSharding | None, wanted: TensorSharding | None) -> Iterator[Undivided]:
    """What a sharding lacks of the one that propagation gave."""
    if sharding is None or wanted is None:
        return
    for dimension, (kept, before) in enumerate(zip(sharding.dims, wanted.dims)):
        if kept.axes != before.axes:
            yield Undivided(dimension, tuple(map(str, before.axes)), tuple(map(str, kept.axes)))


def _row(
    tensor: InterfaceTensor,
    given: TensorSharding | None,
    wanted: TensorSharding | None,
    meshes_before: Mapping[str, Mesh],
    meshes: Mapping[str, Mesh],
) -> TensorRow:
    local = _local_shape(tensor, tensor.sharding, meshes)
    shapes = tensor.shape, local, _local_shape(tensor, given, meshes_before)
    try:
        total, per_device, before = (tensor_bytes(shape, tensor.element) for shape in shapes)
    except InvalidModuleError as error:
        raise error.located(error.doing, tensor.name) from None
    return TensorRow(
        name=tensor.name,
        shape=tensor.shape,
        dtype=tensor.element,
        sharding=tensor.sharding,
        local_shape=local,
        bytes_total=total,
        bytes_per_device=per_device,
        bytes_per_device_before=before,
        is_inferred=_splits(tensor.sharding) and not _splits(given),
        undivided=tuple(_undivided(tensor.sharding, wanted)),
    )


def _local_shape(
    tensor: InterfaceTensor, sharding: TensorSharding | None, meshes: Mapping[str, Mesh]
) -> tuple[int, ...]:
    return tensor.shape if sharding is None else local_shape(sharding, mesh_of(sharding, meshes), tensor.shape)


def _splits(sharding: TensorSharding | None) -> bool:
    return sharding is not None and not sharding.is_fully_replicated
