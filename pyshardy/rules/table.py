"""Which op has which rule: one table, from op names to functions that are imported when first needed.

A key is the name of an op, or `@target` for a `stablehlo.custom_call` of that target. A value is
"module:function" inside `pyshardy.rules`; such a function takes an `OpSpec` and whether propagation is
conservative, and returns a rule or None.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Final, cast

from pyshardy.core.intern import register_cache
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidRuleError, UsageError
from pyshardy.rules.opspec import OpSpec, op_names
from pyshardy.rules.rule import Rule
from pyshardy.rules.user_rules import USER_RULES, RuleBuilder, user_rule_of

_POINTWISE: Final = """
    abs add and atan2 cbrt ceil collective_broadcast collective_permute compare complex convert cosine
    count_leading_zeros cross-replica-sum divide exponential exponential_minus_one floor imag is_finite log
    log_plus_one logistic maximum minimum multiply negate not or popcnt power real reduce_precision remainder
    round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine sqrt
    subtract tan tanh xor
"""
_POINTWISE_TARGETS: Final = """
    annotate_device_placement Cholesky CompactWyHelper InspectSharding InvertDiagBlocksLowerTriangular
    InvertDiagBlocksUpperTriangular LayoutConstraint mhlo.erf MoveToDevice MoveToHost X64SplitHigh X64SplitLow
    xla.megascale.provide_metadata _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate _SPMDInternalOp_MultiSlice
    _SPMDInternalOp_RotateRight _SPMDInternalOp_Wrap
"""

RULES: Final[dict[str, str]] = {
    **dict.fromkeys(op_names("stablehlo.", _POINTWISE), "elementwise:pointwise"),
    **dict.fromkeys(op_names("@", _POINTWISE_TARGETS), "elementwise:pointwise"),
    "mhlo.erf": "elementwise:pointwise",
    "mhlo.topk": "reduction:top_k",
    "sdy.sharding_constraint": "elementwise:pointwise",
    "stablehlo.all_gather": "collective:all_gather",
    "stablehlo.all_reduce": "collective:all_reduce",
    "stablehlo.all_to_all": "collective:all_to_all",
    "stablehlo.batch_norm_inference": "elementwise:batch_norm_inference",
    "stablehlo.bitcast_convert": "shape:bitcast_convert",
    "stablehlo.broadcast_in_dim": "shape:broadcast_in_dim",
    "stablehlo.cholesky": "linalg:cholesky",
    "stablehlo.clamp": "elementwise:clamp",
    "stablehlo.concatenate": "shape:concatenate",
    "stablehlo.convolution": "convolution:convolution",
    "stablehlo.dot": "contraction:dot",
    "stablehlo.dot_general": "contraction:dot_general",
    "stablehlo.dynamic_slice": "indexing:dynamic_slice",
    "stablehlo.dynamic_update_slice": "indexing:dynamic_update_slice",
    "stablehlo.fft": "linalg:fft",
    "stablehlo.gather": "gather_scatter:gather",
    "stablehlo.pad": "shape:pad",
    "stablehlo.reduce": "reduction:reduce",
    "stablehlo.reduce_scatter": "collective:reduce_scatter",
    "stablehlo.reduce_window": "window:reduce_window",
    "stablehlo.reshape": "reshape:reshape",
    "stablehlo.reverse": "shape:reverse",
    "stablehlo.rng_bit_generator": "random:rng_bit_generator",
    "stablehlo.scatter": "gather_scatter:scatter",
    "stablehlo.select": "elementwise:select",
    "stablehlo.select_and_scatter": "window:select_and_scatter",
    "stablehlo.slice": "indexing:static_slice",
    "stablehlo.sort": "reduction:sort",
    "stablehlo.transpose": "shape:transpose",
    "stablehlo.triangular_solve": "linalg:triangular_solve",
    "@ApproxTopK": "reduction:partial_reduce",
    "@Eigh": "linalg:eigh",
    "@mhlo.topk": "reduction:top_k",
    "@PartialReduce": "reduction:partial_reduce",
    "@ProductOfElementaryHouseholderReflectors": "linalg:householder_product",
    "@Qr": "linalg:qr",
    "@QrDecompositionBlock": "linalg:qr",
    "@TopK": "reduction:top_k",
    "@X64Combine": "random:x64_combine",
}

_SILENT_STABLEHLO: Final = """
    after_all case constant create_token get_tuple_element infeed iota optimization_barrier outfeed partition_id recv
    return send while
"""
_SILENT_SDY: Final = """
    constant data_flow_edge func_data_flow_edge manual_computation mesh named_computation propagation_barrier reshard
    return sharding_group
"""
_SILENT_OTHERS: Final = """
    builtin.module func.func func.call func.return cf.br cf.cond_br cf.switch chlo.return mhlo.return mpmd.return
    scf.condition scf.yield tensor.yield
"""
_SILENT_TARGETS: Final = """
    sdy_testonly tpu_custom_call xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
    xla_ffi_python_gpu_callback xla.debug.Log
"""
NO_RULE: Final[frozenset[str]] = frozenset(
    [
        *op_names("stablehlo.", _SILENT_STABLEHLO),
        *op_names("sdy.", _SILENT_SDY),
        *op_names("", _SILENT_OTHERS),
        *op_names("@", _SILENT_TARGETS),
    ]
)
"""Ops that have no rule on purpose: they are crossed by other means, or stop propagation."""


def rule_of(spec: OpSpec, conservative: bool = False) -> Rule | None:
    """The sharding rule of an op, or None if it has none: nothing propagates through it then.

    Args:
        spec: The op.
        conservative: Whether dimensions that sharding would move data between devices for are held back.

    Raises:
        InvalidRuleError: A dynamic dimension, or an op that lacks an operand, result or attribute it should have.

    >>> print(rule_of(OpSpec("stablehlo.dot", [(4, 8), (8, 16)], [(4, 16)])))
    <([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}>
    >>> rule_of(OpSpec("stablehlo.iota", [], [(4,)])) is None
    True
    """
    return _cached_rule(spec, conservative)


def is_known(spec: OpSpec) -> bool:
    """Whether the op has a rule, or is meant to have none; False for ops that deserve a warning.

    >>> is_known(OpSpec("stablehlo.while", [], [])), is_known(OpSpec("stablehlo.rng", [], [(4,)]))
    (True, False)
    """
    key = spec.key
    return key in RULES or key in NO_RULE or key in USER_RULES


def is_known_name(name: str) -> bool:
    """Whether ops of this name have a rule or are meant to have none, whatever their attributes."""
    return name in RULES or name in NO_RULE


@lru_cache(maxsize=16384)
def _cached_rule(spec: OpSpec, conservative: bool) -> Rule | None:
    if not isinstance(spec, OpSpec):
        raise UsageError("looking up a sharding rule", got=named_type(spec), needed="an OpSpec")
    key = spec.key
    if not (key in RULES or key in USER_RULES) or not spec.operand_shapes or not spec.result_shapes:
        return None
    try:
        _check_static(spec)
        return user_rule_of(spec, conservative) if key in USER_RULES else load_builder(RULES[key])(spec, conservative)
    except InvalidRuleError as error:
        raise error.located(f"{error.doing}, for {key}", str(spec)) from None
    except (IndexError, StopIteration) as error:
        raise InvalidRuleError(
            f"building the sharding rule of {key}",
            where=str(spec),
            got="operands and results of these shapes",
            needed="those that this op is known to have",
        ) from error


register_cache(_cached_rule.cache_clear)


@cache
def load_builder(entry: str) -> RuleBuilder:
    """The function that an entry of the table names.

    >>> load_builder("shape:pad").__name__
    'pad'
    """
    module, _, function = entry.partition(":")
    return cast(RuleBuilder, getattr(import_module(f"pyshardy.rules.{module}"), function))


register_cache(load_builder.cache_clear)


def _check_static(spec: OpSpec) -> None:
    if not spec.is_static:
        raise InvalidRuleError(
            "building a sharding rule", got="a dynamic dimension", needed="operands and results of static shape"
        )
