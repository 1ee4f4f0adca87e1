"""Barriers that hide from XLA what it would compute wrongly or refuse if it saw through."""

from __future__ import annotations

from math import prod

from jaxlib import version

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.rules.properties import REDUCING_COLLECTIVES
from pyshardy.transforms.builder import Builder

_TAKES = frozenset(("stablehlo.dynamic_slice", "stablehlo.gather"))
"""The ops that XLA moves before what their operand is computed by."""
_SLICES = _TAKES | {"stablehlo.scatter"}
"""The ops of which XLA may make slices at computed indices; a scatter reads the rows that it changes."""
_CLAMPS_SLICES = (0, 12)
"""The first jaxlib whose XLA clamps the index of a slice of a slice."""
_ENDS = frozenset(("stablehlo.constant", "stablehlo.optimization_barrier"))
"""The ops behind whose results there is nothing to hide."""


def keep_slices(root: Op, module: Module) -> None:
    """Hide from older XLAs what is sliced, which may be a slice.

    They add the two indices, and forget that the index of the inner slice is clamped. Shards are slices, and a scatter
    to rows of other shards has indices out of bounds. A barrier keeps the two slices apart.
    """
    if version.__version_info__[:2] >= _CLAMPS_SLICES:
        return
    for op in list(walk(root)):
        if op.name in _SLICES:
            for place in range(len(op.results)):
                if not _is_end(op.operands[place]):
                    _hide(op, place, module)


def keep_products(root: Op, module: Module) -> None:
    """Hide from XLA what an element is taken of, if that is a list of integers.

    XLA takes an element of a slice from what is sliced. In between, it forgets a product of 32-bit integers with a
    number. A barrier keeps the two steps apart.
    """
    for op in list(walk(root)):
        if op.name in _TAKES and prod(op.result.type.shape or ()) == 1 and _may_be_product(op.operands[0]):
            _hide(op, 0, module)


def _may_be_product(value: Value) -> bool:
    """Whether the value is a list of 32-bit integers, and may be computed by a product."""
    type = value.type
    is_list = type.element in ("i32", "ui32") and sum(size != 1 for size in type.shape or ()) == 1
    return is_list and not _is_end(value)


def _is_end(value: Value) -> bool:
    op = value.defining_op
    return op is not None and op.name in _ENDS


def keep_ffts_in_order(root: Op, module: Module) -> None:
    """Force the default memory order on operands and results of Fourier transforms.

    XLA's CPU compiler may choose another layout for operands and results of collectives, propagate it through a
    transform, and then refuse it. A vector has only one layout, and a barrier keeps it.
    """
    for op in list(walk(root)):
        if op.name != "stablehlo.fft" or not op.operands[0].type.is_static:
            continue
        builder = Builder(module.attrs, op, op.location)
        operand = _in_order(op.operands[0], builder)
        transformed = builder.value("fft", [operand], op.result.type, **op.attrs)
        op.result.replace_uses(_in_order(transformed, builder))
        op.erase()


def keep_complex_sums(root: Op, module: Module) -> None:
    """Hide from XLA what a reduction of complex numbers over devices is of.

    XLA turns the sum of a constant over devices into a product with their number, and ends the process if the constant
    is complex. A barrier keeps the sum.
    """
    for op in list(walk(root)):
        if op.name in REDUCING_COLLECTIVES:
            for place, value in enumerate(op.operands):
                if (value.type.element or "").startswith("complex"):
                    _hide(op, place, module)


def keep_exchanged_whole(root: Op, module: Module) -> None:
    """Hide from XLA what an all-to-all is of.

    XLA for CPUs sends the pieces of the operand one by one. If they come from different ops, such as a tensor and its
    padding, it may choose different layouts for them, and then refuses the program. A barrier keeps the operand whole.
    """
    for op in list(walk(root)):
        if op.name == "stablehlo.all_to_all":
            for place in range(len(op.operands)):
                _hide(op, place, module)


def _in_order(value: Value, builder: Builder) -> Value:
    shape = value.type.shape or ()
    return builder.reshape(_hidden(builder.reshape(value, [prod(shape)]), builder), shape)


def _hide(op: Op, place: int, module: Module) -> None:
    """Put an operand of an op behind a barrier."""
    op.set_operand(place, _hidden(op.operands[place], Builder(module.attrs, op, op.location)))


def _hidden(value: Value, builder: Builder) -> Value:
    """The value behind a barrier, across which XLA moves nothing."""
    return builder.value("optimization_barrier", [value], value.type)
