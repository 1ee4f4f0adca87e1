"""The collectives of a per-device program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshardy.core.collectives import CollectiveKind, sent_by_device
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.core.text import format_symbol
from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.device_groups import Grouping, grouping, is_along_axes, moves
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.locations import scope_of, source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.run_counts import Runs, counted_ops, run_counts
from pyshardy.ir.shardings import module_meshes
from pyshardy.source.places import user_place

_RAGGED = "stablehlo.custom_call"
_KINDS = {f"stablehlo.{kind.value}": kind for kind in CollectiveKind} | {_RAGGED: CollectiveKind.RAGGED_ALL_TO_ALL}


def is_collective(op: Op) -> bool:
    """Whether several devices take part in an op."""
    return op.name in _KINDS and (op.name != _RAGGED or _is_ragged(op))


def _is_ragged(op: Op) -> bool:
    return CollectiveKind.RAGGED_ALL_TO_ALL.value in str(op.attrs.get("call_target_name"))


def collectives_of(
    root: Op, meshes: Meshes, name: str = "-", compiler: CompilerCauses | None = None
) -> list[CollectiveRow]:
    """The collectives of a per-device program that the main function reaches, in program order.

    At most one branch of a conditional runs; the branch that sends most bytes is counted.

    Args:
        root: The module; groups of devices may refer to its meshes.
        meshes: The meshes that shardings are on, by name, to express groups that are lists of devices.
        name: The name of the text that the program was read from; MLIR calls it "-".
        compiler: What collectives are for, if a compiler partitioned the program.
    """
    reader = TrafficReader(root, meshes)
    counts = run_counts(root, is_collective, reader.sent_bytes)
    ops = counted_ops(root, counts)
    return [_row(op, reader.groups(op), reader.sent_bytes(op), counts[op], name, compiler) for op in ops]


class TrafficReader:
    """The traffic of collectives; groups that many of them share are read once."""

    def __init__(self, root: Op, meshes: Meshes) -> None:
        self._by_lists = {name: mesh for name, mesh in meshes.items() if mesh.axes}
        self._by_name = {**module_meshes(root), **meshes}
        self._groups: dict[Any, Grouping] = {}

    def mesh(self, name: str) -> Mesh | None:
        """The mesh of a name; None if there is none."""
        return self._by_name.get(name)

    def kind(self, op: Op) -> str:
        """The kind of a collective, such as "all_gather"."""
        return _KINDS[op.name].value

    def groups(self, op: Op) -> Grouping:
        """The groups of devices."""
        attrs: Any = op.attrs["backend_config"] if op.name == _RAGGED else op.attrs
        pairs = None if op.name == _RAGGED else attrs.get("source_target_pairs")
        key = (pairs is None, attrs["replica_groups"] if pairs is None else pairs)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = self._read_groups(*key)
        return found

    def _read_groups(self, are_groups: bool, attr: Any) -> Grouping:
        if not are_groups:
            return moves(attr, self._by_lists)
        return grouping(attr, self._by_name if is_along_axes(attr) else self._by_lists)

    def sent_bytes(self, op: Op) -> int:
        """Bytes that every device sends per run."""
        kind, size = _KINDS[op.name], self.groups(op).size
        if op.name == _RAGGED:  # the other operands say which rows go where
            return sent_by_device(kind, _bytes(op.operands[0]), _bytes(op.operands[0]), size)
        return sum(sent_by_device(kind, _bytes(a), _bytes(b), size) for a, b in zip(op.operands, op.results))


def _row(
    op: Op, groups: Grouping, sent_bytes: int, runs: Runs, name: str, compiler: CompilerCauses | None
) -> CollectiveRow:
    before, after = op.operands[0].type, op.results[0].type
    served = op if compiler is None else compiler.served(op)
    frames = source_frames(served.location, name)
    need = op.need if compiler is None else None
    return CollectiveRow(
        kind=_KINDS[op.name].value,
        mesh=None if groups.mesh_name is None else format_symbol(groups.mesh_name),
        axes=None if groups.axes is None else tuple(map(str, groups.axes)),
        group_size=groups.size,
        dtype=before.element,
        shape_before=before.shape or (),
        shape_after=after.shape or (),
        sent_bytes_per_device=sent_bytes,
        times=runs.times,
        is_in_loop=runs.is_in_loop,
        is_lower_bound=not runs.is_exact,
        is_counted=runs.is_counted,
        op=scope_of(served.location),
        cause=compiler.cause(op) if compiler is not None else None if need is None else str(need),
        source=frames[0] if frames else None,
        user_source=user_place(frames),
        windowed=None if compiler is None else compiler.windowed(op),
        need=need,
    )


def _bytes(value: Value) -> int:
    type = value.type
    return tensor_bytes(type.shape, type.element) if type.is_static and type.shape is not None else 0


def traffic_by_compiler(module: Module, meshes: Mapping[str, Mesh]) -> Traffic:
    """The collectives of a program that a compiler partitioned, with the op that each location names."""
    return Traffic(tuple(collectives_of(module.root, dict(meshes), module.name, CompilerCauses(module.root))))
