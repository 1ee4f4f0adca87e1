"""Finds an annotation that makes a program send less, by trying candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod, sqrt
from typing import NamedTuple

from pyshardy.core.alike import common, general
from pyshardy.core.scopes import is_gradient
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.core.text import format_bytes
from pyshardy.explain.collectives import ExplainedCollectives, Way
from pyshardy.explain.mismatches import Mismatch, clashing
from pyshardy.explain.origins import OriginKind, origin_of
from pyshardy.explain.why import Why
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.source_values import SourceValue
from pyshardy.results.hints.code import CodeEdit
from pyshardy.results.hints.moves import ConstraintEdit, moved_inputs, moved_values

MORE_WORK = 1.05
"""The largest factor by which an annotation may increase the work of a device."""
_PRODUCTS = frozenset(("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"))
MOST_EDITS = 4
"""The most annotations to try per collective."""
MOST_MOVES = 3
"""The most ways to put its axes elsewhere to try besides, of inputs, and of values that lines compute."""
_MORE_MEMORY = 1.05
"""A hint that needs more memory by this factor is given only if all others save less than a `_SHARE` of its bytes."""
_SHARE = 0.5
_LESS_MEMORY = 0.8
"""A second way is told if it holds less than the first by this factor."""


class AnnotationEdit(NamedTuple):
    """Another annotation of inputs or outputs.

    Attributes:
        is_input: Whether it is for inputs rather than outputs.
        indices: Their numbers.
        sharding: The annotation.
    """

    is_input: bool
    indices: tuple[int, ...]
    sharding: TensorSharding

    @property
    def kind(self) -> str:
        """The attribute of the main function that has the annotations."""
        return "arg_attrs" if self.is_input else "res_attrs"

    @property
    def patch(self) -> str:
        """Empty, as annotations are not at lines of values."""
        return ""


AnyEdit = AnnotationEdit | ConstraintEdit | CodeEdit


class Trial(NamedTuple):
    """The cost of a partitioned program.

    Attributes:
        sent_bytes: The bytes that every device sends.
        held_bytes: The estimated peak memory of a device.
        work: A measure of a device's work, for comparison: a hint must not replicate the computation.
        inputs: Its inputs.
        outputs: Its outputs.
        chip: The name of the chip whose memory was estimated; empty for none in particular.
    """

    sent_bytes: int
    held_bytes: int
    work: float
    inputs: Sequence[InterfaceTensor]
    outputs: Sequence[InterfaceTensor]
    chip: str = ""


Tried = tuple[AnyEdit, Trial]


def is_better(sent_bytes: int, work: float, now: Trial) -> bool:
    """Whether a program sends less than it does now, without more work.

    >>> is_better(10, 104, Trial(20, 0, 100, (), ())), is_better(10, 106, Trial(20, 0, 100, (), ()))
    (True, False)
    """
    return sent_bytes < now.sent_bytes and work <= MORE_WORK * now.work


def _size(tried: Tried) -> tuple[int, int]:
    """What a way costs: the bytes that are sent, then those that are held."""
    return tried[1].sent_bytes, tried[1].held_bytes


def ways_for(
    why: Why,
    found: ExplainedCollectives,
    before: Module,
    now: Trial,
    trial_of: Callable[[AnyEdit], Trial | None],
    values: Sequence[SourceValue] = (),
    changes: Sequence[CodeEdit] = (),
) -> Iterator[Way]:
    """The ways to avoid a collective: first the one that makes the program send least.

    Tried are: dimensions of inputs without their axes, axes on other dimensions of inputs, constraints of values that
    lines of the source compute, and other code. One that needs no more memory goes first if it saves at least half as
    much. Besides, it names a way that needs much less memory, and other code that saves more on a condition.

    Args:
        why: Explains the values of the propagated program.
        found: The collective with its causes.
        before: The program as the user gave it.
        now: Its current cost.
        trial_of: The cost with another annotation; None if that is no better.
        values: The expressions of the source whose values can be constrained.
        changes: Other code.
    """
    edits: list[AnyEdit] = [*changes]
    edits += list(edits_for(why, found, before))[:MOST_EDITS]
    edits += list(dict.fromkeys(moved_edits(why, found, before)))[:MOST_MOVES]
    for cause in found.causes[:1]:
        edits += list(dict.fromkeys(moved_values(why, cause, values)))[:MOST_MOVES]
    tried = [(edit, trial) for edit in dict.fromkeys(edits) if (trial := trial_of(edit)) is not None]
    if not tried:
        return
    sure = [one for one in tried if not _condition(one[0])] or tried
    first, smaller, best = _first(sure, now), _smaller(sure), _first(tried, now)
    yield _way("", *first, now)
    if smaller[1].held_bytes <= _LESS_MEMORY * first[1].held_bytes:
        yield _way("Or, with less memory: ", *smaller, now)
    if best not in (first, smaller) and best[1].sent_bytes < first[1].sent_bytes:
        yield _way("Or: ", *best, now)


def _way(lead: str, edit: AnyEdit, then: Trial, now: Trial) -> Way:
    return Way(lead + _text(edit, then, now), then.sent_bytes, then.held_bytes, edit.patch)


def _condition(edit: AnyEdit) -> str:
    """What else has to hold for an edit."""
    return edit.condition if isinstance(edit, CodeEdit) else ""


def _first(tried: Sequence[Tried], now: Trial) -> Tried:
    """The way that sends least; one that needs no more memory goes first if it saves at least half as much."""
    best = min(tried, key=_size)
    as_small = [one for one in tried if one[1].held_bytes <= _MORE_MEMORY * now.held_bytes]
    found = min(as_small, key=_size, default=best)
    is_much = now.sent_bytes - found[1].sent_bytes >= _SHARE * (now.sent_bytes - best[1].sent_bytes)
    return found if is_much else best


def _smaller(tried: Sequence[Tried]) -> Tried:
    """The way that needs least memory."""
    return min(tried, key=lambda one: one[1].held_bytes)


def is_forward_sum(why: Why, found: ExplainedCollectives) -> bool:
    """Whether a collective is a sum over a split dimension that is not of a gradient: other axes may avoid it.

    Args:
        why: Explains the values of the propagated program.
        found: The collective with its causes.
    """
    cause = found.causes[0]
    if cause.mismatch is not None or cause.op is None or not cause.places:
        return False
    return not is_gradient(why.names.label(cause.op).scope)


def moved_edits(why: Why, found: ExplainedCollectives, before: Module) -> Iterator[AnnotationEdit]:
    """The inputs that the axes of a collective come from, with such an axis on another dimension.

    Args:
        why: Explains the values of the propagated program.
        found: The collective with its causes.
        before: The program as the user gave it.
    """
    inputs = input_tensors(before.root)
    for cause in found.causes[:1]:
        for value, sharding in moved_inputs(why, cause):
            edit = AnnotationEdit(True, _alike(inputs, why.subject.names[value]), sharding)
            if _can_be_written(edit):
                yield edit


def device_work(root: Op) -> float:
    """A measure of a device's work: the number of result elements, plus the multiplications of products."""
    work = 0.0
    for op in walk(root):
        counts = [float(prod(value.type.shape)) for value in op.results if value.type.is_static and value.type.shape]
        if op.name in _PRODUCTS and counts:
            sizes = [float(prod(value.type.shape or ())) for value in op.operands]
            counts = [sqrt(counts[0] * prod(sizes))]
        work += sum(counts)
    return work


def edits_for(why: Why, found: ExplainedCollectives, before: Module) -> Iterator[AnnotationEdit]:
    """The annotations that affect a collective, each otherwise: freed, or as an op needs it.

    Args:
        why: Explains the values of the propagated program.
        found: The collective with its causes.
        before: The program as the user gave it.
    """
    return filter(_can_be_written, dict.fromkeys(_edits(why, found, before)))


def _edits(why: Why, found: ExplainedCollectives, before: Module) -> Iterator[AnnotationEdit]:
    mismatch = next((cause.mismatch for cause in found.causes if cause.mismatch is not None), None)
    if mismatch is None:
        return
    inputs, outputs = input_tensors(before.root), output_tensors(before.root)
    subject = why.subject
    if mismatch.op >= subject.op_count and mismatch.has is not None:
        name = subject.names[subject.tensors(mismatch.op)[-1]]
        yield AnnotationEdit(False, _alike(outputs, name), mismatch.has.closed())
    yield from _freed(why, mismatch, inputs, outputs)
    if mismatch.value in subject.given:
        yield AnnotationEdit(True, _alike(inputs, subject.names[mismatch.value]), mismatch.needs.closed())


def _can_be_written(edit: AnnotationEdit) -> bool:
    """Whether a user can write an annotation: a PartitionSpec cannot name sub-axes."""
    return bool(edit.indices) and all(axis.is_full for axes in edit.sharding.dim_axes for axis in axes)


def _freed(
    why: Why, mismatch: Mismatch, inputs: Sequence[InterfaceTensor], outputs: Sequence[InterfaceTensor]
) -> Iterator[AnnotationEdit]:
    """The annotations that conflicting axes come from, each with that dimension left to propagation."""
    for value, dim, axes in reversed(list(clashing(why, mismatch))):
        for axis in axes:
            for chain in why.history.chains(value, dim, axis):
                origin = origin_of(chain, why.subject, why.names)
                is_input = origin.kind is OriginKind.ARGUMENT
                given = why.subject.program.shardings[origin.value]
                if given is None or not (is_input or origin.kind is OriginKind.OUTPUT):
                    continue
                dims = [DimSharding((), True) if at == origin.dim else one for at, one in enumerate(given.dims)]
                name = why.subject.names[origin.value]
                yield AnnotationEdit(is_input, _alike(inputs if is_input else outputs, name), given.with_dims(dims))


def _alike(tensors: Sequence[InterfaceTensor], name: str) -> tuple[int, ...]:
    """The numbers of the tensors with this sharding and this name, up to list indices."""
    one = next((tensor for tensor in tensors if tensor.name == name), None)
    if one is None:
        return ()
    same = [tensor for tensor in tensors if general(tensor.name) == general(name)]
    return tuple(tensor.index for tensor in same if (tensor.sharding, tensor.shape) == (one.sharding, one.shape))


def _text(edit: AnyEdit, then: Trial, now: Trial) -> str:
    saved = f"send {format_bytes(then.sent_bytes)} per device instead of {format_bytes(now.sent_bytes)}"
    held = f"a device holds {format_bytes(then.held_bytes)} at most instead of {format_bytes(now.held_bytes)}"
    on = f"on {now.chip}" if now.chip else "on no chip in particular"
    return f"{_change(edit, now, then)}: all collectives then {saved}, and {held}, {on}."


def _change(edit: AnyEdit, now: Trial, then: Trial) -> str:
    if not isinstance(edit, AnnotationEdit):
        return ", ".join(filter(None, (edit.text, _condition(edit))))
    old, new = (now.inputs, then.inputs) if edit.is_input else (now.outputs, then.outputs)
    was = next(tensor for tensor in old if tensor.index in edit.indices)
    tensor = next(tensor for tensor in new if tensor.index in edit.indices)
    name = common(one.name for one in new if one.index in edit.indices)
    return f"annotate `{name}` as {spec_text(tensor)} instead of {spec_text(was)}"


def spec_text(tensor: InterfaceTensor) -> str:
    """A sharding as JAX's PartitionSpec, or in Shardy's notation if there is no such spec.

    >>> from pyshardy.core.notation import parse_sharding
    >>> spec_text(InterfaceTensor("x", 0, (8, 8, 8), "f32", parse_sharding('<@m, [{"a", "b"}, {}, {"c"}]>')))
    "P(('a', 'b'), None, 'c')"
    """
    dims = () if tensor.sharding is None else tensor.sharding.dim_axes
    if any(not axis.is_full for axes in dims for axis in axes):
        return str(tensor.sharding)
    return format_spec([axis.name for axis in axes] for axes in dims)
