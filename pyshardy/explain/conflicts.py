"""Conflicts between shardings in words: the tensor to reshard, the tensor that keeps its axes, and the bytes sent.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyshardy.core.alike import common, general_text
from pyshardy.core.axes import Axes
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import format_bytes, quote
from pyshardy.explain.mismatches import DECIDED_BY_LAST, Mismatch, mismatches, value_shape
from pyshardy.explain.why import Why
from pyshardy.explain.words import axes_text, dims_text
from pyshardy.propagation.origins import CONSTRAINT


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict between two shardings.

    Attributes:
        text: The conflict in words, with its bytes.
        op: Full name of the op.
        scope: The name that JAX gave it.
        file: The file of the user's program.
        line: The line there.
        loser: The value that must be resharded.
        has: Its sharding.
        needs: The sharding that the op needs.
        winner: The value that keeps its axes; None if the op itself is the reason.
        bytes_per_device: The most bytes that a device sends per reshard.
    """

    text: str
    op: str
    scope: str | None
    file: str | None
    line: int
    loser: str
    has: str
    needs: str
    winner: str | None
    bytes_per_device: int

    @property
    def reason(self) -> str:
        """The conflict in words, without its bytes."""
        return self.text.rpartition(" (")[0]

    def to_json(self) -> dict[str, Any]:
        """The conflict as JSON-ready data; the keys are the names of the attributes."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Conflicts:
    """All conflicts of a program, those that send most bytes first; `str` lists equal ones of all layers as one."""

    rows: tuple[Conflict, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Conflict]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Conflict:
        return self.rows[index]

    def to_json(self) -> dict[str, Any]:
        """The conflicts as JSON-ready data."""
        return {"conflicts": [row.to_json() for row in self.rows]}

    def __str__(self) -> str:
        if not self.rows:
            return "no conflicts: all shardings that meet agree"
        alike: dict[object, list[Conflict]] = {}
        for row in self.rows:
            if row.bytes_per_device:
                alike.setdefault((general_text(row.reason), row.bytes_per_device), []).append(row)
        groups = sorted(alike.values(), key=lambda rows: -len(rows) * rows[0].bytes_per_device)
        lines = [f"{number}. {_folded(rows)}" for number, rows in enumerate(groups, 1)]
        silent = sum(not row.bytes_per_device for row in self.rows)
        if silent:
            more = "more " if groups else ""
            lines.append(f"{silent} {more}{'conflict sends' if silent == 1 else 'conflicts send'} nothing")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def _folded(rows: Sequence[Conflict]) -> str:
    """Conflicts that are the same in all layers, as one sentence."""
    if len(rows) == 1:
        return rows[0].text
    return (
        f"{common(row.reason for row in rows)} ({format_bytes(rows[0].bytes_per_device)} per device, {len(rows)} times)"
    )


def find_conflicts(why: Why) -> Conflicts:
    """All conflicts of a program, ranked by the bytes of their reshards."""
    found = sorted(mismatches(why), key=lambda one: (-one.bytes_per_device, one.op, one.tensor))
    return Conflicts(tuple(_conflict(why, one) for one in found))


def _conflict(why: Why, mismatch: Mismatch) -> Conflict:
    label, names = why.names.label(mismatch.op), why.names
    rank = len(value_shape(why, mismatch.value) or ())
    winner = None
    if mismatch.winner is not None:
        winner = names.value(why.subject.tensors(mismatch.op)[mismatch.winner])
    return Conflict(
        text=f"{mismatch_text(why, mismatch)} ({format_bytes(mismatch.bytes_per_device)} per device)",
        op=label.name,
        scope=label.scope,
        file=label.file,
        line=label.line,
        loser=names.value(mismatch.value),
        has=dims_text(mismatch.has, rank),
        needs=dims_text(mismatch.needs, rank),
        winner=winner,
        bytes_per_device=mismatch.bytes_per_device,
    )


def mismatch_text(why: Why, mismatch: Mismatch) -> str:
    """The sentence on a conflict: both shardings, what the op needs, which tensor decides, and how far axes reach."""
    rule = why.subject.kind(mismatch.op).rule if mismatch.op < why.subject.op_count else None
    is_result = rule is not None and mismatch.tensor >= len(rule.operands)
    reach = _reach_text(why, mismatch.has)
    return _conflict_text(why, mismatch) + (f"; {'after' if is_result else 'before'}, {reach}" if reach else "")


def _reach_text(why: Why, has: TensorSharding | None) -> str:
    """How many ways of axes split dimensions that have only parts of them; empty if there are none."""
    if has is None:
        return ""
    mesh = mesh_of(has, why.subject.program.meshes)
    parts = [
        f"{axis.length(mesh)} of {mesh.axis_size(axis.name)} ways of {quote(axis.name)} split dimension {dim}"
        for dim, axes in enumerate(has.dim_axes)
        for axis in axes
        if not axis.is_full
    ]
    return " and ".join(parts)


def _conflict_text(why: Why, mismatch: Mismatch) -> str:
    names, subject = why.names, why.subject
    rank = len(value_shape(why, mismatch.value) or ())
    has, needs = dims_text(mismatch.has, rank), dims_text(mismatch.needs, rank)
    loser = names.value(mismatch.value)
    kind = subject.kind(mismatch.op)
    if mismatch.op >= subject.op_count:
        output = subject.tensors(mismatch.op)[-1]
        return f"{loser} is {has}, and the output {names.value(output)} is to be {needs}{_why_otherwise(why, output)}"
    if kind.name == CONSTRAINT:
        return f"{loser} is {has}, and the {names.op(mismatch.op)} says {needs}"
    if kind.name in DECIDED_BY_LAST:
        return f"{loser} is {has}, and {names.op(mismatch.op)} needs it as {needs}"
    assert kind.rule is not None
    if mismatch.tensor >= len(kind.rule.operands):
        head = f"{names.op(mismatch.op)} gives its result as {needs}, which is then needed as {has}"
    else:
        head = f"{loser} is {has}, and {names.op(mismatch.op)} needs it as {needs}"
    if mismatch.winner is None:
        return f"{head}, because the op cannot run on it as it is split"
    winner = subject.tensors(mismatch.op)[mismatch.winner]
    shape = value_shape(why, winner) or ()
    name = "its result" if mismatch.winner >= len(kind.rule.operands) else names.value(winner)
    if winner == mismatch.value:
        return head
    return f"{head}, because {name} is {dims_text(subject.sharding(winner), len(shape))}"


def _why_otherwise(why: Why, output: int) -> str:
    """Why an output is not sharded as propagation found, if its user has not asked for that."""
    found, final = why.subject.sharding(output), why.subject.final_sharding(output)
    if found is None or output in why.subject.given or (final is not None and final.dim_axes == found.dim_axes):
        return ""
    has_parts = any(not axis.is_full for axes in found.dim_axes for axis in axes)
    return f", because inputs and outputs have {'no parts of axes' if has_parts else 'shards of one size'}"


def has_text(name: str, dim: int, axes: Axes) -> str:
    """A clause that says which axes a value has on a dimension."""
    return f"{name} has {axes_text(axes)} on dimension {dim}"
