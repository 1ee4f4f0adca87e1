"""What a program of the corpus is: a function, its inputs and its shardings, over a named mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Tree = Any  # a nest of dicts, lists and tuples


@dataclass(frozen=True)
class Input:
    """One array of a program's arguments: its shape and type, how to draw it, and where it is if that is fixed."""

    shape: tuple[int, ...]
    dtype: Any
    draw: Callable[[np.random.Generator], Any]
    sharding: NamedSharding | None = None

    def on(self, mesh: Mesh, *spec: Any) -> Input:
        """This input as an array that is already on the devices of `mesh`."""
        return replace(self, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    def abstract(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=self.sharding)

    def concrete(self, random: np.random.Generator) -> Any:
        value = self.draw(random)
        if not isinstance(value, jax.Array):
            value = np.asarray(value, self.dtype)
        return value if self.sharding is None else jax.device_put(value, self.sharding)


def normal(*shape: int, scale: float = 1.0, dtype: Any = np.float32) -> Input:
    """Normally distributed numbers around zero."""
    return Input(shape, dtype, lambda random: random.normal(0, scale, shape))


def weight(*shape: int) -> Input:
    """Normally distributed numbers, scaled so that a product over all dimensions but the last keeps magnitudes."""
    return normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Input:
    return Input(shape, np.float32, lambda random: random.uniform(low, high, shape))


def constant(value: float, *shape: int, dtype: Any = np.float32) -> Input:
    return Input(shape, dtype, lambda _: np.full(shape, value))


def integers(*shape: int, high: int, low: int = 0, dtype: Any = np.int32) -> Input:
    """Whole numbers from `low` up to, not including, `high`."""
    return Input(shape, dtype, lambda random: random.integers(low, high, shape))


def key(impl: str = "threefry2x32") -> Input:
    """A typed PRNG key."""
    dtype = jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype
    return Input((), dtype, lambda random: jax.random.key(int(random.integers(2**31)), impl=impl))


def named(mesh: Mesh, specs: Tree) -> Tree:
    """The partition specs of a tree as shardings on `mesh`; None, "left to propagation", stays None."""

    def convert(spec: PartitionSpec | None) -> NamedSharding | None:
        return None if spec is None else NamedSharding(mesh, spec)

    return jax.tree.map(convert, specs, is_leaf=lambda leaf: leaf is None or isinstance(leaf, PartitionSpec))


class Built(NamedTuple):
    """What `jax.jit` needs: the function, its arguments' shapes, and a prefix tree of shardings each way."""

    fn: Callable[..., Any]
    abstract_args: tuple[Tree, ...]
    in_shardings: Tree
    out_shardings: Tree = None


@dataclass(frozen=True)
class Program:
    """A JAX program to lower, propagate through, partition and run.

    Its `source` takes a mesh and gives the function, the tree of `Input`s, the arguments' partition specs and, if need
    be, the results'. It takes any mesh with these axes: all of size one gives the program to compare results with.
    """

    name: str
    source: Callable[[Mesh], tuple[Any, ...]]
    mesh_axes: tuple[tuple[str, int], ...]
    device_order: tuple[int, ...] | None = None
    donate: tuple[int, ...] = ()
    mesh_dependent: bool = False
    """Whether the results, not only their sharding, depend on the axes' sizes, as with a collective permute."""
    in_process: bool = False
    """Whether the module holds addresses of the process that lowered it: its text can be read elsewhere, not run, and
    differs from process to process."""
    skip: Callable[[], str | None] = lambda: None
    """Why the program cannot be lowered here, None if it can."""

    def mesh(self) -> Mesh:
        """The program's mesh over all eight virtual devices."""
        names, sizes = zip(*self.mesh_axes)
        order = range(int(np.prod(sizes))) if self.device_order is None else self.device_order
        devices = jax.devices()
        return Mesh(np.array([devices[index] for index in order]).reshape(sizes), names)

    def one_device_mesh(self) -> Mesh:
        """The same axes, each of size one."""
        return Mesh(np.array(jax.devices()[0]).reshape([1] * len(self.mesh_axes)), [name for name, _ in self.mesh_axes])

    def build(self, mesh: Mesh) -> Built:
        fn, inputs, in_specs, *out_specs = self.source(mesh)
        args = jax.tree.map(lambda leaf: leaf.abstract(), inputs)
        return Built(fn, args, named(mesh, in_specs), named(mesh, out_specs[0]) if out_specs else None)

    def jitted(self, mesh: Mesh | None = None) -> Any:
        """The function under `jax.jit` with its shardings: what a user would call."""
        fn, _, in_shardings, out_shardings = self.build(mesh or self.mesh())
        return jax.jit(fn, in_shardings=in_shardings, out_shardings=out_shardings, donate_argnums=self.donate)

    def lower(self, mesh: Mesh | None = None, platform: str | None = None) -> jax.stages.Lowered:
        """The program lowered for the CPU, or for a `platform` such as "tpu" that need not be at hand.

        `callbacks` and `exported_call` can be lowered for the CPU alone.
        """
        mesh = mesh or self.mesh()
        traced = self.jitted(mesh).trace(*self.build(mesh).abstract_args)
        return traced.lower(lowering_platforms=(platform,) if platform else None)

    def concrete_args(self, seed: int = 0, mesh: Mesh | None = None) -> tuple[Tree, ...]:
        """Arguments drawn from `seed`, the same on every mesh: results agree within 1e-5, relative or absolute."""
        leaves, structure = jax.tree.flatten(self.source(mesh or self.mesh())[1])
        values = [leaf.concrete(np.random.default_rng((seed, index))) for index, leaf in enumerate(leaves)]
        return jax.tree.unflatten(structure, values)


def program(
    *,
    device_order: tuple[int, ...] | None = None,
    donate: tuple[int, ...] = (),
    mesh_dependent: bool = False,
    in_process: bool = False,
    skip: Callable[[], str | None] = lambda: None,
    **mesh_axes: int,
) -> Callable[[Callable[[Mesh], tuple[Any, ...]]], Program]:
    """Turn the decorated function into a `Program` of its name, over a mesh with these axes."""
    return lambda source: Program(
        source.__name__,
        source,
        tuple(mesh_axes.items()),
        device_order,
        donate,
        mesh_dependent,
        in_process,
        skip,
    )
