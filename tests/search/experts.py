"""Shardings as people write them, by the rules of thumb of their trade; nothing here comes from our search.

Each is a table from names of inputs to specs, for the programs of `models.py`. State is named like parameters: "mean"
and "square" get what parameters get, unless a rule says otherwise; a step gives back what it takes in, sharded alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from random import Random
from typing import Any, NamedTuple

Spec = tuple[Any, ...]

BATCHED = {
    "dense": {"data[0]": 0, "data[1]": 0},
    "transformer": {"data[0]": 0},
    "experts": {"data[0]": 0, "data[1]": 0},
    "routed": {"data[0]": 0, "data[1]": 0},
    "decode": {"x": 0, "cache['keys']": 0, "cache['values']": 0},
    "prefill": {"x": 0, "cache['keys']": 0, "cache['values']": 0},
    "scanned": {"data[0]": 0, "data[1]": 0},
    "recurrent": {"data[0]": 1, "data[1]": 0},
    "vision": {"data[0]": 0, "data[1]": 0},
    "convolutions": {"data[0]": 0, "data[1]": 0},
    "unet": {"data[0]": 0, "data[1]": 0, "data[2]": 0},
    "graph": {"data[1]": 0, "data[2]": 0},
}
"""The inputs of each program that have the batch (or the edges of a graph), with the dimension."""

_ATTENTION = {"q": 1, "k": 1, "v": 1, "o": 0}
_LAYER = {**_ATTENTION, "up": 1, "down": 0}

TENSOR = {
    "dense": {"up": 1, "down": 0},
    "transformer": {**_LAYER, "embed": 0, "head": 1},
    "experts": {"up": 2, "down": 1},
    "routed": {"up": 2, "down": 1},
    "decode": {**_LAYER, "keys": 2, "values": 2},
    "prefill": {**_LAYER, "keys": 2, "values": 2},
    "scanned": {"up": 2, "down": 1},
    "recurrent": {"input": 2, "state": 2, "head": 0},
    "vision": {**_LAYER, "head": 1},
    "convolutions": {"head": 1},
    "unet": {**_ATTENTION, "first": 3, "times": 1, "lower": 2, "last": 2},
    "graph": {"edge": 1, "node": 0},
}
"""Megatron: the dimension of a weight inside its layer (heads, hidden, vocabulary, channels), by its last key."""

EXPERTS = {"experts": {"up": 0, "down": 0, "gate": 1}, "routed": {"up": 0, "down": 0}}
"""Expert parallelism: the dimension of experts."""

SEQUENCE = {
    "transformer": {"data[0]": 1},
    "routed": {"data[0]": 1, "data[1]": 1},
    "decode": {"keys": 1, "values": 1},
    "prefill": {"x": 1},
    "vision": {"data[0]": 1},
    "convolutions": {"data[0]": 1},
    "unet": {"data[0]": 1, "data[2]": 1},
}
"""Sequence parallelism: the dimension of the sequence; of images the height."""


_STATE = ("mean", "square")


class Expert(NamedTuple):
    """A way to shard a program.

    Attributes:
        name: What people call it.
        specs: Per input its mesh axes by dimension.
    """

    name: str
    specs: dict[str, Spec]


class _Writer:
    def __init__(self, program: str, shapes: dict[str, tuple[int, ...]], mesh: dict[str, int]) -> None:
        self.program, self.shapes, self.mesh = program, shapes, mesh

    def put(self, specs: dict[str, Spec], name: str, dim: int, axes: Sequence[str]) -> dict[str, Spec]:
        """Add axes to a dimension where they divide it and are not in use."""
        size, spec = self.shapes[name], list(specs[name])
        used = {axis for entry in spec for axis in entry}
        for axis in axes:
            entry = (*spec[dim], axis)
            if axis not in used and size[dim] % prod(self.mesh[one] for one in entry) == 0:
                spec[dim] = entry
        return {**specs, name: tuple(spec)}

    def empty(self) -> dict[str, Spec]:
        return {name: ((),) * len(size) for name, size in self.shapes.items()}

    def data(self, specs: dict[str, Spec], axes: Sequence[str]) -> dict[str, Spec]:
        for name, dim in BATCHED[self.program].items():
            specs = self.put(specs, name, dim, axes)
        return specs

    def zero(self, specs: dict[str, Spec], axes: Sequence[str], heads: Sequence[str]) -> dict[str, Spec]:
        """Store every array in parts, along its largest dimension that is whole."""
        for name, size in self.shapes.items():
            if name.split("[")[0] in heads and size:
                whole = [dim for dim in range(len(size)) if not specs[name][dim]] or list(range(len(size)))
                specs = self.put(specs, name, max(whole, key=lambda dim: (size[dim], -dim)), axes)
        return specs

    def stored(self, name: str, base: dict[str, Spec], axes: Sequence[str]) -> Iterator[Expert]:
        """A way to compute, with nothing, the optimizer's state, or all state stored in parts along some axes."""
        yield Expert(name, base)
        if axes:
            yield Expert(f"{name} + ZeRO-1", self.zero(base, axes, _STATE))
            yield Expert(f"{name} + ZeRO-3", self.zero(base, axes, ("params", *_STATE)))


def experts_of(program: str, shapes: dict[str, tuple[int, ...]], mesh: dict[str, int]) -> Iterator[Expert]:
    """The ways in which people would shard a program on a mesh, each once.

    As a rule the last axis is that of tensors, experts or sequences, the others are of data.
    """
    seen = set()
    for expert in _all_experts(_Writer(program, shapes, mesh), TENSOR[program]):
        key = tuple(expert.specs.items())
        if key not in seen:
            seen.add(key)
            yield expert


def random_plans(
    program: str, shapes: dict[str, tuple[int, ...]], mesh: dict[str, int], random: Random
) -> Iterator[Expert]:
    """Random plans, each once: every axis gets a random task, and random arrays are stored in parts along axes."""
    write, seen = _Writer(program, shapes, mesh), set()
    tables = {"tensor": TENSOR, "experts": EXPERTS, "sequence": SEQUENCE}
    tasks = ["none", "data", *(name for name, table in tables.items() if program in table)]
    for _ in range(10_000):
        specs, said = write.empty(), []
        for axis in random.sample(list(mesh), len(mesh)):
            task = random.choice(tasks)
            said.append(f"{axis}: {task}")
            if task == "data":
                specs = write.data(specs, [axis])
            elif task != "none":
                specs = _on_keys(write, tables[task][program], [axis], specs)
        for head in ("params", *_STATE):
            axes = [axis for axis in mesh if random.random() < 0.5]
            specs = write.zero(specs, axes, [head])
            said.append(f"{head} stored along {', '.join(axes) or 'none'}")
        key = tuple(specs.items())
        if key not in seen:
            seen.add(key)
            yield Expert("; ".join(said), specs)


def _all_experts(write: _Writer, tensor: dict[str, int]) -> Iterator[Expert]:
    axes = list(write.mesh)
    *others, last = axes
    all_data = write.data(write.empty(), axes)
    yield from write.stored("data parallel", all_data, axes)
    if others:
        yield Expert("data parallel + ZeRO-3 on the last axis", write.zero(all_data, [last], ("params", *_STATE)))
    yield Expert("Megatron, all axes", _on_keys(write, tensor, axes))
    for axis in axes if others else ():
        rest = [one for one in axes if one != axis]
        name = "Megatron" if axis == last else f"Megatron on {axis}"
        yield from write.stored(f"{name} + data", write.data(_on_keys(write, tensor, [axis]), rest), rest)
    if write.program in EXPERTS:
        yield from _of_experts(write, EXPERTS[write.program], tensor)
    if write.program in SEQUENCE:
        yield from _of_sequences(write, SEQUENCE[write.program], tensor)


def _of_experts(write: _Writer, table: dict[str, int], tensor: dict[str, int]) -> Iterator[Expert]:
    axes = list(write.mesh)
    *others, last = axes
    base = _on_keys(write, table, [last])
    yield from write.stored("expert parallel + data" if others else "expert parallel", write.data(base, others), others)
    yield from write.stored("expert parallel, data on all axes", write.data(base, axes), others)
    if others:
        *rest, middle = others
        both = _on_keys(write, tensor, [last], _on_keys(write, table, [middle]))
        yield from write.stored("expert parallel + Megatron + data", write.data(both, rest or [middle]), rest)


def _of_sequences(write: _Writer, table: dict[str, int], tensor: dict[str, int]) -> Iterator[Expert]:
    axes = list(write.mesh)
    *others, last = axes
    base = write.data(_on_keys(write, table, [last]), others)
    name = "sequence parallel + data" if others else "sequence parallel"
    yield from write.stored(name, base, axes)
    yield from write.stored(f"Megatron, {name}", _on_keys(write, tensor, [last], base), others)
    if others:
        *rest, middle = others
        both = _on_keys(write, tensor, [last], _on_keys(write, table, [middle]))
        yield from write.stored("sequence parallel + Megatron + data", write.data(both, rest), rest)


def _on_keys(
    write: _Writer, table: dict[str, int], axes: Iterable[str], specs: dict[str, Spec] | None = None
) -> dict[str, Spec]:
    """Axes on the dimensions that a table names by the last keys of inputs."""
    specs = write.empty() if specs is None else specs
    for name in write.shapes:
        key = name.split("'")[-2] if "'" in name else name
        if key in table:
            specs = write.put(specs, name, table[key], list(axes))
    return specs
