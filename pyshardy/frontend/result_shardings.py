"""The shardings of a result's inputs and outputs as JAX objects. JAX is imported on first use."""

from __future__ import annotations

from typing import Any

from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes


class ResultShardings:
    """The shardings of inputs and outputs as trees over the arguments and results of a JAX function.

    Attributes:
        module: The module that has them.
    """

    module: Module

    @property
    def in_shardings(self) -> Any:
        """The shardings of the inputs as `jax.sharding.NamedSharding`s: `input_shardings()`."""
        return self.input_shardings()

    @property
    def out_shardings(self) -> Any:
        """The shardings of the outputs, like `in_shardings`; for a JAX function, a tree over its result."""
        return self.output_shardings()

    @property
    def in_specs(self) -> Any:
        """The shardings of the inputs as `jax.sharding.PartitionSpec`s, in a tree as `in_shardings`."""
        return self._tree(True, "refuse", as_specs=True)

    @property
    def out_specs(self) -> Any:
        """The shardings of the outputs as `jax.sharding.PartitionSpec`s, in a tree as `out_shardings`."""
        return self._tree(False, "refuse", as_specs=True)

    def input_shardings(self, devices: Any = None, sub_axes: str = "refuse") -> Any:
        """The shardings of the inputs as `jax.sharding.NamedSharding`s.

        For a JAX function they are a tree over its positional arguments, for `jax.jit(in_shardings=...)`; an unused
        argument has None. Otherwise they are a tuple.

        Args:
            devices: The devices, or "abstract" for a `jax.sharding.AbstractMesh`; by default those that a JAX function
                was lowered for, an abstract mesh if it was lowered for one, otherwise JAX's devices.
            sub_axes: What to do with sub-axes, which `PartitionSpec` cannot name: "refuse" them, "split" the axes of
                the mesh where a sharding needs it, or "gather" these shards.

        Raises:
            UsageError: JAX has fewer devices than the mesh.
            InvalidShardingError: A sub-axis is refused.
        """
        return self._tree(True, sub_axes, devices)

    def output_shardings(self, devices: Any = None, sub_axes: str = "refuse") -> Any:
        """The shardings of the outputs, like `input_shardings`; for a JAX function, a tree over its result."""
        return self._tree(False, sub_axes, devices)

    def _tree(self, is_input: bool, sub_axes: str, devices: Any = None, as_specs: bool = False) -> Any:
        from pyshardy.frontend.jax_trees import converter, input_tree, output_tree

        root, signature = self.module.root, self.module.origin
        convert = converter(signature, module_meshes(root), devices, sub_axes, as_specs)
        if is_input:
            return input_tree(signature, input_tensors(root), convert)
        return output_tree(signature, output_tensors(root), convert)
