"""Expands the ops of `jax.experimental.custom_partitioning`.

JAX leaves an op in the module, and XLA's partitioner calls the user's function for the per-device program. Here the
function is called in the same way, and its result becomes a manual computation, as with `jax.shard_map`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.frontend import jax_lower
from pyshardy.frontend.from_jax import JaxSignature, load_lowered, mesh_to_lower_for, partition_spec
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions, main_function, return_op
from pyshardy.ir.locations import location_name, named_location, source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.read import read_module
from pyshardy.ir.shardings import get_sharding, module_meshes, transform_shardings
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Pass
from pyshardy.runtime.arrays import jax_dtype
from pyshardy.transforms.channels import CHANNEL, Channels
from pyshardy.transforms.context import PassContext

_TARGET = "CustomSPMDPartitioning"
_GROUPS = "replica_groups"


class ExpandUserPartitioners(Pass):
    """Replace custom-partitioned ops by the results of their partitioners.

    Ops whose partitioner is unknown, and those inside manual computations, stay. Shardings must be closed.

    Attributes:
        module: The module that the nodes come from, with the partitioners in its origin; only `partition` has it.
    """

    module: Module

    name = "pyshardy-expand-user-partitioners"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        origin = self.module.origin
        known = origin.partitioners if isinstance(origin, JaxSignature) else {}
        for call in [inner for inner in walk(op) if _is_call(inner)]:
            partitioner = known.get(string_value(call.attrs["backend_config"]))
            if partitioner is not None and call.enclosing("sdy.manual_computation") is None:
                _Expansion(call, partitioner, op, self.module).run()


def _is_call(op: Op) -> bool:
    return op.name == "stablehlo.custom_call" and string_value(op.attrs["call_target_name"]) == _TARGET


class _Expansion:
    """The expansion of one op.

    Args:
        op: The op.
        partitioner: JAX's record of the user's function.
        root: The module.
        module: The module that it comes from.
    """

    def __init__(self, op: Op, partitioner: Any, root: Op, module: Module) -> None:
        self.op, self.partitioner, self.root, self.module = op, partitioner, root, module
        self.meshes = module_meshes(root)
        self.mesh = self._find_mesh()
        self.jax_mesh = mesh_to_lower_for(module.origin, self.mesh)

    def _find_mesh(self) -> Mesh:
        """The mesh of the op's shardings, or the first one with axes."""
        found = (get_sharding(value) for value in (*self.op.operands, *self.op.results))
        used = (mesh_of(sharding, self.meshes) for sharding in found if sharding is not None)
        return next(mesh for mesh in (*used, *self.meshes.values()) if mesh.axes)

    def run(self) -> None:
        """Replace the op."""
        part = self._per_device()
        self._use_our_meshes(part)
        self._splice(part)

    def _per_device(self) -> Op:
        """A module with a function that computes the op by a manual computation."""
        asked = self.partitioner
        args = [self._shape(value) for value in self.op.operands]
        results = [self._shape(value) for value in self.op.results]
        try:
            mesh, function, out, ins = asked.partition(
                *asked.static_args, self.jax_mesh, asked.in_tree.unflatten(args), asked.out_tree.unflatten(results)
            )
            in_specs = [_spec(*pair) for pair in zip(asked.in_tree.flatten_up_to(ins), args)]
            out_specs = [_spec(*pair) for pair in zip(asked.out_tree.flatten_up_to(out), results)]

            def flat(*leaves: Any) -> Any:
                return tuple(asked.out_tree.flatten_up_to(function(*asked.in_tree.unflatten(leaves))))

            manual = jax.shard_map(
                flat, mesh=mesh, in_specs=tuple(in_specs), out_specs=tuple(out_specs), check_vma=False
            )
            traced = jax.jit(manual, keep_unused=True).trace(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args))
            lowered = jax_lower.lower_traced(traced, self.module.origin.platform)
        except Exception as error:
            raise PassError(
                self.op, f"calls a custom partitioner, which fails: {type(error).__name__}: {error}"
            ) from error
        with self.module.context:
            return read_module(ir.Module.parse(load_lowered(lowered).bytecode()), self.module.attrs)

    def _shape(self, value: Value) -> jax.ShapeDtypeStruct:
        """A tensor as partitioners see it; replicated if JAX could not shard it evenly."""
        shape = value.type.shape or ()
        sharding = NamedSharding(self.jax_mesh, self._spec_of(get_sharding(value), shape))
        return jax.ShapeDtypeStruct(shape, jax_dtype(value.type.element), sharding=sharding)

    def _spec_of(self, sharding: TensorSharding | None, shape: Sequence[int]) -> PartitionSpec:
        if sharding is None or mesh_of(sharding, self.meshes) != self.mesh:
            return PartitionSpec()
        uneven = any(
            size % prod(axis.length(self.mesh) for axis in axes) for size, axes in zip(shape, sharding.dim_axes)
        )
        try:
            return PartitionSpec() if uneven else partition_spec(sharding.with_unreduced(()), len(shape))
        except InvalidShardingError:  # parts of axes
            return PartitionSpec()

    def _use_our_meshes(self, part: Op) -> None:
        """Rename meshes to their names in our module."""
        names = dict(self._names(part))
        for function in functions(part):
            transform_shardings(function, lambda sharding: sharding.with_mesh(names[sharding.mesh]))
        for op in walk(part):
            text = str(op.attrs.get(_GROUPS, ""))
            for old, new in names.items():
                if f"mesh = @{old}," in text:
                    op.set_attr(_GROUPS, self.module.attrs.parse(text.replace(f"mesh = @{old},", f"mesh = @{new},")))

    def _names(self, part: Op) -> Iterator[tuple[Any, str]]:
        ours = {mesh: name for name, mesh in reversed(self.meshes.items())}
        for name, mesh in module_meshes(part).items():
            if mesh not in ours:
                raise PassError(self.op, f"calls a custom partitioner, which returned another mesh, {mesh}")
            yield name, ours[mesh]

    def _splice(self, part: Op) -> None:
        """Replace the op by the body of the main function, and append the other functions to our module."""
        channels = Channels(self.root, self.module.attrs)
        for op in walk(part):
            self._locate(op)
            if CHANNEL in op.attrs:
                op.set_attr(CHANNEL, channels.next())
        main = main_function(part)
        self._rename([function for function in functions(part) if function is not main], part)
        mapping: dict[Value, Value] = dict(zip(main.region.block.args, self.op.operands))
        returned = return_op(main)
        for op in main.region.block:
            if op is not returned:
                op.clone(mapping).insert_before(self.op)
        for old, new in zip(self.op.results, returned.operands):
            old.replace_uses(mapping[new])
        self.op.erase()

    def _locate(self, op: Op) -> None:
        """Give an op of a library's partitioner the line of the op that it partitions; a user's own has lines.

        So has the manual computation around it, which pyshardy traces.
        """
        innermost = next((file for file, _, _ in source_frames(op.location)), "")
        if op.name == "sdy.manual_computation" and innermost in (__file__, jax_lower.__file__):
            op.location = self.op.location
        elif innermost == __file__:
            name = location_name(op.location)
            with self.module.context:
                op.location = self.op.location if name is None else named_location(name, self.op.location)

    def _rename(self, private: Sequence[Op], part: Op) -> None:
        """Move functions to our module, under free names."""
        taken = {function.attrs["sym_name"] for function in functions(self.root)} | set(self.meshes)
        names: dict[str, str] = {}
        for function in private:
            name = function.attrs["sym_name"]
            free = name
            while free in taken:
                free += "_"
            taken.add(free)
            names[name] = free
        for op in walk(part):
            if op.name == "func.call":
                op.set_attr("callee", names[op.attrs["callee"]])
        for function in private:
            function.set_attr("sym_name", names[function.attrs["sym_name"]])
            self.root.region.block.append(function.detach())


def _spec(sharding: Any, tensor: jax.ShapeDtypeStruct) -> PartitionSpec:
    """The spec that a partitioner gives a tensor, without entries past the last dimension that shard nothing.

    JAX ignores such entries, and partitioners rely on it: they give a result the spec of an operand of higher rank.
    """
    if not isinstance(sharding, NamedSharding):
        raise TypeError(f"it gives a {type(sharding).__name__} where a NamedSharding is needed")
    spec, rank = sharding.spec, len(tensor.shape)
    if len(spec) <= rank:
        return spec
    if any(entry is not None and entry != () for entry in spec[rank:]):
        raise ValueError(f"it gives {spec} to a tensor of rank {rank}, which has no dimension {rank}")
    shorter: PartitionSpec = spec.update(partitions=spec[:rank])
    return shorter
