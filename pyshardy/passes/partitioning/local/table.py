"""Which function makes which op local; all others run on shards as they are."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.errors import InvalidRuleError, InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.passes.partitioning.kinds import kind_of
from pyshardy.passes.partitioning.local import calls, collectives, constants, contraction, slicing
from pyshardy.passes.partitioning.local.all_to_all import lower_all_to_all
from pyshardy.passes.partitioning.local.checks import check_runs_locally
from pyshardy.passes.partitioning.local.dynamic_update_slice import localize_dynamic_update_slice
from pyshardy.passes.partitioning.local.gather import localize_gather
from pyshardy.passes.partitioning.local.localizer import Localizer
from pyshardy.passes.partitioning.local.pad import localize_pad
from pyshardy.passes.partitioning.local.random import localize_rng, localize_rng_bit_generator
from pyshardy.passes.partitioning.local.reduction import localize_reduce
from pyshardy.passes.partitioning.local.scatter import localize_scatter
from pyshardy.passes.partitioning.local.window import localize_window_op

Handler = Callable[[Op, Localizer], None]

UNTOUCHED = frozenset(("builtin.module", "sdy.mesh"))
"""Ops that do not compute."""
ILLEGAL = frozenset(
    f"sdy.{name}"
    for name in ("reshard", "sharding_constraint", "propagation_barrier", "data_flow_edge", "sharding_group")
)
"""Ops that must be gone."""

HANDLERS: dict[str, Handler] = {
    "func.func": calls.localize_function,
    "func.call": calls.localize_call,
    "func.return": calls.localize_return,
    "sdy.named_computation": calls.localize_named_computation,
    "stablehlo.return": calls.localize_return,
    "stablehlo.while": calls.localize_same_index,
    "stablehlo.optimization_barrier": calls.localize_same_index,
    "stablehlo.case": calls.localize_branches,
    "stablehlo.if": calls.localize_branches,
    "sdy.manual_computation": calls.inline_manual_computation,
    "sdy.return": calls.leave_region,
    "sdy.all_gather": collectives.lower_all_gather,
    "sdy.all_reduce": collectives.lower_all_reduce,
    "sdy.all_slice": collectives.lower_all_slice,
    "sdy.all_to_all": lower_all_to_all,
    "sdy.collective_permute": collectives.lower_collective_permute,
    "sdy.reduce_scatter": collectives.lower_reduce_scatter,
    "sdy.sharded_to_unreduced": collectives.lower_sharded_to_unreduced,
    "sdy.replicated_to_unreduced": collectives.lower_replicated_to_unreduced,
    "sdy.constant": constants.localize_constant,
    "stablehlo.constant": constants.localize_constant,
    "stablehlo.get_dimension_size": constants.localize_get_dimension_size,
    "stablehlo.iota": constants.localize_iota,
    "stablehlo.dot": contraction.localize_dot,
    "stablehlo.dot_general": contraction.localize_dot,
    "stablehlo.convolution": contraction.localize_convolution,
    "stablehlo.concatenate": slicing.localize_concatenate,
    "stablehlo.slice": slicing.localize_slice,
    "stablehlo.dynamic_slice": slicing.localize_dynamic_slice,
    "stablehlo.dynamic_update_slice": localize_dynamic_update_slice,
    "stablehlo.pad": localize_pad,
    "stablehlo.gather": localize_gather,
    "stablehlo.scatter": localize_scatter,
    "stablehlo.reduce": localize_reduce,
    "stablehlo.reduce_window": localize_window_op,
    "stablehlo.select_and_scatter": localize_window_op,
    "stablehlo.rng": localize_rng,
    "stablehlo.rng_bit_generator": localize_rng_bit_generator,
}


def localize_all(ops: list[Op], local: Localizer) -> None:
    """Make ops local, one after the other.

    Raises:
        PassError: An op that cannot run on shards.
    """
    for op in ops:
        name = op.name
        handle = HANDLERS.get(name)
        if handle is None:
            if name in UNTOUCHED:
                continue
            if name in ILLEGAL:
                raise PassError(op, "has no meaning on one device; earlier passes remove such ops")
            handle = localize_any
        try:
            handle(op, local)
        except (InvalidRuleError, InvalidShardingError) as error:
            raise PassError(op, str(error)) from error


def localize_any(op: Op, local: Localizer) -> None:
    """The same op on shards."""
    kind = kind_of(op, local.global_types)
    if not local.keep_like_others(op, kind):
        check_runs_locally(op, local)
        local.keep_for_kind(op, kind)
