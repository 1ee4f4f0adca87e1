"""`sdy-drop-sharding-and-mesh`: a program without global shapes has no shardings (export spec, section 4.11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyshardy.ir.attrs import symbols_in
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext

_METADATA = ("sdy.output_shardings", "sdy.parameters_shardings")


class DropShardingAndMesh(Pass):
    """Remove the shardings of ops, arguments and results, and the meshes that nothing refers to any more.

    Shardings that an op cannot do without stay: those of reshards, collectives, edges and manual computations.

    Attributes:
        keep_module_sharding_metadata: Whether the shardings that are noted on the module stay.
    """

    keep_module_sharding_metadata: bool = False

    name = "sdy-drop-sharding-and-mesh"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        if not self.keep_module_sharding_metadata:
            for name in _METADATA:
                op.attrs.pop(name, None)
        for inner in walk(op):
            inner.attrs.pop(SHARDING, None)
            if inner.name == "func.func":
                for entry in (*(inner.attrs.get("arg_attrs") or ()), *(inner.attrs.get("res_attrs") or ())):
                    entry.pop(SHARDING, None)
        for inner in list(walk(op)):
            if inner.name == "builtin.module":
                _erase_unused_meshes(inner)


def _erase_unused_meshes(module: Op) -> None:
    """Erase, one by one, the meshes of a module that no op in it refers to; its own attributes do not count."""
    uses = Counter(name for op in _ops_of(module) for name in _symbols_of(op))
    for op in module.region.block:
        if op.name == "sdy.mesh" and not uses[op.attrs["sym_name"]]:
            uses.subtract(_symbols_of(op))
            op.erase()


def _ops_of(op: Op) -> Iterator[Op]:
    """The ops inside an op, but not those inside inner modules, which have symbols of their own."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block:
                yield inner
                if inner.name != "builtin.module":
                    yield from _ops_of(inner)


def _symbols_of(op: Op) -> Iterator[str]:
    return (path[0] for attr in op.attrs.values() for path in symbols_in(attr))
