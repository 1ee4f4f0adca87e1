"""Properties of ops beside their rule: element-wise, preserving constants, and the classes of op priority.

Being element-wise is independent of having a rule. The lists are those observed in the reference.

Source: docs/semantics/rules.md#elementwise-ops
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pyshardy.rules.opspec import OpSpec, op_names

_STABLEHLO: Final = """
    abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
    exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt
    power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
    shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh uniform_dequantize uniform_quantize xor
"""
_CHLO: Final = """
    _asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2
    broadcast_compare broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply
    broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder broadcast_select
    broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract
    broadcast_xor broadcast_zeta conj constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma
    sinh square tan
"""
_MHLO: Final = """
    abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp compare complex convert copy cosh cosine
    count_leading_zeros divide erf exp2 exponential exponential_minus_one floor imag is_finite log log2 log_plus_one
    logistic maximum minimum mulhi multiply negate not or popcnt power real reduce_precision remainder
    round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine
    sinh sqrt stochastic_convert subtract tan tanh uniform_dequantize uniform_quantize xor
"""
_ARITH: Final = """
    addf addi addui_extended andi bitcast ceildivsi ceildivui cmpf cmpi convertf divf divsi divui extf extsi extui
    floordivsi flush_denormals fptosi fptoui index_cast index_castui maximumf maximumnumf maxnumf maxsi maxui minimumf
    minimumnumf minnumf minsi minui mulf muli mulsi_extended mului_extended negf ori remf remsi remui scaling_extf
    scaling_truncf select shli shrsi shrui sitofp subf subi subui_extended truncf trunci uitofp xori
"""
_MATH: Final = """
    absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf erfc exp
    exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin
    sincos sinh sqrt tan tanh trunc
"""
ELEMENTWISE: Final[frozenset[str]] = frozenset(
    [
        *op_names("sdy.", "propagation_barrier reshard sharding_constraint"),
        *op_names("stablehlo.", _STABLEHLO),
        *op_names("chlo.", _CHLO),
        *op_names("mhlo.", _MHLO),
        *op_names("arith.", _ARITH),
        *op_names("math.", _MATH),
    ]
)
"""Names of the ops that are element-wise whatever their shapes."""

_IMPURE: Final = frozenset(
    [
        "sdy.sharding_constraint",
        *op_names("arith.", "ceildivsi ceildivui divsi divui remsi remui"),
        *op_names("mhlo.", "acos acosh asin asinh atanh cosh sinh"),
    ]
)
_PRESERVING: Final = frozenset(op_names("stablehlo.", "broadcast_in_dim reshape slice"))
_MAY_PRESERVE: Final = (ELEMENTWISE | _PRESERVING | {"stablehlo.bitcast_convert"}) - _IMPURE


def is_elementwise(spec: OpSpec) -> bool:
    """Whether every element of the results depends on the elements at the same place alone.

    Scalar operands beside larger ones do not matter. `bitcast_convert` counts if it keeps the shape.

    >>> is_elementwise(OpSpec("stablehlo.select", [(), (4,), (4,)], [(4,)]))
    True
    >>> is_elementwise(OpSpec("stablehlo.bitcast_convert", [(4,)], [(4, 2)]))
    False
    """
    if spec.name == "stablehlo.bitcast_convert":
        return spec.operand_shapes == spec.result_shapes
    return spec.name in ELEMENTWISE


def may_preserve_constants(name: str) -> bool:
    """Whether ops of this name preserve constants, as far as their shapes allow it.

    >>> may_preserve_constants("stablehlo.add"), may_preserve_constants("stablehlo.dot")
    (True, False)
    """
    return name in _MAY_PRESERVE


def preserves_constants(spec: OpSpec) -> bool:
    """Whether the results are constants if the operands are, for splitting constant expressions.

    True for broadcast, reshape, slice and element-wise ops, as far as they can be computed at any time, in any
    number of copies. Calls and named computations depend on their content and are not judged here.

    >>> preserves_constants(OpSpec("stablehlo.add", [(4,), (4,)], [(4,)]))
    True
    >>> preserves_constants(OpSpec("sdy.sharding_constraint", [(4,)], [(4,)]))
    False
    """
    if spec.name not in _MAY_PRESERVE or not (spec.name in _PRESERVING or is_elementwise(spec)):
        return False
    return not spec.name.startswith("stablehlo.") or _cannot_fail(spec)


def _cannot_fail(spec: OpSpec) -> bool:
    """Whether the sizes, where dynamic, are sure to fit: nothing dynamic is asserted to be some static size."""
    if not any(-1 in shape for shape in spec.operand_shapes if shape):
        return True
    pairs = zip(spec.operand(0), spec.result(0))
    return len(spec.operand_shapes) == 1 and all(after == -1 or before != -1 for before, after in pairs)


class Priority(IntEnum):
    """How an op takes part in op-priority propagation.

    Source: docs/semantics/propagation.md#op-priorities
    """

    OTHER = 0
    """Joins with its pass-through factors in round 2 and with all factors in round 3."""
    PASS_THROUGH = 1
    """Element-wise ops, reshape, transpose, moves between host and device, data-flow edges: from round 0."""
    FORWARD = 2
    """dynamic_slice and dynamic_update_slice: forward from round 0."""
    BROADCAST = 3
    """broadcast_in_dim: backward from round 2, both ways in round 4."""
    FIXED = 4
    """Propagation barriers and results of the main function: their own direction in every round."""


def priority_of(spec: OpSpec) -> Priority:
    """The class of an op in op-priority propagation.

    >>> priority_of(OpSpec("stablehlo.tanh", [(4,)], [(4,)])).name
    'PASS_THROUGH'
    >>> priority_of(OpSpec("stablehlo.custom_call", [(4,)], [(4,)], {"call_target_name": "MoveToHost"})).name
    'PASS_THROUGH'
    >>> priority_of(OpSpec("stablehlo.dot", [(4,), (4,)], [()])).name
    'OTHER'
    """
    found = _PRIORITIES.get(spec.name)
    if found is not None:
        return found
    if is_elementwise(spec) or spec.target in ("MoveToDevice", "MoveToHost"):
        return Priority.PASS_THROUGH
    return Priority.OTHER


_PRIORITIES: Final[dict[str, Priority]] = {
    "sdy.data_flow_edge": Priority.PASS_THROUGH,
    "sdy.func_data_flow_edge": Priority.PASS_THROUGH,
    "sdy.propagation_barrier": Priority.FIXED,
    "stablehlo.broadcast_in_dim": Priority.BROADCAST,
    "stablehlo.dynamic_slice": Priority.FORWARD,
    "stablehlo.dynamic_update_slice": Priority.FORWARD,
    "stablehlo.reshape": Priority.PASS_THROUGH,
    "stablehlo.transpose": Priority.PASS_THROUGH,
}
