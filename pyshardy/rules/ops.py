"""Every op that passes treat specially, with its traits, by family: the one place to add an op.

A line has a dialect, names, and traits; `@` before a name stands for a `stablehlo.custom_call` of that target. The
first traits of a family (`OpTraits`) are complete; the others list only differences. `tests/test_ops.py` checks the
lines against the ops of MLIR's dialects and reports missing traits.

Source: docs/semantics/rules.md#traits-of-ops
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyshardy.rules.traits import (
    BY_ATTRIBUTE,
    GONE_BEFORE,
    LEFT_ALONE,
    NO_ATTRIBUTES,
    NO_EXCHANGE,
    ON_SHARDS,
    PAD_IF_OPERANDS,
    PAD_LIKE_ANY,
    SILENT,
    UNKNOWN,
    DataFlow,
    Elementwise,
    OpTraits,
    Priority,
)

Line = tuple[str, str, OpTraits]
"""A prefix, names separated by spaces, and the traits of all of them."""

_NO, _OTHER, _FIRST = Elementwise.NO, Priority.OTHER, Priority.PASS_THROUGH

_HLO = OpTraits(UNKNOWN, _NO, True, _OTHER, NO_ATTRIBUTES, PAD_LIKE_ANY, ON_SHARDS, NO_EXCHANGE)
"""The traits of an op of StableHLO without special ones."""
_FOREIGN = _HLO._replace(pad=PAD_IF_OPERANDS)
"""The traits of an op of another dialect without special ones."""

# Elementwise ops

_POINTWISE = _HLO._replace(rule="elementwise:pointwise", elementwise=Elementwise.YES, priority=_FIRST)
_UNRULED = _FOREIGN._replace(elementwise=Elementwise.YES, priority=_FIRST)
"""The traits of an elementwise op for which the reference has no rule."""
FOREIGN_POINTWISE: Final = _UNRULED._replace(rule="elementwise:pointwise")
"""The traits of an elementwise op of another dialect, with a rule."""
_NOT_CONSTANT = _UNRULED._replace(keeps_constants=False)
_OF_HLO_ALONE = _UNRULED._replace(xla_rule="elementwise:pointwise")

ELEMENTWISE_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", """
        abs and ceil compare complex convert count_leading_zeros floor imag is_finite maximum minimum negate not or
        popcnt real reduce_precision remainder round_nearest_afz round_nearest_even shift_left
        shift_right_arithmetic shift_right_logical sign xor""", _POINTWISE),
    ("stablehlo.", """
        add atan2 cbrt cosine divide exponential exponential_minus_one log log_plus_one logistic multiply power rsqrt
        sine sqrt subtract tan tanh""", _POINTWISE._replace(rounds=True)),
    ("stablehlo.", "clamp", _POINTWISE._replace(rule="elementwise:clamp")),
    ("stablehlo.", "select", _POINTWISE._replace(rule="elementwise:select")),
    ("stablehlo.", "uniform_dequantize uniform_quantize", _POINTWISE._replace(rule=UNKNOWN)),
    ("stablehlo.", "bitcast_convert",
     _POINTWISE._replace(rule="shape:bitcast_convert", elementwise=Elementwise.IF_SAME_SHAPE)),
    ("stablehlo.", "batch_norm_inference", _HLO._replace(
        rule="elementwise:batch_norm_inference", attributes={"feature_index": "number"}, rounds=True)),
    ("chlo.", """
        _asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2
        broadcast_compare broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply
        broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder broadcast_select
        broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract
        broadcast_xor broadcast_zeta conj constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf
        lgamma sinh square tan""", _UNRULED),
    ("chlo.", "next_after polygamma zeta", _FOREIGN._replace(elementwise=Elementwise.FOR_PARTITIONER)),
    ("mhlo.", """
        abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exp2 exponential
        exponential_minus_one floor imag is_finite log log2 log_plus_one logistic maximum minimum mulhi multiply
        negate not or popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select
        shift_left shift_right_arithmetic shift_right_logical sign sine sqrt stochastic_convert subtract tan tanh
        uniform_dequantize uniform_quantize xor""", _UNRULED),
    ("mhlo.", "acos acosh asin asinh atanh cosh sinh", _OF_HLO_ALONE._replace(pure=False, keeps_constants=False)),
    ("mhlo.", "copy", _OF_HLO_ALONE),
    ("mhlo.", "erf", FOREIGN_POINTWISE),
    ("arith.", """
        addf addi addui_extended andi bitcast cmpf cmpi convertf divf extf extsi extui floordivsi flush_denormals
        fptosi fptoui index_cast index_castui maximumf maximumnumf maxnumf maxsi maxui minimumf minimumnumf minnumf
        minsi minui mulf muli mulsi_extended mului_extended negf ori remf scaling_extf scaling_truncf select shli
        shrsi shrui sitofp subf subi subui_extended truncf trunci uitofp xori""", _UNRULED),
    ("arith.", "ceildivsi ceildivui divsi divui remsi remui", _NOT_CONSTANT),
    ("math.", """
        absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf erfc
        exp exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven
        rsqrt sin sincos sinh sqrt tan tanh trunc""", _UNRULED),
)  # fmt: skip

# Ops that move elements

_NUMBER, _NUMBERS = "number", "numbers"

SHAPE_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "broadcast_in_dim", _HLO._replace(
        rule="shape:broadcast_in_dim", priority=Priority.BROADCAST, attributes={"broadcast_dimensions": _NUMBERS},
        pad="shape:pad_broadcast", whole_factors="replicate:expanded_factors", keeps_constants=True)),
    ("stablehlo.", "concatenate", _HLO._replace(
        rule="shape:concatenate", attributes={"dimension": _NUMBER}, local="slicing:localize_concatenate",
        context_facts="origins", is_checked_apart=True)),
    ("stablehlo.", "pad", _HLO._replace(
        rule="shape:pad", pad="window:pad_pad", local="pad:localize_pad", exchange="window:resolve_window",
        exchange_pieces="exchanges:exchange_window", attributes={
            "edge_padding_high": _NUMBERS, "edge_padding_low": _NUMBERS, "interior_padding": _NUMBERS})),
    ("stablehlo.", "reshape", _HLO._replace(
        rule="reshape:reshape", priority=_FIRST, pad="shape:pad_reshape", exchange="reshape:resolve_reshape",
        keeps_constants=True)),
    ("stablehlo.", "reverse", _HLO._replace(
        rule="shape:reverse", attributes={"dimensions": _NUMBERS}, exchange="reverse:resolve_reverse",
        exchange_pieces="exchanges:exchange_reverse", is_checked_apart=True)),
    ("stablehlo.", "slice", _HLO._replace(
        rule="indexing:static_slice", pad="window:pad_slice", local="slicing:localize_slice",
        exchange="window:resolve_window", exchange_pieces="exchanges:exchange_window", keeps_constants=True)),
    ("stablehlo.", "transpose", _HLO._replace(
        rule="shape:transpose", priority=_FIRST, attributes={"permutation": _NUMBERS})),
    ("stablehlo.", "dynamic_slice", _HLO._replace(
        rule="indexing:dynamic_slice", priority=Priority.FORWARD, pad="indexing:pad_dynamic_slice",
        local="slicing:localize_dynamic_slice")),
    ("stablehlo.", "dynamic_update_slice", _HLO._replace(
        rule="indexing:dynamic_update_slice", priority=Priority.FORWARD, pad="indexing:pad_dynamic_update_slice",
        local="dynamic_update_slice:localize_dynamic_update_slice")),
    ("stablehlo.", "gather", _HLO._replace(
        rule="gather_scatter:gather", attributes={"dimension_numbers": "gather_numbers"}, pad="indexing:pad_gather",
        local="gather:localize_gather", completes_parts=True)),
    ("stablehlo.", "scatter", _HLO._replace(
        rule="gather_scatter:scatter", attributes={"scatter_dimension_numbers": "scatter_numbers"},
        pad="indexing:pad_scatter", local="scatter:localize_scatter", context_facts="combiner",
        completes_parts=True, applies=True)),
    ("stablehlo.", "get_dimension_size", _HLO._replace(
        pad="indexing:pad_get_dimension_size", local="constants:localize_get_dimension_size")),
    ("stablehlo.", """
        dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape
        real_dynamic_slice set_dimension_size""", _HLO._replace(has_size_operands=True)),
    ("stablehlo.", "broadcast torch_index_select", _HLO),
)  # fmt: skip

# Ops that combine elements

_WINDOW = {"window_dimensions": _NUMBERS, "window_strides": _NUMBERS, "padding": "pairs"}
_PRODUCT = _HLO._replace(local="contraction:localize_dot", is_product=True, completes_parts=True, rounds=True)
_WINDOWED = _HLO._replace(
    attributes=_WINDOW, local="window:localize_window_op", exchange="windowed_ops:resolve_windowed",
    is_checked_apart=True, applies=True,
)  # fmt: skip

COMBINING_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "dot", _PRODUCT._replace(rule="contraction:dot", pad="contraction:pad_dot")),
    ("stablehlo.", "dot_general", _PRODUCT._replace(
        rule="contraction:dot_general", attributes={"dot_dimension_numbers": "dot_numbers"},
        pad="contraction:pad_dot_general")),
    ("stablehlo.", "convolution", _HLO._replace(
        rule="convolution:convolution", pad="convolution:pad_convolution", local="contraction:localize_convolution",
        exchange="windowed_ops:resolve_windowed", whole_factors="convolution:whole_factors", completes_parts=True,
        rounds=True, attributes={
            "batch_group_count": _NUMBER, "dimension_numbers": "convolution_numbers",
            "feature_group_count": _NUMBER})),
    ("stablehlo.", "reduce", _HLO._replace(
        rule="reduction:reduce", attributes={"dimensions": _NUMBERS}, pad="reduction:pad_reduce",
        local="reduction:localize_reduce", completes_parts=True, applies=True)),
    ("stablehlo.", "reduce_window", _WINDOWED._replace(rule="window:reduce_window")),
    ("stablehlo.", "select_and_scatter", _WINDOWED._replace(rule="window:select_and_scatter")),
    ("stablehlo.", "sort", _HLO._replace(rule="reduction:sort", attributes={"dimension": _NUMBER})),
    ("stablehlo.", "cholesky", _HLO._replace(rule="linalg:cholesky", rounds=True)),
    ("stablehlo.", "fft", _HLO._replace(rule="linalg:fft", attributes={"fft_length": _NUMBERS}, rounds=True)),
    ("stablehlo.", "triangular_solve", _HLO._replace(
        rule="linalg:triangular_solve", attributes={"left_side": _NUMBER, "transpose_a": "transpose_kind"},
        rounds=True)),
    ("stablehlo.", "batch_norm_grad batch_norm_training", _HLO._replace(rounds=True)),
    ("stablehlo.", "einsum map unary_einsum", _HLO),
    ("chlo.", "mulhi ragged_dot scan top_k", _FOREIGN),
    ("mhlo.", "topk", _FOREIGN._replace(rule="reduction:top_k", is_top_k=True)),
)  # fmt: skip

# Collectives and other ops that depend on devices

_COLLECTIVE = _HLO._replace(pure=False, has_replica_groups=True)

DEVICE_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "all_gather", _COLLECTIVE._replace(
        rule="collective:all_gather", attributes={"all_gather_dim": _NUMBER})),
    ("stablehlo.", "all_reduce", _COLLECTIVE._replace(rule="collective:all_reduce", reduces=True)),
    ("stablehlo.", "all_to_all", _COLLECTIVE._replace(
        rule="collective:all_to_all", attributes={"split_dimension": _NUMBER, "concat_dimension": _NUMBER})),
    ("stablehlo.", "reduce_scatter", _COLLECTIVE._replace(
        rule="collective:reduce_scatter", attributes={"scatter_dimension": _NUMBER}, reduces=True)),
    ("stablehlo.", "collective_broadcast", _COLLECTIVE._replace(rule="elementwise:pointwise")),
    ("stablehlo.", "collective_permute", _HLO._replace(rule="elementwise:pointwise", pure=False)),
    ("stablehlo.", "cross-replica-sum", _HLO._replace(rule="elementwise:pointwise")),
    ("stablehlo.", "async_done async_start collective_reduce", _HLO._replace(pure=False)),
    ("stablehlo.", "partition_id", _HLO._replace(rule=SILENT, is_generated_per_shard=True)),
    ("stablehlo.", "replica_id", _HLO._replace(is_generated_per_shard=True)),
    ("stablehlo.", "create_token", _HLO._replace(rule=SILENT, is_generated_per_shard=True)),
    ("stablehlo.", "after_all", _HLO._replace(rule=SILENT)),
    ("stablehlo.", "infeed outfeed recv send", _HLO._replace(rule=SILENT, pure=False)),
    ("mhlo.", """
        all_gather all_reduce async_done async_start async_update collective_broadcast composite custom_call fusion
        infeed outfeed partition_id recv reduce_scatter rng send xla.rng_get_and_update_state
        """, _FOREIGN._replace(pure=False)),
)  # fmt: skip

# Ops without operands, and random numbers

_CONSTANT = _HLO._replace(
    rule=SILENT, pad="constants:pad_constant", local="constants:localize_constant", is_constant=True
)

SOURCE_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "constant", _CONSTANT._replace(is_generated_per_shard=True)),
    ("sdy.", "constant", _CONSTANT),
    ("arith. chlo. mhlo.", "constant", _FOREIGN._replace(is_constant=True)),
    ("stablehlo.", "iota", _HLO._replace(rule=SILENT, local="constants:localize_iota", is_generated_per_shard=True)),
    ("stablehlo.", "rng", _HLO._replace(pure=False, local="random:localize_rng")),
    ("stablehlo.", "rng_bit_generator", _HLO._replace(
        rule="random:rng_bit_generator", local="random:localize_rng_bit_generator",
        exchange="random:resolve_random")),
    ("", "func.constant builtin.unrealized_conversion_cast ub.poison", _FOREIGN),
)  # fmt: skip

# Control flow, calls, and terminators of blocks

_FLOW = _HLO._replace(rule=SILENT, local="calls:localize_same_index")
_BRANCHES = _FLOW._replace(
    pad="control:pad_region_op", local="calls:localize_branches", data_flow=DataFlow.BRANCHES, is_control_flow=True
)
_END = _FOREIGN._replace(rule=SILENT, pure=False, is_terminator=True)
_OTHER_END = _FOREIGN._replace(rule=SILENT, pure=False, ends_other_blocks=True)
_IMPURE = _FOREIGN._replace(rule=SILENT, pure=False)

FLOW_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "while", _FLOW._replace(
        pad="control:pad_region_op", data_flow=DataFlow.SAME_INDEX, is_control_flow=True)),
    ("stablehlo.", "case", _BRANCHES),
    ("stablehlo.", "if", _BRANCHES._replace(rule=UNKNOWN)),
    ("stablehlo.", "optimization_barrier", _FLOW._replace(data_flow=DataFlow.SAME_INDEX)),
    ("stablehlo.", "get_tuple_element", _HLO._replace(rule=SILENT)),
    ("stablehlo.", "tuple", _HLO),
    ("stablehlo.", "composite", _HLO._replace(pure=False, attributes={"name": _NUMBER})),
    ("stablehlo.", "return", _END._replace(pad=PAD_LIKE_ANY, local="calls:localize_return")),
    ("func.", "return", _END._replace(local="calls:localize_return")),
    ("sdy.", "return", _END._replace(local="calls:leave_region")),
    ("", "cf.br cf.cond_br chlo.return mhlo.return mpmd.return", _END),
    ("", "cf.switch scf.condition scf.yield tensor.yield", _OTHER_END),
    ("", """
        scf.forall.in_parallel scf.reduce scf.reduce.return shape.assuming_yield shape.yield
        """, _OTHER_END._replace(rule=UNKNOWN)),
    ("builtin.", "module", _IMPURE._replace(local=LEFT_ALONE)),
    ("func.", "func", _IMPURE._replace(local="calls:localize_function")),
    ("func.", "call", _IMPURE._replace(pad="control:pad_call", local="calls:localize_call")),
    ("shape.", """
        cstr_broadcastable cstr_eq cstr_require debug_print is_broadcastable meet reduce
        """, _FOREIGN._replace(pure=False)),
)  # fmt: skip

# Ops of Shardy

_MARK = _FOREIGN._replace(rule=SILENT, pure=False, local=GONE_BEFORE)
_IDENTITY = _MARK._replace(is_identity=True)
_EDGE = _IDENTITY._replace(priority=_FIRST)
_COMPUTATION = _FOREIGN._replace(
    rule=SILENT, pad="control:pad_computation_args", own_shardings=("in_shardings", "out_shardings"),
    data_flow=DataFlow.COMPUTATION,
)  # fmt: skip
_SDY_COLLECTIVE = _FOREIGN._replace(pure=False, own_shardings=("out_sharding",))

SDY_LINES: Final[tuple[Line, ...]] = (
    ("sdy.", "mesh", _MARK._replace(local=LEFT_ALONE)),
    ("sdy.", "sharding_group", _MARK),
    ("sdy.", "sharding_constraint", _EDGE._replace(
        rule="elementwise:pointwise", elementwise=Elementwise.YES, own_shardings=("sharding",),
        keeps_constants=False)),
    ("sdy.", "reshard", _EDGE._replace(elementwise=Elementwise.YES, pure=True, own_shardings=("sharding",))),
    ("sdy.", "propagation_barrier", _IDENTITY._replace(
        elementwise=Elementwise.YES, pure=True, priority=Priority.FIXED)),
    ("sdy.", "data_flow_edge", _EDGE._replace(own_shardings=("sharding",))),
    ("sdy.", "func_data_flow_edge", _EDGE._replace(local=ON_SHARDS)),
    ("sdy.", "manual_computation", _COMPUTATION._replace(local="calls:inline_manual_computation")),
    ("sdy.", "named_computation", _COMPUTATION._replace(local="calls:localize_named_computation")),
    ("sdy.", "all_gather", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_gathering", local="collectives:lower_all_gather")),
    ("sdy.", "all_slice", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_slicing", local="collectives:lower_all_slice")),
    ("sdy.", "all_to_all", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_all_to_all", local="all_to_all:lower_all_to_all")),
    ("sdy.", "collective_permute", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_in_place", local="collectives:lower_collective_permute")),
    ("sdy.", "all_reduce", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_in_place", local="collectives:lower_all_reduce", reduces=True)),
    ("sdy.", "reduce_scatter", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_slicing", local="collectives:lower_reduce_scatter", reduces=True)),
    ("sdy.", "sharded_to_unreduced", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_gathering", local="collectives:lower_sharded_to_unreduced")),
    ("sdy.", "replicated_to_unreduced", _SDY_COLLECTIVE._replace(
        pad="collectives:pad_in_place", local="collectives:lower_replicated_to_unreduced")),
)  # fmt: skip

# Custom calls: the traits of all, then of some targets

_CALL = _HLO._replace(pure=BY_ATTRIBUTE)
_POINTWISE_CALL = _CALL._replace(rule="elementwise:pointwise")

CALL_LINES: Final[tuple[Line, ...]] = (
    ("stablehlo.", "custom_call", _CALL._replace(
        attributes={"call_target_name": _NUMBER}, context_facts="random_state", rounds=True)),
    ("@", """
        annotate_device_placement InspectSharding LayoutConstraint mhlo.erf X64SplitHigh X64SplitLow
        xla.megascale.provide_metadata _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate
        _SPMDInternalOp_MultiSlice _SPMDInternalOp_RotateRight _SPMDInternalOp_Wrap""", _POINTWISE_CALL),
    ("@", "MoveToDevice MoveToHost", _POINTWISE_CALL._replace(priority=_FIRST)),
    ("@", """
        Cholesky CompactWyHelper InvertDiagBlocksLowerTriangular InvertDiagBlocksUpperTriangular
        """, _POINTWISE_CALL._replace(needs_matrices=True)),
    ("@", "ApproxTopK PartialReduce", _CALL._replace(rule="reduction:partial_reduce", is_top_k=True)),
    ("@", "mhlo.topk TopK", _CALL._replace(rule="reduction:top_k", is_top_k=True)),
    ("@", "Eigh", _CALL._replace(rule="linalg:eigh")),
    ("@", "ProductOfElementaryHouseholderReflectors", _CALL._replace(rule="linalg:householder_product")),
    ("@", "Qr QrDecompositionBlock", _CALL._replace(rule="linalg:qr")),
    ("@", "X64Combine", _CALL._replace(rule="random:x64_combine")),
    ("@", """
        sdy_testonly tpu_custom_call xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
        xla_ffi_python_gpu_callback xla.debug.Log""", _CALL._replace(rule=SILENT)),
    ("@", """
        xla_ffi_partitioned_python_cpu_callback xla_ffi_partitioned_python_gpu_callback
        """, _CALL._replace(takes_shards=True)),
)  # fmt: skip

FAMILIES: Final[Mapping[str, tuple[Line, ...]]] = {
    "elementwise": ELEMENTWISE_LINES,
    "shape": SHAPE_LINES,
    "combining": COMBINING_LINES,
    "device": DEVICE_LINES,
    "source": SOURCE_LINES,
    "flow": FLOW_LINES,
    "sdy": SDY_LINES,
    "call": CALL_LINES,
}
PURE_DIALECTS: Final = frozenset(("stablehlo", "chlo", "arith", "math", "complex", "tensor", "mhlo", "scf", "shape"))
"""Dialects whose ops have no side effects, unless a line above says otherwise."""


def names_of(line: Line) -> list[str]:
    """The full names of the ops of a line.

    >>> names_of(("arith. mhlo.", "constant", FOREIGN_POINTWISE))
    ['arith.constant', 'mhlo.constant']
    """
    prefixes, names, _ = line
    return [prefix + name for prefix in prefixes.split() or ("",) for name in names.split()]


_LINES: Final = [(names_of(line), line[2]) for lines in FAMILIES.values() for line in lines]
OPS: Final = {name: traits for names, traits in _LINES for name in names}
"""The traits of every op that has a line, by name, or by `@target` for custom calls."""


def ops_that(has: Callable[[OpTraits], object]) -> frozenset[str]:
    """The names of the ops whose traits satisfy `has`; passes build their sets of ops with it, once, at import.

    >>> sorted(ops_that(lambda traits: traits.is_product))
    ['stablehlo.dot', 'stablehlo.dot_general']
    """
    return frozenset([name for names, traits in _LINES if has(traits) for name in names])
