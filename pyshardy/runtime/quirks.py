"""What XLA computes wrongly, refuses or dies of, and how programs get around it: one table, and one walk.

A barrier hides from XLA what it would misread if it saw through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from math import prod
from typing import NamedTuple

from jaxlib import version

from pyshardy.errors import ShardyError
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.rules.properties import REDUCING_COLLECTIVES
from pyshardy.runtime.nans import propagate_nans
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.channels import Channels
from pyshardy.transforms.reshards.op_rules import is_buffer

_TAKES = ("stablehlo.dynamic_slice", "stablehlo.gather")
"""The ops that XLA moves before the op that computes their operand."""
_ARRANGING = ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose")
_ENDS = frozenset(("stablehlo.constant", "stablehlo.optimization_barrier"))
"""The ops behind whose results there is nothing to hide."""
_RANDOM_TYPES = frozenset(("f16", "bf16", "f32", "f64", "i32", "i64", "ui32", "ui64"))
"""The elements of which XLA for CPUs makes random numbers by `stablehlo.rng`."""


class Programs(Enum):
    """The programs that a quirk of XLA matters for."""

    ALL = "all"
    PROPAGATED = "those that XLA's own partitioner gets"
    PER_DEVICE = "those of one device, run by several"
    ON_CPUS = "those of one device, run by several CPUs"


class ToCompile:
    """A module that XLA will compile.

    Args:
        root: The module to change.
        module: The module that it comes from.
    """

    def __init__(self, root: Op, module: Module) -> None:
        self.attrs = module.attrs
        self.channels = Channels(root, module.attrs)

    def builder(self, op: Op) -> Builder:
        """Makes ops before an op."""
        return Builder(self.attrs, op, op.location)

    def hide(self, op: Op, place: int) -> None:
        """Put an operand of an op behind a barrier."""
        op.set_operand(place, _hidden(op.operands[place], self.builder(op)))


class Quirk(NamedTuple):
    """Something that XLA does, and how programs get around it.

    Attributes:
        what: What XLA does.
        programs: The programs for which that matters.
        ops: The names of the ops.
        mend: Changes one of them.
        until: The first jaxlib whose XLA does not do it; None if the newest still does.
    """

    what: str
    programs: Programs
    ops: tuple[str, ...]
    mend: Callable[[Op, ToCompile], None]
    until: tuple[int, int] | None = None


def work_around(root: Op, module: Module, programs: Iterable[Programs]) -> None:
    """Get around the quirks of the XLA in use.

    Args:
        root: The module to change.
        module: The module that it comes from.
        programs: What the module is.

    Raises:
        ShardyError: XLA would end the process.
    """
    kinds, here = set(programs), version.__version_info__[:2]
    quirks = [quirk for quirk in QUIRKS if quirk.programs in kinds and (quirk.until is None or here < quirk.until)]
    found = ops_named(root, {name for quirk in quirks for name in quirk.ops})
    compiled = ToCompile(root, module)
    for quirk in quirks:
        for op in found:
            if op.name in quirk.ops and op.block is not None:
                quirk.mend(op, compiled)


# What programs get instead


def _keep_slice(op: Op, compiled: ToCompile) -> None:
    """Shards are slices, and a scatter to rows of other shards has indices out of bounds."""
    for place in range(len(op.results)):
        if not _is_end(op.operands[place]):
            compiled.hide(op, place)


def _keep_product(op: Op, compiled: ToCompile) -> None:
    if prod(op.result.type.shape or ()) == 1 and _may_be_product(op.operands[0]):
        compiled.hide(op, 0)


def _may_be_product(value: Value) -> bool:
    """Whether the value is a list of 32-bit integers, and may be computed by a product."""
    type = value.type
    is_list = type.element in ("i32", "ui32") and sum(size != 1 for size in type.shape or ()) == 1
    return is_list and not _is_end(value)


def _is_end(value: Value) -> bool:
    op = value.defining_op
    return op is not None and op.name in _ENDS


def _keep_in_order(op: Op, compiled: ToCompile) -> None:
    """A vector has only one memory order, and a barrier keeps it."""
    if not op.operands[0].type.is_static:
        return
    builder = compiled.builder(op)
    transformed = builder.value("fft", [_in_order(op.operands[0], builder)], op.result.type, **op.attrs)
    op.result.replace_uses(_in_order(transformed, builder))
    op.erase()


def _in_order(value: Value, builder: Builder) -> Value:
    shape = value.type.shape or ()
    return builder.reshape(_hidden(builder.reshape(value, [prod(shape)]), builder), shape)


def _keep_complex_sum(op: Op, compiled: ToCompile) -> None:
    for place, value in enumerate(op.operands):
        if (value.type.element or "").startswith("complex"):
            compiled.hide(op, place)


def _keep_whole(op: Op, compiled: ToCompile) -> None:
    for place in range(len(op.operands)):
        compiled.hide(op, place)


def _hidden(value: Value, builder: Builder) -> Value:
    """The value behind a barrier, across which XLA moves nothing."""
    return builder.value("optimization_barrier", [value], value.type)


def _propagate_nans(op: Op, compiled: ToCompile) -> None:
    propagate_nans(op, compiled.builder(op), compiled.channels)


def _refuse_random(op: Op, _: ToCompile) -> None:
    element = op.result.type.element
    if element not in _RANDOM_TYPES:
        raise ShardyError(
            "running a program",
            where=format_location(op.location),
            got=f"'{op.name}' of {element}",
            needed=f"one of {', '.join(sorted(_RANDOM_TYPES))}, as XLA makes no others",
        )


def _count_from_the_front(op: Op, compiled: ToCompile) -> None:
    dimension, rank = op.attrs.get("dimension"), op.operands[0].type.rank
    number = -1 if dimension is None else dimension.value
    if rank and number < 0:
        op.set_attr("dimension", compiled.attrs.i64(number + rank))


def _fill_buffer(op: Op, compiled: ToCompile) -> None:
    """Zeros, as in JAX."""
    if is_buffer(op):
        builder, type = compiled.builder(op), op.result.type
        zero = builder.splat(zero_text(type.element), builder.like((), type))
        op.result.replace_uses(builder.broadcast(zero, type.shape or ()))
        op.erase()


def _leave_sharding_to_xla(op: Op, _: ToCompile) -> None:
    """XLA finds the same sharding by propagation."""
    if _only_reshapes(op) and _is_of_several(op.operands[0]):
        op.remove_attr(SHARDING)


def _is_of_several(value: Value) -> bool:
    """Whether a value is a result of an op with several results, perhaps in another shape."""
    op = value.owner
    while isinstance(op, Op) and _only_reshapes(op):
        op = op.operands[0].owner
    return isinstance(op, Op) and len(op.results) > 1


def _only_reshapes(op: Op) -> bool:
    """Whether the result of an op has the elements of its operand, each once."""
    return op.name in _ARRANGING and prod(op.operands[0].type.shape or ()) == prod(op.result.type.shape or ())


def _free_loop(loop: Op, _: ToCompile) -> None:
    """Constrain the results of the loop instead."""
    shardings = loop.attrs.get(SHARDING, ())
    loop.remove_attr(SHARDING)
    for value, sharding in zip(loop.results, shardings):
        if value.flat_uses and value.type.is_ranked_tensor:
            constrained = {"sharding": sharding.with_unreduced(())}
            constraint = Op("sdy.sharding_constraint", [value], [value.type], constrained, location=loop.location)
            constraint.insert_after(loop)
            value.replace_other_uses(constraint)


_COLLECTIVES = tuple(sorted(REDUCING_COLLECTIVES))
QUIRKS = (
    Quirk(
        "Where a chain of reshapes ends as it began, XLA gives its sharding to the result that it began with, takes it"
        " for the sharding of the first result of the op, and refuses the program if the ranks differ.",
        Programs.PROPAGATED, _ARRANGING, _leave_sharding_to_xla,
    ),
    Quirk(
        "XLA removes unchanged and unused values of a loop before it reads the shardings, but keeps the list of"
        " shardings, which is then too long.",
        Programs.PROPAGATED, ("stablehlo.while",), _free_loop,
    ),
    Quirk(
        "XLA turns the sum of a constant over devices into a product with their number, and ends the process if the"
        " constant is complex.",
        Programs.PER_DEVICE, _COLLECTIVES, _keep_complex_sum,
    ),
    Quirk(
        "XLA for CPUs may choose another memory order for operands and results of collectives, propagate it through a"
        " Fourier transform, and then refuse that.",
        Programs.PER_DEVICE, ("stablehlo.fft",), _keep_in_order,
    ),
    Quirk(
        "Maxima and minima across CPUs lose NaNs, which they keep on one device.",
        Programs.ON_CPUS, _COLLECTIVES, _propagate_nans,
    ),
    Quirk(
        "XLA for CPUs sends the pieces of the operand of an all-to-all one by one. If they come from different ops,"
        " such as a tensor and its padding, it may choose different memory orders, and then refuses the program.",
        Programs.ON_CPUS, ("stablehlo.all_to_all",), _keep_whole,
    ),
    Quirk(
        "XLA ends the process over random numbers of a type that it does not make.",
        Programs.ALL, ("stablehlo.rng",), _refuse_random,
    ),
    Quirk(
        "XLA misreads sort dimensions that count from the end, except the last one.",
        Programs.ALL, ("stablehlo.sort",), _count_from_the_front,
    ),
    Quirk(
        "XLA adds the indices of a slice of a slice, and forgets that the inner one is clamped.",
        Programs.ALL, (*_TAKES, "stablehlo.scatter"), _keep_slice, until=(0, 12),
    ),
    Quirk(
        "XLA takes an element of a slice from what is sliced, and forgets a product of 32-bit integers with a number in"
        " between.",
        Programs.ALL, _TAKES, _keep_product,
    ),
    Quirk(
        "XLA has no buffers with undefined content on CPUs.",
        Programs.ALL, ("stablehlo.custom_call",), _fill_buffer,
    ),
)  # fmt: skip
"""In this order they are got around."""
