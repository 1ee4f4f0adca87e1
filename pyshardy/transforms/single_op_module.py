"""Moves an op into its own module, and the result back as the body of a manual computation.

Source: docs/semantics/partitioner.md#one-op-at-a-time
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from jaxlib.mlir import ir

from pyshardy.core.devices import padded_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import common_mesh, mesh_of, shard_counts
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import calls, functions, is_declaration, set_arg_sharding, set_result_sharding, signature
from pyshardy.ir.nodes import Op, Value, ValueType, walk_post_order
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.operand_shardings import location_of, make_reshard

_ENTRY = "main"
_MESH = "mesh"
_PADDED_LATER = frozenset(("sdy.reshard", "sdy.constant"))
"""Ops whose operands are not sliced and whose results are not padded at the border of the module."""


@dataclass(frozen=True, slots=True)
class BoundaryValue:
    """An operand or result of the manual computation.

    Attributes:
        value: The value outside.
        sharding: Its sharding outside; replicated if it has none.
        type: Its type at the border, with sizes that are multiples of its shard counts.
    """

    value: Value
    sharding: TensorSharding
    type: ValueType

    @property
    def is_padded(self) -> bool:
        """Whether its size differs at the border."""
        return self.type is not self.value.type


class SingleOp:
    """An op of a module, which gets its own module.

    Args:
        ops: The op, and the all-reduce that completes its result, if there is one.
        context: The pass context.

    Raises:
        PassError: Its values are on different meshes.
    """

    def __init__(self, ops: Sequence[Op], context: PassContext) -> None:
        self.ops = ops
        self.op = ops[0]
        self.context = context
        self.symbols = SymbolTable(context.root)
        captured = self.captured = list(dict.fromkeys(_values_from_outside(self.op)))
        values = [*self.op.operands, *captured, *self.results]
        self.mesh = self._mesh_name(values)
        self.functions = _called_functions(self.op, self.symbols)
        self.inputs = [self._border(value) for value in values[: len(values) - len(self.results)]]
        self.outputs = [self._border(value) for value in self.results]

    @property
    def results(self) -> Sequence[Value]:
        """The values that the rest of the module uses."""
        return self.ops[-1].results

    def _mesh_name(self, values: Iterable[Value]) -> str:
        """The name of the mesh; a mesh without a name gets one."""
        found = common_mesh(map(get_sharding, values), self.context.meshes)
        if found is None:
            raise PassError(self.op, "has values on different meshes, and a manual computation is on one")
        ref, mesh = found
        return ref if isinstance(ref, str) else self._named(mesh)

    def _named(self, mesh: Mesh) -> str:
        known = next((name for name, other in self.context.meshes.items() if other is mesh), None)
        if known is not None:
            return known
        new = Op("sdy.mesh", attrs={"mesh": mesh, "sym_name": _MESH}, location=self.op.location)
        self.symbols.block.prepend(new)
        return self.symbols.insert(new)

    def _border(self, value: Value) -> BoundaryValue:
        known = get_sharding(value)
        sharding = (
            TensorSharding.fully_replicated(self.mesh, value.type.rank) if known is None else known.with_mesh(self.mesh)
        )
        if not value.type.is_ranked_tensor:
            return BoundaryValue(value, sharding, value.type)
        shape = value.type.shape or ()
        padded = self._resharded_shape() if self._is_reshard() else padded_shape(sharding, self._mesh(), shape)
        return BoundaryValue(value, sharding, self.context.attrs.ranked_type(padded, value.type))

    def _mesh(self) -> Mesh:
        return self.context.meshes[self.mesh]

    def _is_reshard(self) -> bool:
        return self.op.name == "sdy.reshard"

    def _resharded_shape(self) -> tuple[int, ...]:
        """Sizes that are multiples of the shard counts before and after a reshard."""
        given, wanted = (get_sharding(value) for value in (self.op.operands[0], self.op.result))
        shape = self.op.result.type.shape or ()
        counts = [
            shard_counts(one, mesh_of(one, self.context.meshes)) if one is not None else (1,) * len(shape)
            for one in (given, wanted)
        ]
        both = [lcm(*pair) for pair in zip(*counts)]
        return tuple(size if size < 0 else -(-size // count) * count for size, count in zip(shape, both))

    # Into its own module

    def module(self) -> Op:
        """A module with the op in a function on the values at the border, and with everything the op refers to."""
        root = Op("builtin.module", region_count=1, location=self.context.root.location)
        block = root.region.add_block()
        for mesh in (op for op in self.symbols.block if op.name == "sdy.mesh"):
            block.append(mesh.clone())
        for function in self.functions:
            block.append(function.clone())
        SymbolTable(root).insert(self._entry())
        return root

    def _entry(self) -> Op:
        """The function with the op. It slices the operands to their outer sizes, and pads the results."""
        location = self.op.location
        attrs = {"sym_name": _ENTRY, "sym_visibility": "private"}
        function = Op("func.func", attrs=attrs, region_count=1, location=location)
        block = function.region.add_block()
        builder = Builder(self.context.attrs, block, location)
        args = [block.add_arg(boundary.type, location) for boundary in self.inputs]
        count = len(self.op.operands)
        taken = list(zip(args, self.inputs))
        captured = [self._taken_in(builder, *one) for one in taken[count:]]
        operands = [self._taken_in(builder, *one) for one in taken[:count]]
        made = self._clone_ops(builder, operands, captured)
        results = [self._given_out(builder, value, boundary) for value, boundary in zip(made, self.outputs)]
        builder.op("func.return", results, [])
        function.set_attr("function_type", signature(function))
        for index, boundary in enumerate(self.inputs):
            set_arg_sharding(function, index, boundary.sharding)
        for index, boundary in enumerate(self.outputs):
            set_result_sharding(function, index, boundary.sharding)
        return function

    def _taken_in(self, builder: Builder, value: Value, boundary: BoundaryValue) -> Value:
        """An argument for the op: sliced, and replicated along the concatenated dimension."""
        if boundary.is_padded and self.op.name not in _PADDED_LATER:
            inner = Builder(builder.attrs, builder.place, builder.location, boundary.sharding)
            value = inner.cut(value, boundary.value.type.shape or ())
        whole = self._unjoined(boundary.sharding)
        return value if whole is boundary.sharding else builder.put(make_reshard(value, whole)).result

    def _given_out(self, builder: Builder, value: Value, boundary: BoundaryValue) -> Value:
        """A result of the function."""
        if self._unjoined(boundary.sharding) is not boundary.sharding:
            value = builder.put(make_reshard(value, boundary.sharding)).result
        if not boundary.is_padded or self.op.name in _PADDED_LATER:
            return value
        return _padded(Builder(builder.attrs, builder.place, builder.location, boundary.sharding), value, boundary.type)

    def _unjoined(self, sharding: TensorSharding) -> TensorSharding:
        """A sharding without axes along the dimension that the op concatenates, if it concatenates."""
        if self.op.name != "stablehlo.concatenate":
            return sharding
        joined = ir.IntegerAttr(self.op.attrs["dimension"]).value
        return sharding.with_dims(
            DimSharding(is_open=dim.is_open) if index == joined and dim.axes else dim
            for index, dim in enumerate(sharding.dims)
        )

    def _clone_ops(self, builder: Builder, operands: Sequence[Value], captured: Sequence[Value]) -> Sequence[Value]:
        """Insert copies of the ops on these values; return the results of the last one."""
        copy = self.op.clone(dict(zip(self.captured, captured)))
        for index, value in enumerate(operands):
            copy.set_operand(index, value)
        builder.put(copy)
        for op in self.ops[1:]:
            copy = builder.put(op.clone(dict(zip(self.op.results, copy.results))))
        for value, boundary in zip(copy.results, self.outputs):
            if get_sharding(value) is None or self.op.name == "stablehlo.concatenate":
                set_sharding(value, self._unjoined(boundary.sharding))
            if self._is_reshard():
                value.set_type(boundary.type)
        return copy.results

    # Back

    def replace(self, root: Op) -> None:
        """Replace the op by the body of the partitioned module."""
        *others, entry = functions(root)
        names = {}
        for function in others:
            old = function.attrs["sym_name"]
            names[old] = self.symbols.insert(function.detach())
        for function in (entry, *others):
            _rename_calls(function, names)
        computation = self._computation(entry)
        following = self.ops[-1].next if len(self.ops) == 1 else self.op.next
        assert following is not None
        for value, new, boundary in zip(self.results, computation.results, self.outputs):
            if boundary.is_padded:
                builder = Builder(self.context.attrs, following, location_of(value), boundary.sharding)
                new = builder.cut(new, value.type.shape or ())
            value.replace_uses(new)
        for op in reversed(self.ops):
            op.erase()

    def _computation(self, entry: Op) -> Op:
        """Insert the manual computation before the op, with the body of the function."""
        computation = Op(
            "sdy.manual_computation",
            [self._operand(boundary) for boundary in self.inputs],
            [boundary.type for boundary in self.outputs],
            {
                "in_shardings": tuple(boundary.sharding for boundary in self.inputs),
                "out_shardings": tuple(boundary.sharding for boundary in self.outputs),
                "manual_axes": self._mesh().axis_names,
            },
            1,
            self.op.location,
        ).insert_before(self.op)
        computation.region.take_body(entry.region)
        last = computation.region.block.terminator
        Op("sdy.return", last.operands, location=last.location).insert_before(last)
        last.erase()
        return computation

    def _operand(self, boundary: BoundaryValue) -> Value:
        """A value at the border: padded, or the value that it was sliced from."""
        if not boundary.is_padded:
            return boundary.value
        whole = _before_cut(boundary.value)
        if whole is not None and whole.type is boundary.type:
            return whole
        builder = Builder(self.context.attrs, self.op, self.op.location, boundary.sharding)
        return _padded(builder, boundary.value, boundary.type)


def _padded(builder: Builder, value: Value, type: ValueType) -> Value:
    """A value, padded with zeros at the end."""
    plain = Builder(builder.attrs, builder.place, builder.location)
    zero = plain.splat(zero_text(type.element), plain.like((), type))
    old, new = value.type.shape or (), type.shape or ()
    return builder.pad(value, zero, [0] * len(old), [after - before for before, after in zip(old, new)])


def _before_cut(value: Value) -> Value | None:
    """The value of which a slice has taken the leading part, if there is one."""
    op = value.defining_op
    if op is None or op.name != "stablehlo.slice":
        return None
    starts, strides = list(op.attrs["start_indices"]), list(op.attrs["strides"])
    return op.operands[0] if not any(starts) and set(strides) <= {1} else None


def _values_from_outside(op: Op) -> Iterable[Value]:
    """The values from outside that the regions of an op use, in post-order.

    `captured_by` lists them in XLA's order instead: the operands of an op before what its regions use.
    """
    defined: set[Value] = set()
    inner = [user for region in op.regions for block in region.blocks for top in block for user in walk_post_order(top)]
    for user in inner:
        defined.update(user.results)
        defined.update(arg for region in user.regions for block in region.blocks for arg in block.args)
    defined.update(arg for region in op.regions for block in region.blocks for arg in block.args)
    return (value for user in inner for value in user.operands if value not in defined)


def _called_functions(op: Op, symbols: SymbolTable) -> list[Op]:
    """The functions that an op calls, directly or through others.

    Raises:
        PassError: One of them has no body.
    """
    found: dict[str, Op] = {}
    pending = [op]
    while pending:
        for call in calls(pending.pop()):  # the last one found comes first, as the names of copies show
            name = call.attrs["callee"]
            if name in found:
                continue
            found[name] = symbols[name]
            if is_declaration(found[name]):
                raise PassError(call, f"calls @{name}, which has no body that could run on shards")
            pending.append(found[name])
    return list(found.values())


def _rename_calls(op: Op, names: dict[str, str]) -> None:
    for call in calls(op):
        call.set_attr("callee", names.get(call.attrs["callee"], call.attrs["callee"]))


SingleOpPartition = Callable[[Op], None]
"""Runs passes on a module, in place."""


def partition_alone(ops: Sequence[Op], context: PassContext, partition: SingleOpPartition) -> None:
    """Replace an op, and the all-reduce after it if given, by a manual computation over all axes of its mesh."""
    single = SingleOp(ops, context)
    module = single.module()
    partition(module)
    single.replace(module)
