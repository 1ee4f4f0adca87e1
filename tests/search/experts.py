"""Shardings as people write them, by the rules of thumb of their trade; nothing here comes from our search.

Each is a table from names of inputs to specs, for the programs of `models.py`. State is named like parameters: "mean"
and "square" get what parameters get, unless a rule says otherwise; a step gives back what it takes in, sharded alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

Spec = tuple[Any, ...]

BATCHED = {
    "dense": {"data[0]": 0, "data[1]": 0},
    "transformer": {"data[0]": 0},
    "experts": {"data[0]": 0, "data[1]": 0},
    "decode": {"x": 0, "cache['keys']": 0, "cache['values']": 0},
    "scanned": {"data[0]": 0, "data[1]": 0},
    "convolutions": {"data[0]": 0, "data[1]": 0},
    "graph": {"data[1]": 0, "data[2]": 0},
}
"""By program the inputs that have the batch (or edges of a graph), and along which dimension."""

TENSOR = {
    "dense": {"up": 1, "down": 0},
    "transformer": {"q": 1, "k": 1, "v": 1, "o": 0, "up": 1, "down": 0, "embed": 0, "head": 1},
    "experts": {"up": 2, "down": 1},
    "decode": {"q": 1, "k": 1, "v": 1, "o": 0, "up": 1, "down": 0, "keys": 2, "values": 2},
    "scanned": {"up": 2, "down": 1},
    "convolutions": {"head": 1},
    "graph": {"edge": 1, "node": 0},
}
"""Megatron: by the last key of a weight, the dimension inside of its layer: heads, hidden, vocabulary."""

EXPERTS = {"experts": {"up": 0, "down": 0, "gate": 1}}
"""Expert parallelism: the dimension of experts."""

SEQUENCE = {"transformer": {"data[0]": 1}, "decode": {"keys": 1, "values": 1}}
"""Sequence parallelism: the dimension of the sequence."""


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

    def by_key(self, specs: dict[str, Spec], table: dict[str, int], axis: str) -> dict[str, Spec]:
        for name in self.shapes:
            key = name.split("'")[-2] if "'" in name else name
            if key in table:
                specs = self.put(specs, name, table[key], [axis])
        return specs

    def zero(self, specs: dict[str, Spec], axes: Sequence[str], heads: Sequence[str]) -> dict[str, Spec]:
        """Store every array in parts, along its largest dimension that is whole."""
        for name, size in self.shapes.items():
            if name.split("[")[0] in heads and size:
                whole = [dim for dim in range(len(size)) if not specs[name][dim]] or list(range(len(size)))
                specs = self.put(specs, name, max(whole, key=lambda dim: (size[dim], -dim)), axes)
        return specs


def experts_of(program: str, shapes: dict[str, tuple[int, ...]], mesh: dict[str, int]) -> Iterator[Expert]:
    """The ways in which people would shard a program on a mesh; the last axis is that of tensors, the others of data."""
    write, axes = _Writer(program, shapes, mesh), list(mesh)
    all_data = write.data(write.empty(), axes)
    yield Expert("data parallel", all_data)
    yield Expert("ZeRO-1", write.zero(all_data, axes, ("mean", "square")))
    yield Expert("ZeRO-3", write.zero(all_data, axes, ("params", "mean", "square")))
    yield Expert("Megatron, all axes", _nested(write, TENSOR[program], axes))
    if len(axes) == 1:
        for title, table in (("expert", EXPERTS), ("sequence", SEQUENCE)):
            if program in table:
                yield Expert(f"{title} parallel", write.by_key(write.empty(), table[program], axes[0]))
        return
    *others, last = axes
    mixed = write.data(write.by_key(write.empty(), TENSOR[program], last), others)
    yield Expert("Megatron + data", mixed)
    yield Expert("Megatron + ZeRO-1", write.zero(mixed, others, ("mean", "square")))
    yield Expert("Megatron + ZeRO-3", write.zero(mixed, others, ("params", "mean", "square")))
    for title, table in (("expert", EXPERTS), ("sequence", SEQUENCE)):
        if program in table:
            base = write.data(write.by_key(write.empty(), table[program], last), others)
            yield Expert(f"{title} parallel + data", base)
            yield Expert(f"{title} parallel + ZeRO-1", write.zero(base, others, ("mean", "square")))


def _nested(write: _Writer, table: dict[str, int], axes: Sequence[str]) -> dict[str, Spec]:
    specs = write.empty()
    for name in write.shapes:
        key = name.split("'")[-2] if "'" in name else name
        if key in table:
            specs = write.put(specs, name, table[key], axes)
    return specs
