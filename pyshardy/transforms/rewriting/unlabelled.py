"""The rewrites of `canonicalize` that have no label.

Source: docs/semantics/reshards-and-collectives.md#rewrites-without-a-label
Source: docs/semantics/reshards-and-collectives.md#the-same-data-under-another-shape
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import module_meshes
from pyshardy.reshard.strides import equivalent_across_reshape
from pyshardy.transforms.rewriting.greedy import Pattern, Rewriter
from pyshardy.transforms.rewriting.patterns import reshard_of_reshard

_INLINED = ("sdy.", "stablehlo.", "chlo.")
"""The dialects of ops that may be in or around a manual computation to inline; the bindings lack `func`."""
_SHAPED = ("stablehlo.reshape", "stablehlo.transpose")


def drop_unused_inputs(op: Op, rewriter: Rewriter) -> bool:
    """Remove the operands of a manual computation that its body does not use."""
    args = op.region.block.args
    kept = [arg.index for arg in args if arg.flat_uses]
    if len(kept) == len(args):
        return False
    shardings = op.attrs["in_shardings"]
    attrs = {**op.attrs, "in_shardings": tuple(shardings[index] for index in kept)}
    types = [result.type for result in op.results]
    new = Op(op.name, [op.operands[index] for index in kept], types, attrs, region_count=1, location=op.place)
    rewriter.insert(new, op)
    block = new.region.add_block()
    for index in kept:
        args[index].replace_uses(block.add_arg(args[index].type, args[index].location))
    _moved(op.region.block, block.append)
    _replace(op, new.results, rewriter)
    return True


def erase_empty(op: Op, rewriter: Rewriter) -> bool:
    """Remove a manual computation without inputs, results and ops."""
    if op.operands or op.results or op.region.block.first is not op.region.block.terminator:
        return False
    rewriter.erase(op)
    return True


def inline_redundant(op: Op, rewriter: Rewriter) -> bool:
    """Inline the body of a manual computation whose axes have one device."""
    parent = op.parent_op
    inside = ops_in(op)[1:]
    if parent is None or not all(one.name.startswith(_INLINED) for one in (parent, *inside)) or not _is_single(op):
        return False
    block = op.region.block
    for arg, operand in zip(block.args, op.operands):
        arg.replace_uses(operand)
    given = block.terminator.operands
    block.terminator.erase()
    for inner in _moved(block, lambda inner: inner.insert_before(op)):
        rewriter.touch(inner)
    _replace(op, given, rewriter)
    return True


def _is_single(op: Op) -> bool:
    """Whether the manual axes have one device."""
    shardings = (*op.attrs["in_shardings"], *op.attrs["out_shardings"])
    if not shardings or not op.attrs["manual_axes"]:
        return True
    mesh = mesh_of(shardings[0], _meshes_around(op))
    return prod(mesh.axis_size(name) for name in op.attrs["manual_axes"]) == 1


def _moved(block: Block, put: Callable[[Op], Op]) -> list[Op]:
    """Move the content of a block to another place, in order."""
    moved = list(block)
    for inner in moved:
        put(inner.detach())
    return moved


def _replace(op: Op, values: Sequence[Value], rewriter: Rewriter) -> None:
    for result, value in zip(op.results, values):
        for user in result.users():
            rewriter.touch(user)
        result.replace_uses(value)
    rewriter.erase(op)


def take_known_branch(op: Op, rewriter: Rewriter) -> bool:
    """Replace a conditional by the branch that a constant chooses."""
    from pyshardy.ir.constants import constant_integer  # few programs need it

    made = op.operands[0].defining_op
    if made is None or made.name != "stablehlo.constant":
        return False
    number = constant_integer(op.operands[0])
    if number is None or not 0 <= number < len(op.regions):
        return False
    block = op.regions[number].block
    given = block.terminator.operands
    block.terminator.erase()
    for inner in _moved(block, lambda inner: inner.insert_before(op)):
        rewriter.touch(inner)
    _replace(op, given, rewriter)
    return True


def reuse_reshard(op: Op, rewriter: Rewriter) -> bool:
    """Reuse an earlier reshard of the same data to the same layout, even in another shape."""
    chain, root, target = _up(op)
    if target is None or not root.type.is_ranked_tensor or not op.result.type.is_ranked_tensor:
        return False
    found = _equivalent(op, root, target)
    if found is None:
        return False
    value = found.result
    if value.type is not root.type:
        value = Op("stablehlo.reshape", [value], [root.type], location=found.place).insert_after(found).result
    for step in reversed(chain):
        definition = value.defining_op
        assert definition is not None
        copy = step.clone({step.operands[0]: value})
        value = copy.insert_after(definition).result
        rewriter.touch(copy)
    rewriter.replace(op, value)
    return True


def _up(op: Op) -> tuple[list[Op], Value, TensorSharding | None]:
    """The reshapes and transposes before a reshard, their source, and the target sharding in terms of the source."""
    value, target = op.operands[0], op.attrs["sharding"]
    chain: list[Op] = []
    is_open = True
    while (made := value.defining_op) is not None and made.name in _SHAPED:
        if made.name == "stablehlo.transpose" and is_open:
            target = _transposed_back(target, tuple(made.attrs["permutation"]))
        elif made.name == "stablehlo.reshape" and made.operands[0].type.rank != value.type.rank:
            is_open = False
        chain.append(made)
        value = made.operands[0]
    return chain, value, target


def _transposed_back(sharding: TensorSharding, order: Sequence[int]) -> TensorSharding:
    dims: list[DimSharding] = list(sharding.dims)
    for index, source in enumerate(order):
        dims[source] = sharding.dims[index]
    return TensorSharding(sharding.mesh, dims, sharding.replicated, sharding.unreduced)


def _equivalent(op: Op, root: Value, target: TensorSharding) -> Op | None:
    """A reshard before `op` of the data of `root` to the layout `target`."""
    meshes, type = _meshes_around(op), op.result.type
    stack, seen = [root], {root}
    while stack:
        for user in stack.pop().users():
            if user.name == "stablehlo.reshape" and user.result not in seen:
                seen.add(user.result)
                stack.append(user.result)
            elif user.name == "sdy.reshard" and user is not op and user.block is op.block and user.is_before(op):
                other: TensorSharding = user.attrs["sharding"]
                shapes = user.result.type.shape or (), type.shape or ()
                if other is target and shapes[0] == shapes[1]:
                    return user
                mesh = mesh_of(target, meshes)
                if equivalent_across_reshape(other, shapes[0], target, shapes[1], mesh, is_exact=True):
                    return user
    return None


def _meshes_around(op: Op) -> Meshes:
    *_, root = op.ancestors()
    return module_meshes(root)


UNLABELLED: Mapping[str, Sequence[Pattern]] = {
    "sdy.manual_computation": (drop_unused_inputs, erase_empty, inline_redundant),
    "sdy.reshard": (reshard_of_reshard, reuse_reshard),
    "stablehlo.case": (take_known_branch,),
}
"""The rewrites without a label, applied if no label is given."""
