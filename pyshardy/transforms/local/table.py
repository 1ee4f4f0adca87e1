"""The functions that make ops local, by the trait `local`; ops without an entry run on shards unchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

from pyshardy.core.intern import register_cache
from pyshardy.errors import InvalidRuleError, InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.op import Op
from pyshardy.rules.ops import OPS
from pyshardy.rules.traits import ON_SHARDS, function_of_trait
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.reshards.kinds import kind_of

LocalHandler = Callable[[Op, Localizer], None]


def localize_all(ops: list[Op], local: Localizer) -> None:
    """Make ops local, one by one.

    Raises:
        PassError: An op cannot run on shards.
    """
    for op in ops:
        try:
            local_handler_of(op.name)(op, local)
        except (InvalidRuleError, InvalidShardingError) as error:
            raise PassError(op, str(error)) from error


@cache
def local_handler_of(name: str) -> LocalHandler:
    """The function that makes ops of a name local.

    >>> [local_handler_of(name).__name__ for name in ("stablehlo.slice", "stablehlo.add", "sdy.reshard", "sdy.mesh")]
    ['localize_slice', 'localize_any', 'refuse', 'leave_alone']
    """
    traits = OPS.get(name)
    entry = ON_SHARDS if traits is None or traits.local is None else traits.local
    return cast(LocalHandler, function_of_trait("local", entry))


register_cache(local_handler_of.cache_clear)


def localize_any(op: Op, local: Localizer) -> None:
    """Keep the op, if it gives the right result on shards."""
    kind = kind_of(op, local.global_types)
    if not local.keep_like_others(op, kind):
        check_runs_locally(op, local)
        local.keep_for_kind(op, kind)


def leave_alone(op: Op, local: Localizer) -> None:
    """Keep an op that computes nothing."""


def refuse(op: Op, local: Localizer) -> None:
    """Raise `PassError` for an op that only annotates values with shardings."""
    raise PassError(op, "has no meaning on one device; earlier passes remove such ops")
