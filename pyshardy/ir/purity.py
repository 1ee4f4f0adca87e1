"""Which ops may be removed when nothing uses their results.

Source: docs/semantics/propagation.md#dead-ops
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.ir.nodes import TERMINATORS, Op

_PURE_DIALECTS = frozenset(("stablehlo", "chlo", "arith", "math", "complex", "tensor", "mhlo", "scf", "shape"))
_PURE_OF_OTHERS = frozenset(
    ("sdy.constant", "sdy.reshard", "sdy.propagation_barrier", "sdy.manual_computation", "sdy.named_computation",
     "builtin.unrealized_conversion_cast", "func.constant", "ub.poison")
)  # fmt: skip
_IMPURE_HLO = (
    "all_gather", "all_reduce", "async_done", "async_start", "collective_broadcast", "composite", "infeed", "outfeed",
    "recv", "reduce_scatter", "rng", "send",
)  # fmt: skip
_IMPURE = {
    "stablehlo": (*_IMPURE_HLO, "all_to_all", "collective_permute", "collective_reduce"),
    "mhlo": (*_IMPURE_HLO, "acos", "acosh", "asin", "asinh", "async_update", "atanh", "cosh", "custom_call", "fusion",
             "partition_id", "sinh", "xla.rng_get_and_update_state"),
    "shape": ("cstr_broadcastable", "cstr_eq", "cstr_require", "debug_print", "is_broadcastable", "meet", "reduce"),
}  # fmt: skip
_IMPURE_OPS = frozenset(f"{dialect}.{name}" for dialect, names in _IMPURE.items() for name in names)
_ENDS = TERMINATORS | {
    "cf.switch", "scf.condition", "scf.forall.in_parallel", "scf.reduce", "scf.reduce.return", "scf.yield",
    "shape.assuming_yield", "shape.yield", "tensor.yield",
}  # fmt: skip
"""Ops that end a block: never removed by themselves, and without an effect of their own."""


def is_pure(op: Op, also: frozenset[str] = frozenset()) -> bool:
    """Whether the op, with all that it holds, has no effect but its results; ops called as in `also` have none."""
    return op.name not in _ENDS and _has_no_effect(op, also)


def _has_no_effect(op: Op, also: frozenset[str]) -> bool:
    if op.name not in _ENDS and op.name not in also and not _is_pure_alone(op):
        return False
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if not _has_no_effect(inner, also):
                    return False
                inner = inner.next
    return True


def _is_pure_alone(op: Op) -> bool:
    name = op.name
    if name == "stablehlo.custom_call":
        effect = op.attrs.get("has_side_effect")
        return effect is None or not effect.value
    return _is_pure_name(name)


@lru_cache(maxsize=1024)
def _is_pure_name(name: str) -> bool:
    return name in _PURE_OF_OTHERS or (name not in _IMPURE_OPS and name.partition(".")[0] in _PURE_DIALECTS)


register_cache(_is_pure_name.cache_clear)
