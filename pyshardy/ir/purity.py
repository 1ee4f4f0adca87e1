"""Finding ops that may be removed when nothing uses their results.

Source: docs/semantics/propagation.md#dead-ops
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.ir.op import Op
from pyshardy.rules.ops import OPS, PURE_DIALECTS, ops_that
from pyshardy.rules.traits import BY_ATTRIBUTE

_ENDS = ops_that(lambda traits: traits.is_terminator or traits.ends_other_blocks)
"""Ops that end a block: never removed by themselves, and without side effects."""
_ASKED = ops_that(lambda traits: traits.pure == BY_ATTRIBUTE)
"""Ops with an attribute that says whether they have side effects."""


def is_pure(op: Op, also: frozenset[str] = frozenset()) -> bool:
    """Whether the op and all ops inside it have no side effects; ops that `also` accepts count as having none."""
    return op.name not in _ENDS and _has_no_effect(op, also)


def is_dead(op: Op, also: frozenset[str] = frozenset()) -> bool:
    """Whether nothing uses the results of an op, and it and all ops inside it have no side effects."""
    return not op.has_uses() and is_pure(op, also)


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
    if name in _ASKED:
        effect = op.attrs.get(BY_ATTRIBUTE)
        return effect is None or not effect.value
    return _is_pure_name(name)


@lru_cache(maxsize=1024)
def _is_pure_name(name: str) -> bool:
    traits = OPS.get(name)
    return name.partition(".")[0] in PURE_DIALECTS if traits is None else bool(traits.pure)


register_cache(_is_pure_name.cache_clear)
