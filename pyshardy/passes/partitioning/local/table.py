"""Which function makes which op local; all others run on shards as they are."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.ir.nodes import Op
from pyshardy.passes.partitioning.local import calls, collectives, constants, contraction
from pyshardy.passes.partitioning.local.all_to_all import lower_all_to_all
from pyshardy.passes.partitioning.local.checks import check_runs_locally
from pyshardy.passes.partitioning.local.localizer import Localizer

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
    "stablehlo.iota": constants.localize_iota,
    "stablehlo.dot": contraction.localize_dot,
    "stablehlo.dot_general": contraction.localize_dot,
    "stablehlo.convolution": contraction.localize_convolution,
}


def localize_any(op: Op, local: Localizer) -> None:
    """The same op on shards."""
    check_runs_locally(op, local)
    local.keep(op)
