"""Finds constraints with which a compiler does not replicate tensors, by asking it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from pyshardy.compilers.ask import ask, partitioned_module
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes
from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import scope_of, source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.source_values import SourceValue, constrained, source_values
from pyshardy.ir.traffic import traffic_by_compiler
from pyshardy.report.replications import Replication
from pyshardy.report.specs import format_sharding, sharding_to_json
from pyshardy.reshard.detours import detours
from pyshardy.results.compiled import replications_of
from pyshardy.results.program_result import PerDevice
from pyshardy.source.places import format_place, user_place

_CONSTRAINT = "sdy.sharding_constraint"
_GRADIENT = "transpose("
_LESS = 0.5
"""A remedy removes at least this fraction of the bytes of its tensor."""
_SENT = 0.8
"""Or every device sends at most this fraction of the bytes."""
_WORDS = 1.05
"""A remedy of several constraints has to send less by this factor than one of a single constraint."""
_MOST_TRIES = 10
"""The most ways to try per tensor."""
_MOST_ELSEWHERE = 1
"""The expressions of the tensor's shape at other lines that are tried alone, in program order."""
_MOST_SHOWN = 3
"""The number of constraints in a sentence."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Constraints with which a compiler does not replicate a tensor, as tried.

    Attributes:
        replication: The tensor that is replicated without them.
        constraints: Pairs of a place in the source, in words, and the sharding for `with_sharding_constraint` there.
        sent_bytes: The bytes that every device sends, before and after.
        replicated_bytes: The bytes of all tensors that are gathered whole on every device, before and after.
        module: The program with the constraints.
    """

    replication: Replication
    constraints: tuple[tuple[str, TensorSharding], ...]
    sent_bytes: tuple[int, int]
    replicated_bytes: tuple[int, int]
    module: Module = field(repr=False, compare=False)

    @property
    def what_helps(self) -> str:
        """The constraints in words."""
        shown = [
            f"jax.lax.with_sharding_constraint(..., {format_sharding(sharding)}) {place}"
            for place, sharding in self.constraints[:_MOST_SHOWN]
        ]
        left = len(self.constraints) - _MOST_SHOWN
        return "; ".join([*shown, *([f"and {left} more alike"] if left > 0 else [])])

    def __str__(self) -> str:
        sent, whole = (
            " instead of ".join(map(format_bytes, reversed(pair))) for pair in (self.sent_bytes, self.replicated_bytes)
        )
        return f"what helps: {self.what_helps}. Tried: every device sends {sent}, and {whole} is gathered whole"

    def to_json(self) -> dict[str, Any]:
        """The remedy as JSON-ready data."""
        return {
            "instruction": self.replication.instruction,
            "constraints": [{"where": place, **sharding_to_json(sharding)} for place, sharding in self.constraints],
            "sent_bytes": list(self.sent_bytes),
            "replicated_bytes": list(self.replicated_bytes),
        }


class _Try(NamedTuple):
    """A program with constraints, and what they are."""

    module: Module
    constraints: tuple[tuple[str, TensorSharding], ...]


def remedies(part: PerDevice, most: int = 3) -> tuple[Remedy, ...]:
    """For each of the largest tensors that a compiler replicates, the constraints that avoid it best.

    One remedy may help several tensors; if it leaves no tensor replicated, the search ends.

    Args:
        part: A program that a compiler partitioned.
        most: The number of tensors to try.
    """
    name, mesh = next((name, mesh) for name, mesh in part.meshes.items() if mesh.axes)
    found: list[Remedy] = []
    seen: set[Any] = set()
    for replication in part.replications:
        key = replication.op, replication.place, replication.shape, replication.before, replication.after
        if len(seen) == most or (found and not found[-1].replicated_bytes[1]):
            break
        if key in seen:
            continue
        seen.add(key)
        tries = islice(_tries(part.before, replication, name, mesh), _MOST_TRIES)
        tried = [one for one in (_tried(part, replication, one) for one in tries) if one is not None and _is_worth(one)]
        if tried:
            found.append(min(tried, key=_price))
    return tuple(found)


def _is_worth(remedy: Remedy) -> bool:
    (before, after), (sent, sends) = remedy.replicated_bytes, remedy.sent_bytes
    return sends < sent and (before - after >= _LESS * remedy.replication.bytes or sends <= _SENT * sent)


def _price(remedy: Remedy) -> float:
    return remedy.sent_bytes[1] * (1 if len(remedy.constraints) == 1 else _WORDS)


def _tried(part: PerDevice, replication: Replication, one: _Try) -> Remedy | None:
    """What the compiler makes of a program with constraints; None if it refuses it."""
    compiler = part.propagate_options.compiler
    assert compiler
    try:
        answer = ask(one.module, compiler)
        traffic = traffic_by_compiler(partitioned_module(answer, one.module), part.meshes)
    except ShardyError:
        return None
    sent = part.traffic.sent_bytes_per_device, traffic.sent_bytes_per_device
    whole = [sum(found.bytes for found in side) for side in (part.replications, replications_of(answer, part.meshes))]
    return Remedy(replication, one.constraints, sent, (whole[0], whole[1]), one.module)


def _tries(module: Module, replication: Replication, name: str, mesh: Mesh) -> Iterator[_Try]:
    """Programs with constraints that may avoid a replication: one axis moves at a time, or one sharding stays."""
    before, after = replication.before, replication.after
    if before is None or after is None:
        return
    alike = [one for one in source_values(module.root) if one.shape == replication.shape]
    here = [one for one in alike if replication.place is not None and _place(one)[:2] == replication.place[:2]]
    ways = [[one.with_mesh(name) for one in way] for way in detours(before, after, mesh, replication.shape)]
    single = [way[0] for way in ways if len(way) == 1]
    for value in here:
        yield from (_constrained(module, [value], sharding) for sharding in single)
    if replication.op is not None and _GRADIENT not in replication.op:
        for way in ways:
            detour = _with_constraints(module, replication, way)
            if detour is not None:
                yield detour
    for value in [one for one in alike if one not in here][:_MOST_ELSEWHERE]:
        yield from (_constrained(module, [value], sharding) for sharding in single)
    sets = [values for values in (here, alike[:1], alike) if values]
    distinct = [values for place, values in enumerate(sets) if values not in sets[:place]]
    for values in distinct:
        for sharding in (before, after):
            yield _constrained(module, values, sharding.with_mesh(name))


def _constrained(module: Module, values: Sequence[SourceValue], sharding: TensorSharding) -> _Try:
    """The program with constraints around expressions, which hold for the gradients of their values, too."""
    places = tuple((f"around the expression at {_columns(value)}", sharding) for value in values)
    return _Try(constrained(module, [(value, sharding) for value in values]), places)


def _place(value: SourceValue) -> tuple[str, int, int]:
    return value.span.file, value.span.line, value.span.column


def _columns(value: SourceValue) -> str:
    span = value.span
    end = f"{span.end_column}" if span.end_line == span.line else f"line {span.end_line}, {span.end_column}"
    return f"{format_place(_place(value))}, columns {span.column} to {end}"


def _with_constraints(module: Module, replication: Replication, shardings: Sequence[TensorSharding]) -> _Try | None:
    """The user's module with constraints on a tensor, one after the other; None if it is not found there."""
    root = module.copy_root()
    values = [op.result for op in walk(root) if _makes(op, replication, module.name)]
    if replication.place is None:
        arguments = main_function(root).region.blocks[0].args
        values += [arguments[one.index] for one in input_tensors(root) if one.name == replication.op]
    for value in values:
        _constrain(value, shardings)
    where = f"on {replication.name}"
    return _Try(module.with_root(root), tuple((where, one) for one in shardings)) if values else None


def _constrain(value: Value, shardings: Sequence[TensorSharding]) -> None:
    """Put constraints between a value and all its users, one after the other."""
    block, last = value.block, value.defining_op
    for sharding in shardings:
        where = value.location if last is None else last.location
        constraint = Op(_CONSTRAINT, [value], [value.type], {"sharding": sharding}, location=where)
        if last is None:
            block.prepend(constraint)
        else:
            constraint.insert_after(last)
        value.replace_other_uses(constraint)
        value, last = constraint.result, constraint


def _makes(op: Op, replication: Replication, name: str) -> bool:
    """Whether an op of the user's module makes a tensor that is replicated: by its name, line and shape."""
    if len(op.results) != 1 or op.result.type.shape != replication.shape or scope_of(op.location) != replication.op:
        return False
    if op.result.type.element != replication.dtype:
        return False
    place = user_place(source_frames(op.location, name))
    return replication.place is None or (place is not None and place[:2] == replication.place[:2])
