"""Random valid custom calls of every target that has a rule, and of some that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .draw import Draw, Shape, function, op, op_line, tensor

_POINTWISE_TARGETS = """
    annotate_device_placement Cholesky CompactWyHelper InspectSharding InvertDiagBlocksLowerTriangular
    InvertDiagBlocksUpperTriangular LayoutConstraint mhlo.erf MoveToDevice MoveToHost X64SplitHigh X64SplitLow
    xla.megascale.provide_metadata _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate _SPMDInternalOp_MultiSlice
    _SPMDInternalOp_RotateRight _SPMDInternalOp_Wrap
""".split()  # noqa: SIM905
_TARGETS_WITHOUT_RULE = """
    sdy_testonly tpu_custom_call xla_python_cpu_callback xla.debug.Log CustomSPMDPartitioning Sharding qr moveToHost
""".split()  # noqa: SIM905


def custom_call(target: str, operands: Iterable[str], results: Iterable[str]) -> str:
    """A custom call of a target."""
    return op("stablehlo.custom_call", [*operands], [*results], f'call_target_name = "{target}"')


def pointwise_call(draw: Draw) -> str:
    """Any pointwise target, with operands and further results of at most the rank of the first result."""
    shape = draw.shape()
    operands, results = (
        [tensor(shape if draw.flag(0.7) else draw.shape(max_rank=len(shape))) for _ in range(draw.randint(low, 3))]
        for low in (1, 0)
    )
    return custom_call(draw.choice(_POINTWISE_TARGETS), operands, [tensor(shape), *results])


def token_call(draw: Draw) -> str:
    """A pointwise target whose first result is a token: it has no rule."""
    target = draw.choice(_POINTWISE_TARGETS)
    return custom_call(target, [tensor(draw.shape()), "!stablehlo.token"], ["!stablehlo.token"])


def call_without_rule(draw: Draw) -> str:
    """Targets that have no rule, on purpose or because they are unknown."""
    type = tensor(draw.shape())
    return custom_call(draw.choice(_TARGETS_WITHOUT_RULE), [type] * draw.randint(0, 2), [type])


def linear_algebra_call(draw: Draw) -> str:
    """The decompositions that are custom calls."""
    batch, rows, columns = draw.shape(max_rank=2), draw.size(), draw.size()
    matrix, vector = tensor((*batch, rows, columns)), tensor((*batch, min(rows, columns)))
    square, values = tensor((*batch, rows, rows)), tensor((*batch, rows))
    target = draw.choice(["Eigh", "Qr", "QrDecompositionBlock", "ProductOfElementaryHouseholderReflectors"])
    if target == "Eigh":
        return custom_call(target, [square], [square, values])
    if target.startswith("Qr"):
        return custom_call(target, [matrix], [matrix, vector])
    return custom_call(target, [matrix, vector], [matrix])


def _shortened(draw: Draw) -> tuple[Shape, Shape]:
    shape = draw.shape(min_rank=1)
    cut = draw.subset(range(len(shape)), at_most=2)
    return shape, tuple(draw.below(size) if dim in cut else size for dim, size in enumerate(shape))


def mhlo_topk(draw: Draw, target: str = "mhlo.topk") -> str:
    """The largest elements."""
    shape, kept = _shortened(draw)
    return custom_call(target, [tensor(shape)], [tensor(kept), tensor(kept, "i32")])


def topk(draw: Draw) -> str:
    """The largest elements, under the name that only the newest reference knows."""
    return mhlo_topk(draw, "TopK")


def approximate_topk(draw: Draw) -> str:
    """The largest elements, approximately."""
    shape, kept = _shortened(draw)
    operands = [tensor(shape), tensor(shape, "i32"), "tensor<f32>", "tensor<i32>"]
    target = draw.choice(["ApproxTopK", "PartialReduce"])
    return custom_call(target, operands, [tensor(kept), tensor(kept, "i32")])


def x64_combine(draw: Draw) -> str:
    """Joins two halves, sometimes to a random state."""
    shape = (2,) if draw.flag() else draw.shape()
    halves, whole = [tensor(shape, "ui32")] * 2, tensor(shape, "ui64")
    body = op_line("stablehlo.custom_call", halves, [whole], 'call_target_name = "X64Combine"')
    if shape == (2,) and draw.flag(0.7):
        attrs = "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>"
        results = [whole, tensor(draw.shape(), "ui32")]
        body += "\n" + op_line("stablehlo.rng_bit_generator", [whole], results, attrs, names="%r").replace(
            "%r", "%s", 1
        )
    return function(body, halves)


KINDS: tuple[Callable[[Draw], str], ...] = (
    pointwise_call, token_call, call_without_rule, linear_algebra_call, mhlo_topk, topk, approximate_topk, x64_combine,
)  # fmt: skip
