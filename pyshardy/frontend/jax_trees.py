"""The shardings of inputs and outputs as trees over the arguments and results of a JAX function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from pyshardy.core.jax_values import Tree
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError, UnsupportedVersionError
from pyshardy.frontend.from_jax import JaxSignature
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.frontend.jax_leaves import is_static
from pyshardy.frontend.jax_shardings import ABSTRACT, Devices, NamedShardings, SubAxes

Convert = Callable[[InterfaceTensor, int | None], Any]


def converter(
    signature: Any,
    meshes: Mapping[str, Mesh],
    devices: Devices = None,
    sub_axes: SubAxes | str = SubAxes.REFUSE,
    as_specs: bool = False,
) -> Convert:
    """What makes the `NamedSharding` of an input or output, or its `PartitionSpec` alone, for the trees below.

    It raises `InvalidShardingError` for a sharding that `PartitionSpec` cannot express.

    Args:
        signature: The signature of the function that the module was lowered from, if it was one.
        meshes: The meshes of the module by name.
        devices: The devices of the meshes, or "abstract"; by default those that the function was lowered for, an
            abstract mesh if it was lowered for one, otherwise JAX's devices.
        sub_axes: What to do with sub-axes.
        as_specs: Whether to make specs, which need no devices.

    Raises:
        UsageError: There are too few devices.
    """
    shardings = NamedShardings(meshes, ABSTRACT if as_specs else _devices(signature, devices), sub_axes)
    convert = shardings.spec if as_specs else shardings.of

    def advising(tensor: InterfaceTensor, rank: int | None) -> Any:
        try:
            return convert(tensor, rank)
        except InvalidShardingError as error:
            axes = () if tensor.sharding is None else tensor.sharding.all_axes()
            if SubAxes(sub_axes) is not SubAxes.REFUSE or all(axis.is_full for axis in axes):
                raise
            hint = 'input_shardings or output_shardings with sub_axes="split" or "gather"'
            raise InvalidShardingError(error.doing, got=error.got, needed=error.needed, hint=hint) from error

    return advising


def _devices(signature: Any, devices: Devices) -> Devices:
    if devices is not None or not isinstance(signature, JaxSignature):
        return devices
    return signature.devices if signature.mesh is None else signature.mesh


def input_tree(signature: Any, tensors: Sequence[InterfaceTensor], convert: Convert) -> Tree:
    """The inputs, converted, as a tree over the positional arguments, fit for `jax.jit(in_shardings=...)`.

    Args:
        signature: The signature of the function; for anything else the tree is a tuple.
        tensors: The inputs of the module.
        convert: The result of `converter`.

    Raises:
        UnsupportedVersionError: This JAX does not tell which arguments it dropped.
    """
    if not isinstance(signature, JaxSignature):
        return tuple(convert(tensor, None) for tensor in tensors)
    if len(signature.kept) != len(tensors):
        raise UnsupportedVersionError(
            "matching the inputs of the module with the arguments of the function",
            got=f"{len(tensors)} inputs for {len(signature.kept)} arguments",
            needed="a JAX that tells which unused arguments it dropped",
            hint="lower with jax.jit(..., keep_unused=True)",
        )
    leaves: list[Any] = [None] * len(signature.in_ranks)
    for leaf, tensor in zip(signature.kept, tensors):
        leaves[leaf] = convert(tensor, signature.in_ranks[leaf])
    args, _ = _without_static(jax.tree.unflatten(signature.in_tree, leaves))
    return args if signature.nnx is None else signature.nnx.input_states(args)


def output_tree(signature: Any, tensors: Sequence[InterfaceTensor], convert: Convert) -> Tree:
    """The outputs, converted, as a tree over the result; see `input_tree`."""
    if not isinstance(signature, JaxSignature):
        return tuple(convert(tensor, None) for tensor in tensors)
    leaves = [convert(tensor, rank) for tensor, rank in zip(tensors, signature.out_ranks)]
    tree = _without_static(jax.tree.unflatten(signature.out_tree, leaves))
    return tree if signature.nnx is None else signature.nnx.result(tree)


def _without_static(tree: Tree) -> Tree:
    """None for every leaf that is not an array."""
    leaves = jax.tree.leaves(tree, is_leaf=_is_leaf)
    if not any(map(is_static, leaves)):
        return tree
    return jax.tree.map(lambda leaf: None if is_static(leaf) else leaf, tree, is_leaf=_is_leaf)


def _is_leaf(node: Any) -> bool:
    return is_static(node) or isinstance(node, PartitionSpec)
