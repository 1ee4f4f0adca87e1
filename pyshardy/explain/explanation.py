"""The explanation of one value, as data and in sentences."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StepTaken:
    """A step that propagates an axis through one op.

    Attributes:
        text: The step in words.
        op: Full name of the op.
        scope: The name that JAX gave it.
        file: The file of the user's program.
        line: The line there.
        source: The value that the axis comes from, in words.
        source_dim: The dimension there.
        target: The value that it comes to.
        target_dim: The dimension there.
        rule: The sharding rule of the op.
        factor: The factor of the rule that the axis moved along.
        direction: The allowed directions.
        strategy: The strategy for conflicts.
        user_priority: The user priority of the round.
        op_priority: The op-priority round, 0 to 4.
    """

    text: str
    op: str
    scope: str | None
    file: str | None
    line: int
    source: str
    source_dim: int
    target: str
    target_dim: int
    rule: str | None
    factor: str
    direction: str
    strategy: str
    user_priority: int
    op_priority: int

    @property
    def details(self) -> str:
        """Rule, factor, strategy and priorities in words."""
        rule = f"rule {self.rule}, factor {self.factor}" if self.rule else "no rule of its own"
        turn = f"user priority {self.user_priority}, op-priority round {self.op_priority}"
        return f"{rule}; {self.strategy} strategy, {turn}, {self.direction}"


@dataclass(frozen=True, slots=True)
class AxisCame:
    """How an axis or sub-axis came to a dimension.

    Attributes:
        axis: The axis.
        kind: The kind of annotation: "argument", "output", "constraint", "group", "manual computation" or "annotation".
        origin: Where it was given, in words.
        origin_value: The value where it was given.
        origin_dim: The dimension there.
        steps: The steps from there to here; empty if it was given here.
    """

    axis: str
    kind: str
    origin: str
    origin_value: str
    origin_dim: int
    steps: tuple[StepTaken, ...]


@dataclass(frozen=True, slots=True)
class StayedWhole:
    """A reason why a dimension was not sharded.

    Attributes:
        kind: The kind: "closed", "taken", "nobody asked" and so on (`whole.ReasonKind`).
        text: The reason in words.
        axis: The axis that did not propagate.
        level: What decided a conflict: "annotation", "user priority", "op priority", "strategy" or "order".
    """

    kind: str
    text: str
    axis: str | None
    level: str | None


@dataclass(frozen=True, slots=True)
class DimensionStory:
    """The explanation of one dimension.

    Attributes:
        dim: Its number.
        size: Its size.
        sharding: Its axes in the result.
        axes: How its axes came.
        reasons: Why it has no axes, the most important reason first.
        dropped: The axes that propagation gave and the result drops, in words.
    """

    dim: int
    size: int
    sharding: str
    axes: tuple[AxisCame, ...]
    reasons: tuple[StayedWhole, ...]
    dropped: str | None = None


@dataclass(frozen=True, slots=True)
class ValueStory:
    """The explanation of one value.

    Attributes:
        value: The value in words.
        shape: Its shape.
        sharding: Its sharding in the result.
        mesh: The mesh, with its axes; None if it has no sharding.
        dims: Its dimensions.
        returned: The names of the outputs that it is returned as.
    """

    value: str
    shape: tuple[int, ...]
    sharding: str
    mesh: str | None
    dims: tuple[DimensionStory, ...]
    returned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """What lets propagation split dimensions that one annotation keeps whole.

    Attributes:
        text: What to do, in words.
        dims: The dimensions.
        values: The numbers of the explained values that are whole because of it, in the order of the explanation.
        name: The name of the input or output for `Module.annotate`; None for another annotation.
        spec: Its new annotation, as text that `Module.annotate` and `--shard` take.
        option: Both as an option of the command line; None if there is none.
    """

    text: str
    dims: tuple[int, ...]
    values: tuple[int, ...]
    name: str | None = None
    spec: str | None = None
    option: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of some values; `str` gives sentences.

    Attributes:
        asked: The text that was asked for.
        values: The values that it names.
        has_details: Whether sentences name rules, factors, strategies and priorities.
        openings: What opens the dimensions that are closed, once per annotation.
    """

    asked: str
    values: tuple[ValueStory, ...]
    has_details: bool = False
    openings: tuple[Opening, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON-ready data; the keys are the names of the attributes."""
        return asdict(self)

    def __str__(self) -> str:
        numbers = range(len(self.values))
        with_shape = [number for number in numbers if self.values[number].shape] or numbers
        like: dict[tuple[object, ...], list[int]] = {}
        for number in with_shape:
            like.setdefault(_alike(self.values[number]), []).append(number)
        shown = [sorted(group, key=lambda one: not self.values[one].returned) for group in like.values()][:_MOST]
        texts = [_value_text(self.values[group[0]], self.has_details) + _rest_text(len(group) - 1) for group in shown]
        more = len(with_shape) - sum(map(len, shown))
        if more:
            texts.append(f"… and {more} more values, in `to_json()`")
        opened = [one.text for one in self.openings if not {group[0] for group in shown}.isdisjoint(one.values)]
        if opened:
            texts.append("\n".join(opened))
        return "\n\n".join(texts)

    def __repr__(self) -> str:
        return str(self)


def _alike(story: ValueStory) -> tuple[object, ...]:
    """What the stories of one value in every layer have in common: axes come from inputs that differ in a number."""
    origins = [(one.axis, _NUMBER.sub("", one.origin_value)) for dim in story.dims for one in dim.axes]
    return story.value, story.shape, story.sharding, story.mesh, *origins


def _rest_text(count: int) -> str:
    """The line that counts values like the one before it; empty if there are none."""
    if not count:
        return ""
    return f"\n  and {count} more {'values' if count > 1 else 'value'} of this name, shape and sharding"


_NUMBER = re.compile(r"\d+")
_MOST = 8
"""The most values to show of a line or scope."""
_SHOWN = 6
"""The most steps to show of a chain without details; of a longer chain, its ends are shown."""


def _value_text(value: ValueStory, has_details: bool) -> str:
    on = f" on mesh {value.mesh}" if value.mesh else ""
    outputs = f", returned as {' and '.join(f'`{name}`' for name in value.returned)}" if value.returned else ""
    lines = [f"{value.value}{outputs}, shape {list(value.shape)}: {value.sharding}{on}"]
    for dim in value.dims:
        head = f"  dimension {dim.dim} (size {dim.size}): "
        for axis in dim.axes:
            lines += _axis_lines(head, axis, has_details)
        if dim.dropped:
            lines.append(f"{head}{dim.dropped}")
        lines += [f"{head}whole, {reason.text}" for reason in dim.reasons[: None if has_details else 1]]
    if not value.shape:
        lines.append("  a scalar, which every device has")
    return "\n".join(lines)


def _axis_lines(head: str, axis: AxisCame, has_details: bool) -> list[str]:
    count = len(axis.steps)
    if not count:
        is_own = axis.kind in ("argument", "output", "annotation")
        return [f"{head}{axis.axis}, given {'by its own annotation' if is_own else axis.origin}"]
    came = "1 step" if count == 1 else f"{count} steps"
    lines = [f"{head}{axis.axis}, given {axis.origin}, came in {came}:"]
    numbered = list(enumerate(axis.steps, 1))
    left_out = 0 if has_details or count <= _SHOWN + 1 else count - _SHOWN
    for number, step in numbered:
        if left_out and _SHOWN // 2 < number <= _SHOWN // 2 + left_out:
            if number == _SHOWN // 2 + 1:
                lines.append(f"    … {left_out} more steps like these …")
            continue
        lines.append(f"    {number}. {step.text}")
        if has_details:
            lines.append(f"       ({step.details})")
    return lines
