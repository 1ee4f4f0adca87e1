"""The inputs and outputs of a module, with the names that its user knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh, device_count
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import SHARDING, arg_attrs, entry_function, result_attrs, return_op
from pyshardy.ir.locations import argument_name
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import result_name


@dataclass(frozen=True, slots=True)
class InterfaceTensor:
    """An input or output of a module.

    Attributes:
        name: The name in the user's program, if the module has it, such as `params['layers'][0]['w1']`.
        index: Its position among the arguments or results of the main function.
        shape: Sizes of its dimensions; -1 for a dynamic one.
        element: MLIR's text of the element type.
        sharding: Its sharding.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    element: str
    sharding: TensorSharding | None


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a program as global tensors, and their meshes.

    Attributes:
        inputs: The inputs with their shardings.
        outputs: The outputs with their shardings.
        meshes: The meshes by name, as a read-only mapping.
    """

    inputs: tuple[InterfaceTensor, ...]
    outputs: tuple[InterfaceTensor, ...]
    meshes: Mapping[str, Mesh]

    @classmethod
    def of(cls, root: Op) -> Interface:
        """The interface of a module, with all its meshes."""
        return cls(tuple(input_tensors(root)), tuple(output_tensors(root)), MappingProxyType(module_meshes(root)))

    def on(self, meshes: Mapping[str, Mesh]) -> Interface:
        """The interface with only some of the meshes."""
        return Interface(self.inputs, self.outputs, MappingProxyType(dict(meshes)))

    @property
    def device_count(self) -> int:
        """Number of devices of the program."""
        return device_count(self.meshes)

    def local_shape(self, tensor: InterfaceTensor) -> tuple[int, ...]:
        """The shape of the shard of an input or output."""
        if tensor.sharding is None:
            return tensor.shape
        return local_shape(tensor.sharding, mesh_of(tensor.sharding, self.meshes), tensor.shape)


def input_tensors(root: Op) -> list[InterfaceTensor]:
    """The tensors that the main function takes, without tokens."""
    main = entry_function(root)
    return [
        InterfaceTensor(argument_name(arg.location, arg.index), arg.index, arg.type.shape, arg.type.element,
             arg_attrs(main, arg.index).get(SHARDING))
        for arg in main.region.blocks[0].args
        if arg.type.shape is not None
    ]  # fmt: skip


def output_tensors(root: Op) -> list[InterfaceTensor]:
    """The tensors that the main function returns, without tokens."""
    main = entry_function(root)
    returned = return_op(main).operands
    tensors = []
    for index, value in enumerate(returned):
        if value.type.shape is not None:
            attrs = result_attrs(main, index)
            name = result_name(attrs.get("jax.result_info"), index, len(returned))
            tensors.append(InterfaceTensor(name, index, value.type.shape, value.type.element, attrs.get(SHARDING)))
    return tensors
