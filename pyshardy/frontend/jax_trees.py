"""The shardings of inputs and outputs as trees over the arguments and results of a JAX function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError, UnsupportedVersionError
from pyshardy.frontend.from_jax import JaxSignature
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.frontend.jax_lower import is_static
from pyshardy.frontend.jax_shardings import ABSTRACT, Devices, NamedShardings, SubAxes

Tree = Any
Convert = Callable[[InterfaceTensor, int | None], Any]


def input_shardings(
    signature: Any,
    tensors: Sequence[InterfaceTensor],
    meshes: Mapping[str, Mesh],
    devices: Devices = None,
    sub_axes: SubAxes | str = SubAxes.REFUSE,
) -> Tree:
    """The shardings of the inputs as a tree over the positional arguments, fit for `jax.jit(in_shardings=...)`.

    Args:
        signature: The signature of the function; for anything else the tree is a tuple.
        tensors: The inputs of the module.
        meshes: The meshes by name.
        devices: The devices that the meshes are laid over, "abstract" for none; by default those that the function
            was lowered for, or none if it was lowered for none, or those that JAX has.
        sub_axes: What to do about sub-axes.

    Raises:
        UsageError: Too few devices.
        UnsupportedVersionError: This JAX does not tell which arguments it dropped.
        InvalidShardingError: A sharding that `PartitionSpec` cannot express.
    """
    return _input_tree(
        signature, tensors, _advising(NamedShardings(meshes, _devices(signature, devices), sub_axes).of, sub_axes)
    )


def output_shardings(
    signature: Any,
    tensors: Sequence[InterfaceTensor],
    meshes: Mapping[str, Mesh],
    devices: Devices = None,
    sub_axes: SubAxes | str = SubAxes.REFUSE,
) -> Tree:
    """The shardings of the outputs as a tree over the result; see `input_shardings`."""
    return _output_tree(
        signature, tensors, _advising(NamedShardings(meshes, _devices(signature, devices), sub_axes).of, sub_axes)
    )


def input_specs(
    signature: Any,
    tensors: Sequence[InterfaceTensor],
    meshes: Mapping[str, Mesh],
    sub_axes: SubAxes | str = SubAxes.REFUSE,
) -> Tree:
    """The `PartitionSpec`s of the inputs; see `input_shardings`."""
    return _input_tree(signature, tensors, _advising(NamedShardings(meshes, ABSTRACT, sub_axes).spec, sub_axes))


def output_specs(
    signature: Any,
    tensors: Sequence[InterfaceTensor],
    meshes: Mapping[str, Mesh],
    sub_axes: SubAxes | str = SubAxes.REFUSE,
) -> Tree:
    """The `PartitionSpec`s of the outputs; see `input_shardings`."""
    return _output_tree(signature, tensors, _advising(NamedShardings(meshes, ABSTRACT, sub_axes).spec, sub_axes))


def _advising(convert: Convert, sub_axes: SubAxes | str) -> Convert:
    """The conversion, whose error says what to try about a sub-axis that is refused."""

    def advising(tensor: InterfaceTensor, rank: int | None) -> Any:
        try:
            return convert(tensor, rank)
        except InvalidShardingError as error:
            if SubAxes(sub_axes) is not SubAxes.REFUSE or "sub-axis" not in str(error.got):
                raise
            hint = 'input_shardings or output_shardings with sub_axes="split" or "gather"'
            raise InvalidShardingError(error.doing, got=error.got, needed=error.needed, hint=hint) from error

    return advising


def _devices(signature: Any, devices: Devices) -> Devices:
    if devices is not None or not isinstance(signature, JaxSignature):
        return devices
    return signature.devices if signature.mesh is None else signature.mesh


def _input_tree(signature: Any, tensors: Sequence[InterfaceTensor], convert: Convert) -> Tree:
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


def _output_tree(signature: Any, tensors: Sequence[InterfaceTensor], convert: Convert) -> Tree:
    if not isinstance(signature, JaxSignature):
        return tuple(convert(tensor, None) for tensor in tensors)
    leaves = [convert(tensor, rank) for tensor, rank in zip(tensors, signature.out_ranks)]
    tree = _without_static(jax.tree.unflatten(signature.out_tree, leaves))
    return tree if signature.nnx is None else signature.nnx.result(tree)


def _without_static(tree: Tree) -> Tree:
    """None in the place of what is no array."""
    leaves = jax.tree.leaves(tree, is_leaf=_is_leaf)
    if not any(map(is_static, leaves)):
        return tree
    return jax.tree.map(lambda leaf: None if is_static(leaf) else leaf, tree, is_leaf=_is_leaf)


def _is_leaf(node: Any) -> bool:
    return is_static(node) or isinstance(node, PartitionSpec)
