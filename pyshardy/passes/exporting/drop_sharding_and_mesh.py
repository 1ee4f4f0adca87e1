"""`sdy-drop-sharding-and-mesh`: removes shardings and meshes from a program without global shapes.

Source: docs/semantics/export.md#sdy-drop-sharding-and-mesh
"""

from __future__ import annotations

from collections import Counter

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import SHARDING, change_border_attrs
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import count_attributes, ops_in, ops_named, ops_with
from pyshardy.ir.shared_attributes import SharedOutcomes
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_METADATA = ("sdy.output_shardings", "sdy.parameters_shardings")
_MODULE = ("builtin.module",)


class DropShardingAndMesh(Pass):
    """Remove the shardings of ops, arguments and results, and the meshes that become unused.

    Ops that require shardings keep them: reshards, collectives, edges and manual computations.

    Attributes:
        keep_module_sharding_metadata: Whether to keep the shardings that are recorded on the module.
    """

    keep_module_sharding_metadata: bool = False

    name = "sdy-drop-sharding-and-mesh"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        if not self.keep_module_sharding_metadata:
            for name in _METADATA:
                op.remove_attr(name)
        outcomes = SharedOutcomes(_without_sharding)
        for inner in ops_with(op, SHARDING):
            outcomes.apply(inner)
        for function in ops_named(op, ("func.func",)):
            change_border_attrs(function, _without_sharding)
        for module in ops_named(op, _MODULE):
            _erase_unused_meshes(module)


def _without_sharding(attrs: Attributes) -> Attributes:
    return attrs.without(SHARDING)


def _erase_unused_meshes(module: Op) -> None:
    """Erase, one by one, the meshes of a module that no op in it refers to; its own attributes do not count."""
    meshes = [op for op in module.region.block if op.name == "sdy.mesh"]
    if not meshes:
        return
    uses = _symbol_uses(ops_in(module, closed=_MODULE)[1:])  # inner modules have their own symbols
    for op in meshes:
        if not uses[op.attrs["sym_name"]]:
            uses.subtract(_symbol_uses([op]))
            op.erase()


def _symbol_uses(ops: list[Op]) -> Counter[str]:
    """How often ops refer to each symbol; an attribute that many ops share is searched once."""
    # The attributes of functions hold lists; channels are frequent and have no symbols.
    counts, functions = count_attributes(ops, ("func.func",), "channel_handle")
    uses = Counter(path[0] for op in functions for attr in op.attrs.values() for path in symbols_in(attr))
    for attr, count in counts.items():
        for path in symbols_in(attr):
            uses[path[0]] += count
    return uses
