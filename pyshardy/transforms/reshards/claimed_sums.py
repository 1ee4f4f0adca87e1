"""Results with unreduced axes that no operand and no attribute of their op explains."""

from __future__ import annotations

from pyshardy.core.axis_lists import subtract_axes
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, get_shardings, set_sharding
from pyshardy.reshard.conflicts import shared_axes
from pyshardy.rules.rule import FactorKind


def reshard_complete_results(op: Op, meshes: Meshes) -> bool:
    """Reshard results that are complete to the unreduced axes that their shardings state; whether there were any.

    An input that the devices do not divide loses axes after propagation. A product of it is then complete on every
    device, and an all-reduce behind it would count it several times.

    Args:
        op: An op with all its shardings.
        meshes: The meshes of the module.
    """
    rule = op.attrs.get(RULE)
    if rule is None or not op.operands or len(op.results) != 1:
        return False
    result = op.result
    sharding = get_sharding(result)
    if sharding is None or not sharding.unreduced:
        return False
    mesh = mesh_of(sharding, meshes)
    given = get_shardings(op.operands)
    axes = shared_axes(rule, (*given, sharding), mesh)
    if axes is None:
        return False
    made = sum((axes[factor] for factor in rule.factors_of(FactorKind.REDUCTION)), ())
    made += sum((one.unreduced for one in given if one is not None), ())
    complete = subtract_axes(sharding.unreduced, made, mesh)
    if not complete:
        return False
    set_sharding(result, sharding.with_unreduced(subtract_axes(sharding.unreduced, complete, mesh)))
    attrs = {"axes": complete, "out_sharding": sharding}
    step = Op("sdy.replicated_to_unreduced", [result], [result.type], attrs, location=op.place).insert_after(op)
    result.replace_other_uses(step)
    return True
