"""Conflicts between shardings: the tensor to reshard, the tensor that keeps its axes, and the bytes sent.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from pyshardy.core.alike import common, general_text
from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import lists_overlap
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import format_bytes, quote
from pyshardy.errors import ShardyError
from pyshardy.explain.names import EDGE
from pyshardy.explain.why import Why
from pyshardy.explain.words import axes_text, dims_text
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.propagation.views import to_other_side
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.factors import project_tensors
from pyshardy.reshard.plan import OpInput, OpPlan, plan_op
from pyshardy.rules.rule import FactorKind, Rule

_IDENTITIES = frozenset((CONSTRAINT, EDGE, "sdy.func_data_flow_edge", "func.return"))
"""Ops whose last tensor decides the shardings of all others."""
_BARRIER = "sdy.propagation_barrier"


class Mismatch(NamedTuple):
    """A tensor of an op that must be resharded.

    Attributes:
        op: The op, or the number of a result of the main function.
        tensor: The number of the tensor, operands first.
        value: The value.
        has: Its sharding.
        needs: The sharding that the op needs; for a result, the sharding that the op gives it.
        winner: The number of the tensor that keeps its axes instead; None if the op itself is the reason.
        bytes_per_device: The most bytes that a device sends to reshard it.
    """

    op: int
    tensor: int
    value: int
    has: TensorSharding | None
    needs: TensorSharding
    winner: int | None
    bytes_per_device: int


def mismatches(why: Why) -> Iterator[Mismatch]:
    """All conflicts between two shardings, in program order."""
    subject = why.subject
    meshes = subject.program.meshes
    plans: dict[OpInput, OpPlan | None] = {}
    count = subject.op_count + len(subject.program.main_results)
    for op in range(count):
        kind = subject.kind(op)
        if kind.rule is None or kind.name == _BARRIER or op in subject.erased:
            continue
        values = subject.tensors(op)
        shardings = [subject.sharding(value) if value >= 0 else None for value in values]
        if not any(shardings):
            continue
        if kind.name in _IDENTITIES:
            yield from _identity(why, op, values, shardings)
            continue
        if kind.rule.is_custom:
            continue
        key = OpInput(kind.name, kind.rule, tuple([_shape(why, value) for value in values]), tuple(shardings), True)
        if key not in plans:
            try:
                plans[key] = plan_op(key, meshes)
            except ShardyError:  # partitioning says so
                plans[key] = None
        plan = plans[key]
        if plan is not None and any(plan.targets):
            yield from _of_plan(why, op, kind.rule, values, shardings, plan)


def _shape(why: Why, value: int) -> tuple[int, ...] | None:
    return why.subject.program.shapes[value] if value >= 0 else None


def _identity(why: Why, op: int, values: Sequence[int], shardings: list[TensorSharding | None]) -> Iterator[Mismatch]:
    view = why.subject.program.views.get(op)
    target = to_other_side(view, shardings[-1]) if view is not None else shardings[-1]
    if op >= why.subject.op_count:
        target = why.subject.final_sharding(values[-1]) or target
    if target is None:
        return
    for tensor, (value, has) in enumerate(zip(values[:-1], shardings[:-1])):
        if not is_equivalent(has or TensorSharding.fully_replicated(target.mesh, target.rank), target):
            yield Mismatch(op, tensor, value, has, target, len(values) - 1, _bytes(why, value, has, target))


def _of_plan(
    why: Why, op: int, rule: Rule, values: Sequence[int], shardings: list[TensorSharding | None], plan: OpPlan
) -> Iterator[Mismatch]:
    mesh = mesh_of(next(one for one in plan.targets if one is not None), why.subject.program.meshes)
    for tensor, target in enumerate(plan.targets):
        if target is None or values[tensor] < 0:
            continue
        has, value = shardings[tensor], values[tensor]
        is_result = tensor >= len(rule.operands)
        sent = _bytes(why, value, target, has) if is_result else _bytes(why, value, has, target)
        winner = _winner(rule, tensor, shardings, target, mesh)
        yield Mismatch(op, tensor, value, has, target, winner, sent)


def _winner(
    rule: Rule, loser: int, shardings: Sequence[TensorSharding | None], target: TensorSharding, mesh: Mesh
) -> int | None:
    """The tensor whose axes the resharded tensor must follow, or that uses its axes elsewhere."""
    before = project_tensors(rule, shardings, mesh)
    after = project_tensors(rule, [target if tensor == loser else one for tensor, one in enumerate(shardings)], mesh)
    axes = [{factor: state.axes for factor, state in one.factors.items()} for one in before]
    wanted = {factor: state.axes for factor, state in after[loser].factors.items()}
    changed = [factor for factor, found in wanted.items() if found != axes[loser].get(factor, ())]
    others = [tensor for tensor in range(len(shardings)) if tensor != loser]
    for factor in changed:
        for tensor in others:
            if wanted[factor] and axes[tensor].get(factor) == wanted[factor]:
                return tensor
    for factor in changed:
        lost: Axes = axes[loser].get(factor, ())
        for tensor in others:
            if any(lists_overlap(lost, found) for other, found in axes[tensor].items() if other != factor):
                return tensor
        for tensor in others:
            if lost and axes[tensor].get(factor) == wanted[factor]:
                return tensor
    return None


def _bytes(why: Why, value: int, before: TensorSharding | None, after: TensorSharding | None) -> int:
    """The bytes that every device sends for a reshard; 0 if collectives cannot do it."""
    shape, meshes = _shape(why, value), why.subject.program.meshes
    some = after or before
    if shape is None or some is None or -1 in shape:
        return 0
    after = after or TensorSharding.fully_replicated(some.mesh, len(shape))
    mesh = mesh_of(after, meshes)
    try:
        steps = plan_collectives(before, after, None if before is None else mesh_of(before, meshes), mesh, shape)
    except ShardyError:
        return 0
    size = why.subject.size_in_bytes(value)
    return sum(step.sent_bytes_per_device(size, shape, mesh_of(step.after, meshes)) for step in steps or ())


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
    rank = len(_shape(why, mismatch.value) or ())
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
    rank = len(_shape(why, mismatch.value) or ())
    has, needs = dims_text(mismatch.has, rank), dims_text(mismatch.needs, rank)
    loser = names.value(mismatch.value)
    kind = subject.kind(mismatch.op)
    if mismatch.op >= subject.op_count:
        output = subject.tensors(mismatch.op)[-1]
        return f"{loser} is {has}, and the output {names.value(output)} is to be {needs}{_why_otherwise(why, output)}"
    if kind.name == CONSTRAINT:
        return f"{loser} is {has}, and the {names.op(mismatch.op)} says {needs}"
    if kind.name in _IDENTITIES:
        return f"{loser} is {has}, and {names.op(mismatch.op)} needs it as {needs}"
    assert kind.rule is not None
    if mismatch.tensor >= len(kind.rule.operands):
        head = f"{names.op(mismatch.op)} gives its result as {needs}, which is then needed as {has}"
    else:
        head = f"{loser} is {has}, and {names.op(mismatch.op)} needs it as {needs}"
    if mismatch.winner is None:
        return f"{head}, because the op cannot run on it as it is split"
    winner = subject.tensors(mismatch.op)[mismatch.winner]
    shape = _shape(why, winner) or ()
    name = "its result" if mismatch.winner >= len(kind.rule.operands) else names.value(winner)
    if winner == mismatch.value:
        return head
    return f"{head}, because {name} is {dims_text(subject.sharding(winner), len(shape))}"


def clashing(why: Why, mismatch: Mismatch) -> Iterator[tuple[int, int, Axes]]:
    """The values and dimensions of a conflict: those that lose axes, and those that keep them."""
    subject = why.subject
    dims = range(mismatch.needs.rank)
    has = [() if mismatch.has is None else mismatch.has.dims[dim].axes for dim in dims]
    needs = [mismatch.needs.dims[dim].axes for dim in dims]
    changed = [dim for dim in dims if has[dim] != needs[dim]]
    for dim in changed:
        if has[dim]:
            yield subject.holder(mismatch.value), dim, has[dim]
    if mismatch.winner is None:
        return
    winner = subject.holder(subject.tensors(mismatch.op)[mismatch.winner])
    axes = [axis for dim in changed for axis in (*has[dim], *needs[dim])]
    sharding = subject.sharding(winner)
    for dim, given in enumerate(() if sharding is None or winner == subject.holder(mismatch.value) else sharding.dims):
        if lists_overlap(given.axes, axes):
            yield winner, dim, given.axes


def _why_otherwise(why: Why, output: int) -> str:
    """Why an output is not sharded as propagation found, if its user has not asked for that."""
    found, final = why.subject.sharding(output), why.subject.final_sharding(output)
    if found is None or output in why.subject.given or (final is not None and final.dim_axes == found.dim_axes):
        return ""
    has_parts = any(not axis.is_full for axes in found.dim_axes for axis in axes)
    return f", because inputs and outputs have {'no parts of axes' if has_parts else 'shards of one size'}"


def split_dims(why: Why, op: int, kind: FactorKind) -> Iterator[tuple[int, int, Axes]]:
    """The operands of an op that are sharded along factors of a kind: their values, dimensions and axes."""
    subject = why.subject
    rule = subject.rule(op)
    assert rule is not None
    values = subject.tensors(op)
    for factor in rule.factors_of(kind):
        for tensor, mapping in enumerate(rule.operands):
            sharding = subject.sharding(values[tensor])
            for dim, factors in enumerate(() if sharding is None else mapping):
                axes = () if sharding is None else sharding.dims[dim].axes
                if factor in factors and axes:
                    yield values[tensor], dim, axes


def has_text(name: str, dim: int, axes: Axes) -> str:
    """A clause that says which axes a value has on a dimension."""
    return f"{name} has {axes_text(axes)} on dimension {dim}"
