"""Finds constraints with which a compiler does not replicate a tensor, by asking it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.compilers.ask import ask, partitioned_module
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes
from pyshardy.errors import ShardyError
from pyshardy.frontend.compiled import replications_of
from pyshardy.ir.causes import scope_of
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.traffic import frames_of
from pyshardy.report.places import user_place
from pyshardy.report.replications import Replication
from pyshardy.report.specs import format_sharding, sharding_to_json
from pyshardy.reshard.detours import detours
from pyshardy.results.partition import Partition, traffic_by_compiler

_CONSTRAINT = "sdy.sharding_constraint"
_GRADIENT = "transpose("
_LESS = 0.5
"""A remedy removes at least this fraction of the replicated bytes."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Constraints with which a compiler goes from one sharding to another without replicating the tensor, as tried.

    Attributes:
        replication: The tensor that is replicated without them.
        shardings: What `with_sharding_constraint` gets, in order.
        sent_bytes: The bytes that every device sends, before and after.
        replicated_bytes: The bytes of all tensors that are gathered whole on every device, before and after.
    """

    replication: Replication
    shardings: tuple[TensorSharding, ...]
    sent_bytes: tuple[int, int]
    replicated_bytes: tuple[int, int]

    def __str__(self) -> str:
        steps = ", then ".join(f"jax.lax.with_sharding_constraint(x, {format_sharding(one)})" for one in self.shardings)
        sent = " to ".join(map(format_bytes, self.sent_bytes))
        whole = " to ".join(map(format_bytes, self.replicated_bytes))
        return (
            f"to avoid it: {steps}, where x is the result of {self.replication.name}. "
            f"Tried: what every device sends falls from {sent}, and what is gathered whole from {whole}"
        )

    def to_json(self) -> dict[str, Any]:
        """The remedy as JSON-ready data."""
        return {
            "instruction": self.replication.instruction,
            "constraints": [sharding_to_json(one) for one in self.shardings],
            "sent_bytes": list(self.sent_bytes),
            "replicated_bytes": list(self.replicated_bytes),
        }


def remedies(part: Partition, most: int = 3) -> tuple[Remedy, ...]:
    """For each of the largest tensors that a compiler replicates, the constraints that avoid it best.

    Args:
        part: A program that a compiler partitioned.
        most: The number of tensors to try.
    """
    name, mesh = next((name, mesh) for name, mesh in part.meshes.items() if mesh.axes)
    found = []
    for replication in part.replications[:most]:
        tried = [one for one in _tried(part, replication, name, mesh) if _is_worth(one)]
        if tried:
            found.append(min(tried, key=lambda one: (one.replicated_bytes[1], one.sent_bytes[1], len(one.shardings))))
    return tuple(found)


def _is_worth(remedy: Remedy) -> bool:
    (before, after), (sent, sends) = remedy.replicated_bytes, remedy.sent_bytes
    return before - after >= _LESS * remedy.replication.bytes and sends < sent


def _tried(part: Partition, replication: Replication, name: str, mesh: Mesh) -> Iterator[Remedy]:
    """The ways from the sharding before to the one after, each tried with the compiler."""
    before, after = replication.before, replication.after
    if before is None or after is None or _GRADIENT in (replication.op or ""):
        return
    sent, whole = part.traffic.sent_bytes_per_device, sum(one.bytes for one in part.replications)
    for way in detours(before, after, mesh, replication.shape):
        shardings = [one.with_mesh(name) for one in way]
        module = _with_constraints(part.before, replication, shardings)
        if module is None:
            return
        try:
            answer = ask(module, part.propagate_options.compiler)
            traffic = traffic_by_compiler(partitioned_module(answer, module), part.meshes)
        except ShardyError:
            continue
        then = sum(one.bytes for one in replications_of(answer, part.meshes))
        yield Remedy(replication, tuple(way), (sent, traffic.sent_bytes_per_device), (whole, then))


def _with_constraints(module: Module, replication: Replication, shardings: Sequence[TensorSharding]) -> Module | None:
    """The user's module with constraints on a tensor; None if it is not found there."""
    root = module.copy_root()
    makers = [op for op in walk(root) if _makes(op, replication, module.name)]
    for op in makers:
        value, last = op.result, op
        for sharding in shardings:
            constraint = Op(_CONSTRAINT, [value], [value.type], {"sharding": sharding}, location=op.location)
            constraint.insert_after(last)
            value.replace_other_uses(constraint)
            value, last = constraint.result, constraint
    return module.with_root(root) if makers else None


def _makes(op: Op, replication: Replication, name: str) -> bool:
    """Whether an op of the user's module makes a tensor that is replicated: by its name, line and shape."""
    if len(op.results) != 1 or op.result.type.shape != replication.shape or scope_of(op.location) != replication.op:
        return False
    if op.result.type.element != replication.dtype:
        return False
    place = user_place(frames_of(op, name))
    return replication.place is None or (place is not None and place[:2] == replication.place[:2])
