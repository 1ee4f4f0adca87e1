"""Reading and writing the sharding of a value, wherever it is stored.

Source: docs/semantics/representation.md#where-shardings-live
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding, mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.blocks import Value
from pyshardy.ir.dataflow import DATA_FLOW_OPS, block_arg_owners, edge_held, is_data_flow_op, owner_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import (
    SHARDING,
    arg_sharding,
    change_border_attrs,
    result_sharding,
    return_op,
    set_arg_sharding,
)
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shared_attributes import SharedChanges, SharedOutcomes
from pyshardy.ir.value_type import ValueType
from pyshardy.propagation.views import join_manual_axes, strip_manual_axes
from pyshardy.rules.ops import OPS

ModuleMeshes = dict[str, Mesh]

_ATTRIBUTE_OF_MOST = (SHARDING,)
_ATTRIBUTES = {name: traits.own_shardings for name, traits in OPS.items() if traits.own_shardings}
OWN_ATTRIBUTE = {name: attributes[0] for name, attributes in _ATTRIBUTES.items() if len(attributes) == 1}
"""Per op: the name of the attribute that holds the sharding of its only result."""
_OF_RESULTS = {name: attributes[-1] for name, attributes in _ATTRIBUTES.items() if len(attributes) > 1}
HOLD_OTHERWISE = frozenset((*DATA_FLOW_OPS, *OWN_ATTRIBUTE))
"""Ops whose results do not have their shardings in the usual attribute."""


def module_meshes(root: Op) -> ModuleMeshes:
    """The meshes of a module by name, in order."""
    return {op.attrs["sym_name"]: op.attrs["mesh"] for op in root.region.block if op.name == "sdy.mesh"}


def check_shardings(
    op: Op, shardings: Sequence[TensorSharding], types: Sequence[ValueType], meshes: Mapping[str, Mesh]
) -> None:
    """Refuse shardings that came as text, which MLIR's verifier has not seen, and do not fit their values.

    Args:
        op: What has the shardings; errors point at it.
        shardings: One per value. A tuple has any number of them; an op without results has the one of its device.
        types: The types of the values.
        meshes: The meshes of the module.

    Raises:
        PassError: A wrong number of them, an unknown mesh or axis, or a sharding of another rank than its value's.
    """
    is_fixed = bool(types) and all(type.is_ranked_tensor for type in types)
    if is_fixed and len(shardings) != len(types):
        raise PassError(op, f"has {len(shardings)} shardings, and needs {len(types)}, one per value")
    ranks = [type.rank for type in types] if is_fixed else [sharding.rank for sharding in shardings]
    try:
        for sharding, rank in zip(shardings, ranks):
            check_sharding(sharding, mesh_of(sharding, meshes), rank)
    except InvalidShardingError as error:
        raise PassError(op, f"has a sharding that does not fit: {error}") from error


def holder_of(value: Value) -> Value | None:
    """The value that holds the sharding of `value`: itself, a data-flow edge's result, or nothing."""
    edge = edge_held(value)
    if edge is not None:
        return edge.result
    if value.defining_op is not None:
        return value
    parent = value.block.parent_op
    if parent.name == "func.func":
        return value
    if is_data_flow_op(parent):
        return owner_of(value)
    if parent.name == "stablehlo.async_start":
        return holder_of(parent.operands[value.index])
    return None


def get_sharding(value: Value) -> TensorSharding | None:
    """The sharding of a value; None if it has none or cannot have one."""
    owner = value.owner
    if isinstance(owner, Op):
        op = owner
        if op.name not in HOLD_OTHERWISE:
            shardings = op.attrs.get(SHARDING)
            return shardings[value.index] if shardings else None
        if op.name in OWN_ATTRIBUTE:
            own: TensorSharding | None = op.attrs.get(OWN_ATTRIBUTE[op.name])
            return own
    elif owner.parent_op.name == "func.func":
        return arg_sharding(owner.parent_op, value.index)
    holder = holder_of(value)
    return None if holder is None else stored_sharding(holder)


def get_shardings(values: Iterable[Value]) -> list[TensorSharding | None]:
    """The sharding of each value: `get_sharding` for many values, faster than one call for each."""
    found: list[TensorSharding | None] = []
    for value in values:
        owner = value.owner
        if isinstance(owner, Op):
            op = owner
            if op.name not in HOLD_OTHERWISE:
                shardings = op.attrs.get(SHARDING)
                found.append(shardings[value.index] if shardings else None)
                continue
        found.append(get_sharding(value))
    return found


def set_sharding(value: Value, sharding: TensorSharding) -> None:
    """Set the sharding of a value; does nothing for a value that cannot have one."""
    holder = holder_of(value)
    if holder is not None:
        store_sharding(holder, sharding)


def stored_sharding(holder: Value) -> TensorSharding | None:
    """The sharding of a value that holds its own."""
    op = holder.defining_op
    if op is None:
        parent = holder.block.parent_op
        if parent.name == "func.func":
            return arg_sharding(parent, holder.index)
        return _block_arg_sharding(parent, holder.index)
    name = OWN_ATTRIBUTE.get(op.name)
    if name is not None:
        return op.attrs.get(name)
    shardings = op.attrs.get(results_attribute(op))
    return shardings[holder.index] if shardings else None


def store_sharding(holder: Value, sharding: TensorSharding) -> None:
    """Set the sharding of a value that holds its own."""
    op = holder.defining_op
    if op is None:
        parent = holder.block.parent_op
        if parent.name == "func.func":
            set_arg_sharding(parent, holder.index, sharding)
        else:
            outer = _outer(parent, holder.index, sharding)
            _store_in_list(parent, "in_shardings", holder.block.args, holder.index, outer)
        return
    name = OWN_ATTRIBUTE.get(op.name)
    if name is not None:
        op.set_attr(name, sharding)
    else:
        _store_in_list(op, results_attribute(op), op.results, holder.index, sharding)


def results_attribute(op: Op) -> str:
    """Name of the attribute with the shardings of all results of an op."""
    return _OF_RESULTS.get(op.name, SHARDING)


def _store_in_list(op: Op, name: str, values: Sequence[Value], index: int, sharding: TensorSharding) -> None:
    if len(values) == 1:
        op.set_attr(name, (sharding,))
        return
    old = op.attrs.get(name) or tuple(
        TensorSharding.fully_replicated(sharding.mesh, value.type.rank, is_open=True) for value in values
    )
    op.set_attr(name, (*old[:index], sharding, *old[index + 1 :]))


def _block_arg_sharding(op: Op, index: int) -> TensorSharding | None:
    shardings = op.attrs.get("in_shardings")
    if not shardings:
        return None
    if op.name == "sdy.manual_computation":
        return strip_manual_axes(shardings[index], op.attrs["manual_axes"])
    found: TensorSharding = shardings[index]
    return found


def _outer(op: Op, index: int, sharding: TensorSharding) -> TensorSharding:
    """A block argument's sharding as it is stored on the op."""
    if op.name != "sdy.manual_computation":
        return sharding
    return join_manual_axes(op.attrs["in_shardings"][index], sharding, op.attrs["manual_axes"])


def block_arg_shardings(op: Op) -> list[TensorSharding]:
    """The stored shardings of the block arguments of a data-flow op, inner view; empty if there are none."""
    if not op.attrs.get("in_shardings"):
        return []
    return [_block_arg_sharding(op, arg.index) for arg in block_arg_owners(op)]  # type: ignore[misc]


def set_block_arg_shardings(op: Op, shardings: Iterable[TensorSharding]) -> None:
    """Store the shardings of the block arguments of a named or manual computation, given in inner view."""
    op.set_attr("in_shardings", tuple(_outer(op, index, sharding) for index, sharding in enumerate(shardings)))


_WITH_OWN_ATTRIBUTES = HOLD_OTHERWISE | {"func.func"}


def transform_shardings(root: Op, change: Callable[[TensorSharding], TensorSharding]) -> None:
    """Replace every sharding of a module; `change` is called once for each, in canonical order of first appearance.

    A function comes with its arguments, then its results; an op comes before the ops inside it.

    Source: docs/semantics/representation.md#order-of-a-walk

    Raises:
        PassError: `change` refused a sharding; names the op that carries it.
    """
    _Changer(change).apply_to_all(ops_with(root, SHARDING, _WITH_OWN_ATTRIBUTES))


class _Changer:
    """Changes shardings and tuples of them, each once.

    Args:
        change: Changes one sharding.
    """

    def __init__(self, change: Callable[[TensorSharding], TensorSharding]) -> None:
        self._change = change
        self._changed: dict[Any, Any] = {}
        self._changes = SharedChanges()
        self._outcomes = SharedOutcomes(self._of_most)

    def apply_to_all(self, ops: list[Op]) -> None:
        """Change the shardings on some ops."""
        for op in ops:
            try:
                self.apply_to(op)
            except InvalidShardingError as error:
                raise PassError(op, str(error)) from error

    def apply_to(self, op: Op) -> None:
        """Change the shardings on an op; on a function, those of its arguments and results."""
        if op.name not in _WITH_OWN_ATTRIBUTES:
            self._outcomes.apply(op)
        elif op.name == "func.func":
            change_border_attrs(op, self._of_most)
        else:
            for name in sharding_attributes(op):
                value = op.attrs.get(name)
                new = self._of(value) if value else value
                if new is not value:
                    self._changes.set(op, name, new)

    def _of_most(self, attrs: Attributes) -> Attributes:
        """The changed attributes of an argument, or of an op whose only shardings are those of its results."""
        value = attrs.get(SHARDING)
        new = self._of(value) if value else value
        return attrs if new is value else attrs.with_value(SHARDING, new)

    def _of(self, value: Any) -> Any:
        found = self._changed.get(value)
        if found is None:
            found = (
                self._change(value) if isinstance(value, TensorSharding) else tuple([self._of(one) for one in value])
            )
            self._changed[value] = found
        return found


def sharding_attributes(op: Op) -> tuple[str, ...]:
    """Names of the sharding attributes of an op other than a function, in canonical order."""
    return _ATTRIBUTES.get(op.name, _ATTRIBUTE_OF_MOST)


def fill_shardings(
    shardings: Sequence[TensorSharding | None], values: Sequence[Value], meshes: ModuleMeshes
) -> tuple[TensorSharding, ...] | None:
    """One sharding per value, fully open for values without one; None if none is on an ordinary mesh.

    Fully open shardings are on the mesh of the first sharding that is not on a single-device mesh.
    """
    first = next((s for s in shardings if s is not None and not mesh_of(s, meshes).is_single_device), None)
    if first is None:
        return None
    return tuple(
        sharding or TensorSharding.fully_replicated(first.mesh, value.type.rank, is_open=True)
        for sharding, value in zip(shardings, values)
    )


def all_arg_shardings(function: Op, meshes: ModuleMeshes) -> tuple[TensorSharding, ...] | None:
    """The shardings of the arguments of a function by `fill_shardings`."""
    args = function.region.blocks[0].args
    return fill_shardings([arg_sharding(function, arg.index) for arg in args], args, meshes)


def all_result_shardings(function: Op, meshes: ModuleMeshes) -> tuple[TensorSharding, ...] | None:
    """The shardings of the results of a function by `fill_shardings`."""
    returned = return_op(function).operands
    shardings = [result_sharding(function, index) for index in range(len(returned))]
    return fill_shardings(shardings, returned, meshes)
