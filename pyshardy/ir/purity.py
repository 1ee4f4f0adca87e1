"""Which ops may be removed when nothing uses their results (propagation spec, section 6.4)."""

from __future__ import annotations

from pyshardy.ir.nodes import TERMINATORS, Op

_IMPURE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "async_done", "async_start", "collective_broadcast",
        "collective_permute", "collective_reduce", "composite", "infeed", "outfeed", "recv",
        "reduce_scatter", "rng", "send",
    )
)  # fmt: skip
_PURE_SDY = frozenset(("sdy.constant", "sdy.reshard", "sdy.propagation_barrier"))
_AS_ITS_BODY = frozenset(("sdy.manual_computation", "sdy.named_computation"))
_PURE_DIALECTS = frozenset(("stablehlo", "chlo", "arith", "math", "complex", "tensor", "mhlo", "shape"))


def is_pure(op: Op) -> bool:
    """Whether the op, with all that it holds, has no effect but its results."""
    if not _is_pure_alone(op):
        return False
    for region in op.regions:
        for block in region.blocks:
            for inner in block:
                if inner.name not in TERMINATORS and not is_pure(inner):
                    return False
    return True


def _is_pure_alone(op: Op) -> bool:
    name = op.name
    if name == "stablehlo.custom_call":
        effect = op.attrs.get("has_side_effect")
        return effect is None or not effect.value
    if name.startswith("sdy."):
        return name in _PURE_SDY or name in _AS_ITS_BODY
    return name not in _IMPURE and name.partition(".")[0] in _PURE_DIALECTS and name not in TERMINATORS
