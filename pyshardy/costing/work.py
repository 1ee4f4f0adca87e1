"""Counts the floating-point operations of an op from its shapes and attributes.

It counts as XLA's own cost analysis does. A multiplication and an addition are two operations. An elementwise op does
one per element. Transcendental functions are counted separately. Moving data counts nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from pyshardy.core.intern import register_cache
from pyshardy.costing.flat import BITCAST, KEPT_COPY
from pyshardy.costing.program import (
    KERNEL_CAUSAL,
    KERNEL_COST,
    KERNEL_NAME,
    RAGGED,
    RAGGED_NUMBERS,
    CostKind,
    RaggedNumbers,
)
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import CUSTOM_CALL, ELEMENTWISE


class Work(NamedTuple):
    """The arithmetic of an op.

    Attributes:
        flops: The arithmetic operations, on numbers of any type.
        transcendentals: The evaluations of functions such as the exponential.
        is_matrix: Whether the matrix unit of the chip does them.
        is_known: Whether the cost of the op is known; if not, the numbers are 0.
        is_solver: Whether it decomposes or solves a matrix, one block of rows after another.
        bytes: The bytes that a kernel reads and writes, as its author states. 0 stands for the bytes of its operands
            and results.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    is_matrix: bool = False
    is_known: bool = True
    is_solver: bool = False
    bytes: float = 0.0


class CustomCall(NamedTuple):
    """What a custom call runs, and what gives it a price.

    Attributes:
        name: The name of the kernel, or else the target.
        target: The target.
        priced_by: "its author" or "its shapes"; None if it has no price.
    """

    name: str
    target: str
    priced_by: str | None


TRANSCENDENTAL = frozenset(
    op_names("stablehlo.", "atan2 cbrt cosine exponential exponential_minus_one log log_plus_one logistic power rsqrt")
    + op_names("stablehlo.", "sine sqrt tan tanh")
    + op_names("chlo.", "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh tan")
    + op_names("chlo.", "polygamma zeta")
)
_FREE = frozenset(op_names("stablehlo.", "reduce_precision"))
_NO_WORK = frozenset(
    [
        *op_names("stablehlo.", "after_all all_gather all_to_all bitcast_convert broadcast broadcast_in_dim case"),
        *op_names("stablehlo.", "collective_broadcast collective_permute composite concatenate constant create_token"),
        *op_names("stablehlo.", "dynamic_broadcast_in_dim dynamic_gather dynamic_iota dynamic_pad dynamic_reshape"),
        *op_names("stablehlo.", "dynamic_slice dynamic_update_slice gather get_dimension_size get_tuple_element if"),
        *op_names(
            "stablehlo.",
            "infeed iota optimization_barrier outfeed pad partition_id real_dynamic_slice recv reduce_scatter",
        ),
        *op_names("stablehlo.", "replica_id reshape reverse send set_dimension_size slice transpose tuple while"),
        *op_names("sdy.", "constant propagation_barrier reshard sharding_constraint data_flow_edge sharding_group"),
        "func.call",
        "func.return",
        BITCAST,
        KEPT_COPY,
    ]
)
_PHILOX_FLOPS, _THREEFRY_FLOPS = 149 / 4, 45.0
"""Operations per word of 32 bits: the rounds of the generators, with the conversions of wide products."""


@lru_cache(maxsize=1 << 14)
def work_of(kind: CostKind) -> Work:
    """The arithmetic of one run of an op, without that of its regions and callees.

    >>> from pyshardy.costing.program import CostTensor
    >>> x = CostTensor((4, 8), "f32", 128)
    >>> work_of(CostKind("stablehlo.add", (x, x), (x,))).flops
    32.0
    """
    family = _FAMILIES.get(kind.name)
    if family is not None:
        return family(kind)
    if kind.name in _NO_WORK or kind.name in _FREE:
        return Work()
    if kind.name in ELEMENTWISE or kind.name in TRANSCENDENTAL:
        elements = float(kind.results[0].elements) if kind.results else 0.0
        if kind.name in TRANSCENDENTAL:
            return Work(0.0, elements)
        return Work(elements)
    return Work(is_known=False)


register_cache(work_of.cache_clear)


def is_product(kind: CostKind) -> bool:
    """Whether an op is a product of matrices, or a convolution, for the matrix unit of a chip."""
    return kind.name in _FAMILIES and work_of(kind).is_matrix


def _of_body(kind: CostKind, times: float) -> Work:
    """The arithmetic of the ops that combine elements, so many times."""
    names: Sequence[str] = kind.fact("body", ())  # type: ignore[assignment]
    hard = sum(name in TRANSCENDENTAL for name in names)
    return Work(times * (len(names) - hard), times * hard)


def _dot(kind: CostKind) -> Work:
    lhs = kind.operands[0].shape or ()
    numbers = kind.fact("dot_dimension_numbers")
    dims = numbers.lhs_contracting if isinstance(numbers, DotNumbers) else (len(lhs) - 1,)
    depth = prod(lhs[dim] for dim in dims)
    if depth == 1:  # an outer product: element by element
        return Work(float(kind.results[0].elements))
    return Work(2.0 * kind.results[0].elements * depth, is_matrix=True)


def _ragged_dot(kind: CostKind) -> Work:
    """A product of groups of rows with a matrix each; together, the groups are as long as the dimension."""
    numbers, lhs = kind.fact(RAGGED_NUMBERS), kind.operands[0].shape or ()
    if not isinstance(numbers, RaggedNumbers) or len(kind.operands) < 3:
        return Work(is_known=False)
    depth = prod(lhs[dim] for dim in numbers.lhs_contracting)
    groups = 1
    if set(numbers.lhs_ragged) <= set(numbers.lhs_contracting):  # every group has a result, of its part of the sum
        groups = (kind.operands[2].shape or (1,))[-1]
    return Work(2.0 * kind.results[0].elements * depth / max(1, groups), is_matrix=True)


def _largest(kind: CostKind) -> Work:
    """One comparison per element: the price of finding the largest ones is that of reading all."""
    return Work(float(kind.operands[0].elements))


def _convolution(kind: CostKind) -> Work:
    """Twice the number of products of an input element and a kernel element; padding counts nothing."""
    lhs, rhs = (tensor.shape or () for tensor in kind.operands[:2])
    out = kind.results[0].shape or ()
    numbers = kind.fact("dimension_numbers")
    assert isinstance(numbers, ConvolutionNumbers)
    rank = len(numbers.lhs_spatial)
    strides, pads = kind.fact("window_strides", (1,) * rank), kind.fact("padding", ((0, 0),) * rank)
    base, window = kind.fact("lhs_dilation", (1,) * rank), kind.fact("rhs_dilation", (1,) * rank)
    groups: int = kind.fact("batch_group_count", 1)  # type: ignore[assignment]
    valid = 1
    for place, dims in enumerate(zip(numbers.lhs_spatial, numbers.kernel_spatial, numbers.output_spatial)):
        valid *= _valid_places(
            lhs[dims[0]], rhs[dims[1]], out[dims[2]],
            strides[place], pads[place][0], base[place], window[place],  # type: ignore[index]
        )  # fmt: skip
    products = valid * rhs[numbers.kernel_input_feature] * out[numbers.output_feature] * lhs[numbers.lhs_batch]
    return Work(2.0 * products / groups, is_matrix=True)


def _valid_places(size: int, kernel: int, out: int, stride: int, low: int, base: int, window: int) -> int:
    """The number of pairs of an output and a kernel position that meet an input element, along one dimension.

    >>> _valid_places(8, 3, 8, 1, 1, 1, 1)
    22
    """
    if base == 1 and low == 0 and (out - 1) * stride + (kernel - 1) * window < size:
        return out * kernel
    found = 0
    for tap in range(kernel):
        offset = tap * window - low
        if base == 1:  # 0 <= place * stride + offset < size
            first = max(0, -(offset // stride))
            last = min(out - 1, (size - 1 - offset) // stride)
            found += max(0, last - first + 1)
        else:
            found += sum(
                1 for place in range(out)
                if 0 <= (at := place * stride + offset) <= (size - 1) * base and at % base == 0
            )  # fmt: skip
    return found


def _reduce(kind: CostKind) -> Work:
    return _of_body(kind, float(max(0, kind.operands[0].elements - kind.results[0].elements)))


def is_cumulative(kind: CostKind) -> bool:
    """Whether an op gives every element the sum, or another combination, of all elements up to it along a dimension.

    >>> from pyshardy.costing.program import CostTensor
    >>> x = CostTensor((64,), "f32", 256)
    >>> is_cumulative(CostKind("stablehlo.reduce_window", (x,), (x,), (("window_dimensions", (64,)),)))
    True
    """
    if kind.name != "stablehlo.reduce_window":
        return kind.name == "chlo.scan"
    window: Sequence[int] = kind.fact("window_dimensions", ())  # type: ignore[assignment]
    shape = kind.operands[0].shape or ()
    long = [(size, whole) for size, whole in zip(window, shape) if size > 1]
    return kind.results[0].shape == shape and len(long) == 1 and long[0][0] == long[0][1]


def _reduce_window(kind: CostKind) -> Work:
    if is_cumulative(kind):
        return _scan(kind)
    window: Sequence[int] = kind.fact("window_dimensions", ())  # type: ignore[assignment]
    return _of_body(kind, float(kind.results[0].elements * (prod(window) - 1)))


def _scan(kind: CostKind) -> Work:
    return _of_body(kind, float(kind.operands[0].elements))


def _select_and_scatter(kind: CostKind) -> Work:
    window: Sequence[int] = kind.fact("window_dimensions", ())  # type: ignore[assignment]
    source = kind.operands[1].elements
    return Work(float(source * prod(window)))


def _scatter(kind: CostKind) -> Work:
    return _of_body(kind, float(kind.operands[-1].elements))


def _sort(kind: CostKind) -> Work:
    elements = kind.operands[0].elements
    return Work(float(elements * math.ceil(math.log2(max(2, elements)))))


def _reduction(kind: CostKind) -> Work:
    """The additions of a device in an all-reduce; XLA counts none for a reduce-scatter."""
    return _of_body(kind, float(sum(tensor.elements for tensor in kind.results)))


def _fft(kind: CostKind) -> Work:
    lengths: Sequence[int] = kind.fact("fft_length", ())  # type: ignore[assignment]
    elements = max(kind.operands[0].elements, kind.results[0].elements)
    return Work(5.0 * elements * math.log2(max(2, prod(lengths))))


def _cholesky(kind: CostKind) -> Work:
    return Work(kind.operands[0].elements * (kind.operands[0].shape or (1,))[-1] / 3.0, is_solver=True)


def _triangular_solve(kind: CostKind) -> Work:
    return Work(float(kind.operands[1].elements * (kind.operands[0].shape or (1,))[-1]), is_solver=True)


def _random_bits(kind: CostKind) -> Work:
    words = kind.results[-1].bytes / 4
    return Work(words * (_THREEFRY_FLOPS if "THREE_FRY" in str(kind.fact("rng_algorithm")) else _PHILOX_FLOPS))


def _batch_norm(kind: CostKind) -> Work:
    return Work(8.0 * kind.operands[0].elements)


def _clamp(kind: CostKind) -> Work:
    return Work(float(kind.results[0].elements))


def _map(kind: CostKind) -> Work:
    return _of_body(kind, float(kind.results[0].elements))


def custom_call_of(kind: CostKind) -> CustomCall | None:
    """What a custom call runs; None for another op, and for a call that computes nothing.

    >>> custom_call_of(CostKind("stablehlo.custom_call", (), (), (("call_target_name", "mystery"),)))
    CustomCall(name='mystery', target='mystery', priced_by=None)
    """
    if kind.name != CUSTOM_CALL:
        return None
    target = str(kind.fact("call_target_name", ""))
    if target in _CUSTOM_CALLS_WITHOUT_WORK or RAGGED in target:
        return None
    priced_by = None if not work_of(kind).is_known else "its shapes" if kind.fact(KERNEL_COST) is None else "its author"
    return CustomCall(_kernel_name(kind), target, priced_by)


def _kernel_name(kind: CostKind) -> str:
    return str(kind.fact(KERNEL_NAME) or kind.fact("call_target_name", ""))


def _custom_call(kind: CostKind) -> Work:
    stated: Sequence[float] | None = kind.fact(KERNEL_COST)  # type: ignore[assignment]
    if stated is not None:
        flops, transcendentals, moved = stated
        return Work(flops, transcendentals, is_matrix=True, bytes=moved)
    if RAGGED in str(kind.fact("call_target_name", "")):
        return Work()
    if kind.fact("call_target_name") in _LARGEST:
        return _largest(kind)
    target, name = str(kind.fact("call_target_name", "")), _kernel_name(kind).lower()
    if any(part in name for part in _ATTENTION) and len(kind.operands) >= 3:
        return _attention(kind, name, target in _HEADS_FIRST)
    solver = _SOLVERS.get(_solver_name(target))
    if solver is not None and kind.operands:
        flops = solver * kind.operands[0].elements * (kind.operands[0].shape or (1,))[-1]
        return Work(flops, is_solver=True)
    return Work(is_known=target in _CUSTOM_CALLS_WITHOUT_WORK)


def _solver_name(target: str) -> str:
    """The decomposition that a library computes.

    >>> _solver_name("lapack_sgetrf_ffi"), _solver_name("cusolver_potrf_ffi"), _solver_name("Sharding")
    ('getrf', 'potrf', '')
    """
    match = _SOLVER_CALL.fullmatch(target)
    return "" if match is None else match[1]


def _attention(kind: CostKind, name: str, heads_first: bool) -> Work:
    """Attention in one kernel, with operands [batch, sequence, heads, depth], or heads before the sequence.

    Queries and keys are the first operands that can be; before them, some kernels have tables of which blocks to read.
    A causal mask halves the products, if the call or its name says that it has one; else all of them count.
    """
    shapes = [one.shape or () for one in kind.operands if one.dtype.startswith(_FLOATS)]
    arrays = [shape for shape in shapes if len(shape) in (3, 4)]
    if len(arrays) < 2:
        return Work(is_known=False)
    query, keys = arrays[:2]
    products = next((count for part, count in _ATTENTION_PRODUCTS if part in name), 2)
    share = 0.5 if "causal" in name or kind.fact(KERNEL_CAUSAL) else 1.0
    read = keys[-2] if heads_first else keys[-3]
    return Work(2.0 * products * share * prod(query) * read, is_matrix=True)


_LARGEST = frozenset(("ApproxTopK", "PartialReduce", "TopK", "mhlo.topk"))
"""The targets of calls that find the largest elements."""
_FLOATS = ("f", "bf")
_HEADS_FIRST = frozenset(("tpu_custom_call",))
"""The targets of kernels of attention whose operands have the heads before the sequence."""
_ATTENTION_PRODUCTS = (("dkv", 4), ("dq", 3), ("backward", 5), ("bwd", 5))
"""The products of a gradient, by part of a kernel's name; one that gives only some gradients computes scores again."""
_ATTENTION = ("flash_attention", "fmha", "splash", "mha_forward", "mha_backward")
"""Parts of the names of functions that compute attention without storing its scores."""
_SOLVERS = {
    "getrf": 2 / 3, "potrf": 1 / 3, "geqrf": 4 / 3, "orgqr": 4 / 3, "householder_product": 4 / 3, "syevd": 9.0,
    "gesdd": 22.0, "gesvd": 22.0, "gesvdj": 22.0, "gesvdp": 22.0, "syevj": 9.0,
}  # fmt: skip
"""The operations of decompositions of an n x n matrix, divided by n cubed: textbook figures of dense linear algebra."""
_SOLVER_CALL = re.compile(r"(?:lapack_[sdcz]|cusolver_|hipsolver_)(\w+)_ffi")
_CUSTOM_CALLS_WITHOUT_WORK = frozenset(
    (
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "xla.sdy.FuncResultSharding",
        "annotate_device_placement",
        "AllocateBuffer",
        "InspectSharding",
        "LayoutConstraint",
        "xla.megascale.provide_metadata",
    )
)

_FAMILIES: dict[str, Callable[[CostKind], Work]] = {
    "chlo.ragged_dot": _ragged_dot,
    "chlo.scan": _scan,
    "chlo.top_k": _largest,
    "mhlo.ragged_dot": _ragged_dot,
    "mhlo.topk": _largest,
    "stablehlo.all_reduce": _reduction,
    "stablehlo.batch_norm_grad": _batch_norm,
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.batch_norm_training": _batch_norm,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.clamp": _clamp,
    "stablehlo.convolution": _convolution,
    CUSTOM_CALL: _custom_call,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot,
    "stablehlo.fft": _fft,
    "stablehlo.map": _map,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng": _batch_norm,
    "stablehlo.rng_bit_generator": _random_bits,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": _sort,
    "stablehlo.triangular_solve": _triangular_solve,
}
