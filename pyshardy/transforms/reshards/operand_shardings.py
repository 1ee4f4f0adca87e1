"""Changes the sharding of one use of a value.

Source: docs/semantics/reshards-and-collectives.md#meeting-a-target
Source: docs/semantics/reshards-and-collectives.md#partial-operands
Source: docs/semantics/reshards-and-collectives.md#becoming-unreduced
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import sdy

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import is_strict_prefix, sort_and_merge, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding

REDUCTION_CODES = {ReductionKind.SUM: 0, ReductionKind.MAX: 1, ReductionKind.MIN: 2}
_KINDS = {code: kind for kind, code in REDUCTION_CODES.items()}
_WRITES_SUM = hasattr(sdy.AllReduceOp, "reduction_op")


def location_of(value: Value) -> Any:
    """The location of a value, for the ops that change its sharding."""
    op = value.defining_op
    return value.location if op is None else op.location


def _place_of(value: Value) -> Any:
    """The location, or a function that gives it."""
    op = value.defining_op
    return value.place if op is None else op.place


def make_reshard(value: Value, sharding: TensorSharding) -> Op:
    """A detached reshard of a value."""
    return Op("sdy.reshard", [value], [value.type], {"sharding": sharding}, location=_place_of(value))


def all_reduce_kind(op: Op) -> ReductionKind:
    """The reduction of an `sdy.all_reduce` or `sdy.reduce_scatter`; before jaxlib 0.12 it is always a sum."""
    return _KINDS[op.attrs.get("reduction_op", 0)]


def make_all_reduce(value: Value, axes: Axes, kind: ReductionKind, sharding: TensorSharding) -> Op:
    """A detached all-reduce of a value along some axes."""
    attrs: dict[str, Any] = {"reduction_axes": axes, "out_sharding": sharding}
    if _WRITES_SUM or kind is not ReductionKind.SUM:
        attrs["reduction_op"] = REDUCTION_CODES[kind]
    return Op("sdy.all_reduce", [value], [value.type], attrs, location=_place_of(value))


class OpOperand:
    """One operand of an op, and the position for ops that change its sharding.

    Args:
        op: The op.
        index: Number of the operand.
        meshes: The meshes of the module.
        at_definition: Whether to insert new ops after the definition of the value instead of before the op.
    """

    __slots__ = ("op", "index", "meshes", "at_definition")

    def __init__(self, op: Op, index: int, meshes: Meshes, at_definition: bool = False) -> None:
        self.op = op
        self.index = index
        self.meshes = meshes
        self.at_definition = at_definition

    @property
    def value(self) -> Value:
        """The value that is currently used."""
        return self.op.operands[self.index]

    def put(self, new: Op) -> None:
        """Insert an op on the value, and use its result."""
        definition = self.value.defining_op
        if not self.at_definition:
            new.insert_before(self.op)
        elif definition is None:
            self.value.block.prepend(new)
        else:
            new.insert_after(definition)
        self.op.set_operand(self.index, new.result)

    def meet(self, target: TensorSharding | None, is_full: bool) -> None:
        """All-reduce unreduced axes that the target lacks, make the value unreduced along those it adds, and reshard.

        Args:
            target: The needed sharding; None means closed and replicated.
            is_full: Whether to reshard.
        """
        self.reduce(target)
        self.make_unreduced(target)
        if is_full:
            self.reshard(target)

    def reshard(self, target: TensorSharding | None) -> None:
        """Reshard to the target unless that would change nothing."""
        sharding = get_sharding(self.value)
        if sharding is None:
            if target is not None and not target.is_fully_replicated:
                self.put(make_reshard(self.value, target))
        elif not is_equivalent(sharding, target):
            replicated = TensorSharding.fully_replicated(sharding.mesh, self.value.type.rank)
            self.put(make_reshard(self.value, target or replicated))

    def reduce(self, target: TensorSharding | None) -> None:
        """All-reduce along the unreduced axes that the target lacks."""
        sharding = get_sharding(self.value)
        if sharding is None or not sharding.unreduced:
            return
        wanted = () if target is None else target.unreduced
        mesh = mesh_of(sharding, self.meshes) if target is None else self._check_same_mesh(sharding, target)
        axes = subtract_axes(sharding.unreduced, wanted, mesh)
        if axes:
            kept = subtract_axes(sharding.unreduced, axes, mesh)
            self.put(make_all_reduce(self.value, axes, sharding.reduction, sharding.with_unreduced(kept)))

    def make_unreduced(self, target: TensorSharding | None) -> None:
        """Make the value unreduced along the axes along which only the target is unreduced."""
        sharding = get_sharding(self.value)
        if sharding is None or target is None or not target.unreduced:
            return
        mesh = self._check_same_mesh(sharding, target)
        new = subtract_axes(target.unreduced, sharding.unreduced, mesh)
        if not new:
            return
        lost = subtract_axes(sharding.unreduced, target.unreduced, mesh)
        if lost:
            raise PassError(self.op, f"drops and adds unreduced axes at once, {lost[0]} and {new[0]}")
        self._convert(sharding, target, new, mesh)

    def _convert(self, sharding: TensorSharding, target: TensorSharding, new: Axes, mesh: Mesh) -> None:
        dims, from_dims, needs_reshard = _split(sharding, target, new, mesh)
        if needs_reshard:
            sharding = sharding.with_dims(dims)
            self.put(make_reshard(self.value, sharding))
        from_nowhere = subtract_axes(new, sum(from_dims, ()), mesh)
        if from_nowhere:
            unreduced = sort_and_merge(sharding.unreduced + from_nowhere, mesh)
            between = TensorSharding(sharding.mesh, dims, target.replicated, unreduced, target.reduction)
            self.put(self._make_unreducing("sdy.replicated_to_unreduced", from_nowhere, between))
        if any(from_dims):
            self.put(self._make_unreducing("sdy.sharded_to_unreduced", tuple(from_dims), target))

    def _make_unreducing(self, name: str, axes: Any, sharding: TensorSharding) -> Op:
        value = self.value
        attrs = {"axes": axes, "out_sharding": sharding}
        return Op(name, [value], [value.type], attrs, location=_place_of(value))

    def _check_same_mesh(self, sharding: TensorSharding, target: TensorSharding) -> Mesh:
        mesh = mesh_of(sharding, self.meshes)
        if mesh_of(target, self.meshes) is not mesh:
            raise PassError(
                self.op,
                f"needs operand {self.index}, which is sharded {sharding}, as {target}; "
                "with unreduced axes both must be on the same mesh",
            )
        return mesh


def _split(
    sharding: TensorSharding, target: TensorSharding, new: Axes, mesh: Mesh
) -> tuple[list[DimSharding], list[Axes], bool]:
    """Per dimension, its sharding before axes become unreduced, and these axes; and whether a reshard comes first."""
    dims: list[DimSharding] = []
    from_dims: list[Axes] = []
    needs_reshard = False
    for have, want in zip(sharding.dims, target.dims):
        rest = subtract_axes(have.axes, want.axes, mesh) if is_strict_prefix(want.axes, have.axes) else ()
        if rest and not subtract_axes(rest, new, mesh):
            dims.append(have)
            from_dims.append(rest)
        else:
            dims.append(want)
            from_dims.append(())
            needs_reshard |= have.axes != want.axes
    return dims, from_dims, needs_reshard
