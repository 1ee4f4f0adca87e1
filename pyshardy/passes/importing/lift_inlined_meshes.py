"""`sdy-lift-inlined-meshes`: gives every mesh one symbol; all shardings refer to it.

Source: docs/semantics/import.md#sdy-lift-inlined-meshes
"""

from __future__ import annotations

import re

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol, quote, unquote
from pyshardy.ir.device_groups import inlined_mesh
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import transform_shardings
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Pass
from pyshardy.rules.ops import ops_that
from pyshardy.transforms.context import PassContext

MESH_ATTRIBUTE = "stablehlo.mesh"

_WITH_REPLICA_GROUPS = ops_that(lambda traits: traits.has_replica_groups)
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_MESH_OF_GROUPS = re.compile(
    rf"mesh = (?:@(?P<symbol>[\w$.]+|{_QUOTED})"
    rf'|(?P<mesh>#stablehlo\.mesh<axes ?= ?\[(?:{_QUOTED}|[^\]"])*\]'
    r"(?:, device_ids ?= ?dense<[^>]*> : tensor<[^>]*>)?>))"
)


class LiftInlinedMeshes(Pass):
    """Give every mesh a symbol and every sharding the symbol of its mesh; merge equal meshes.

    Attributes:
        use_single_device_mesh_names: Whether single-device meshes are named `single_device...`, not `maximal_mesh...`.
    """

    name = "sdy-lift-inlined-meshes"

    use_single_device_mesh_names: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        lift_inlined_meshes(op, context, "single_device" if self.use_single_device_mesh_names else "maximal_mesh")


def lift_inlined_meshes(root: Op, context: PassContext, single_device_prefix: str = "maximal_mesh") -> None:
    """Replace inlined meshes by symbols and equal meshes by the first of them.

    Args:
        root: The module.
        context: The pass context.
        single_device_prefix: Prefix for the names of new single-device meshes.
    """
    lifter = _Lifter(root, context, single_device_prefix)
    transform_shardings(root, lifter.lift)
    for op in ops_named(root, _WITH_REPLICA_GROUPS):
        if "replica_groups" in op.attrs:
            op.set_attr("replica_groups", lifter.lift_replica_groups(op.attrs["replica_groups"]))
    for op in root.region.block:
        if op.name == "sdy.mesh" and MESH_ATTRIBUTE not in op.attrs:
            op.set_attr(MESH_ATTRIBUTE, context.attrs.parse(_stablehlo_mesh(op.attrs["mesh"])))


class _Lifter:
    def __init__(self, root: Op, context: PassContext, single_device_prefix: str) -> None:
        self.context = context
        self.block = root.region.block
        self.single_device_prefix = single_device_prefix
        self.symbols = SymbolTable(root)
        self.names: dict[Mesh, str] = {}
        self.replaced: dict[str, str] = {}
        self.last_mesh: Op | None = None
        self.lifted_groups: dict[object, object] = {}
        self.group_meshes: dict[str, str] = {}
        for op in self.block:
            if op.name == "sdy.mesh":
                self.merge(op)

    def merge(self, op: Op) -> None:
        """Keep a mesh op, or erase it if an equal one precedes it."""
        name = op.attrs["sym_name"]
        kept = self.names.setdefault(op.attrs["mesh"], name)
        if kept == name:
            self.last_mesh = op
        else:
            self.replaced[name] = kept
            self.symbols.erase(name)

    def lift(self, sharding: TensorSharding) -> TensorSharding:
        """The sharding with the symbol of a mesh that is kept."""
        mesh = sharding.mesh
        return sharding.with_mesh(self.name_of(mesh) if isinstance(mesh, Mesh) else self.replaced.get(mesh, mesh))

    def name_of(self, mesh: Mesh) -> str:
        """The symbol of a mesh; made if there is none yet."""
        found = self.names.get(mesh)
        if found is None:
            found = self.names[mesh] = self.add(mesh)
        return found

    def add(self, mesh: Mesh) -> str:
        """Add a mesh op after the others."""
        if mesh.is_single_device:
            assert mesh.device_ids is not None
            base = f"{self.single_device_prefix}_{mesh.device_ids[0]}"
        else:
            base = "empty_mesh" if mesh.is_empty else "mesh"
        op = Op("sdy.mesh", attrs={"sym_name": base, "mesh": mesh}, location=self.context.root.location)
        if self.last_mesh is None:
            self.block.prepend(op)
        else:
            op.insert_after(self.last_mesh)
        self.last_mesh = op
        return self.symbols.insert(op)

    def lift_replica_groups(self, groups: object) -> object:
        """Replica groups along mesh axes, with the symbol of a mesh that is kept; other groups unchanged."""
        found = self.lifted_groups.get(groups)
        if found is None:
            text = str(groups)
            found = groups
            if text.startswith("#stablehlo.replica_group_mesh_axes"):
                lifted = _MESH_OF_GROUPS.sub(self._group_mesh, text, count=1)
                found = groups if lifted == text else self.context.attrs.parse(lifted)
            self.lifted_groups[groups] = found
        return found

    def _group_mesh(self, match: re.Match[str]) -> str:
        symbol, text = match["symbol"], match["mesh"]
        if symbol is not None:
            name = unquote(symbol[1:-1]) if symbol.startswith('"') else symbol
            return f"mesh = {format_symbol(self.replaced.get(name, name))}"
        if text not in self.group_meshes:
            self.group_meshes[text] = self.add(inlined_mesh(text))
        return f"mesh = {format_symbol(self.group_meshes[text])}"


def _stablehlo_mesh(mesh: Mesh) -> str:
    axes = ", ".join(f"{{name = {quote(name)}, size = {size} : i64}}" for name, size in mesh.axes)
    if mesh.device_ids is None:
        return f"{{axes = [{axes}]}}"
    ids = list(mesh.device_ids)
    values = ids[0] if len(set(ids)) == 1 else ids
    return f"{{axes = [{axes}], device_ids = dense<{values}> : tensor<{len(ids)}xi64>}}"
