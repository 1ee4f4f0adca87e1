"""Random programs of ops that move data between shards: slices, pads, concatenations, reversals and reshapes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

_MESHES = {
    '<["x"=8]>': "x",
    '<["x"=2, "y"=4]>': "xy",
    '<["x"=4, "y"=2], device_ids=[3, 1, 2, 0, 7, 6, 5, 4]>': "xy",
    '<["x"=2, "y"=2, "z"=2]>': "xyz",
}
_NUMBERS = {"f32": "2.5", "bf16": "2.0", "i32": "7", "i8": "7", "i1": "true", "complex<f32>": "(1.0, 2.0)"}
"""A number of every element type."""
_SIZES = (1, 3, 5, 8, 12, 16, 17, 24, 30, 40)
_LARGEST = 20_000
Dims = list[list[str]]


def program(seed: int) -> str:
    """A program for eight devices."""
    return _Writer(Random(seed)).text()


class _Writer:
    """Writes one program, an op after the other.

    Args:
        random: Draws everything.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.mesh = random.choice(list(_MESHES))
        self.element = random.choice(list(_NUMBERS))
        self.args: list[tuple[list[int], Dims]] = []
        self.lines = [f"%filler = stablehlo.constant dense<{_NUMBERS[self.element]}> : tensor<{self.element}>"]
        rank = random.choice([1, 2, 2, 3])
        self.shape = [random.randint(1, 90)] if rank == 1 else [random.choice(_SIZES) for _ in range(rank)]
        self.dims = self._dims(rank, 0.8)
        self.value = self._arg(self.shape, self.dims)

    def text(self) -> str:
        random = self.random
        ops: list[Callable[[], None]] = [self._slice, self._pad, self._join, self._join, self._reverse, self._reshape]
        for _ in range(random.randint(1, 3)):
            if random.random() < 0.25:
                self.dims = self._dims(len(self.shape), 0.8)
            random.choice(ops)()
        if random.random() < 0.3:
            self._slice()
        args = ", ".join(
            f"%a{number}: {self._type(shape)} {{sdy.sharding = #sdy.sharding<@mesh, {_dims_text(dims)}>}}"
            for number, (shape, dims) in enumerate(self.args)
        )
        result = self._type(self.shape)
        body = "\n  ".join([*self.lines, f"return {self.value} : {result}"])
        return f"sdy.mesh @mesh = {self.mesh}\nfunc.func @main({args}) -> {result} {{\n  {body}\n}}\n"

    def _type(self, shape: list[int]) -> str:
        return f"tensor<{''.join(f'{size}x' for size in shape)}{self.element}>"

    def _dims(self, rank: int, density: float) -> Dims:
        axes = list(_MESHES[self.mesh])
        self.random.shuffle(axes)
        dims: Dims = [[] for _ in range(rank)]
        for axis in axes:
            if self.random.random() < density:
                self.random.choice(dims).append(axis)
        return dims

    def _arg(self, shape: list[int], dims: Dims) -> str:
        self.args.append((list(shape), dims))
        return f"%a{len(self.args) - 1}"

    def _put(self, op: str, shape: list[int], types: str, is_marked: bool = True) -> str:
        name = f"%{len(self.lines)}"
        mark = f" {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {_dims_text(self.dims)}>]>}}" if is_marked else ""
        self.lines.append(f"{name} = stablehlo.{op}{mark} : ({types}) -> {self._type(shape)}")
        return name

    def _next(self, op: str, shape: list[int], types: str) -> None:
        self.value, self.shape = self._put(op, shape, types), shape

    def _slice(self) -> None:
        random, parts, shape = self.random, [], []
        is_unsharded = random.random() < 0.5
        for size in self.shape:
            start = random.choice([0, random.randrange(size)])
            limit = random.choice([size, random.randint(start + 1, size)])
            stride = 1 if is_unsharded else random.choice([1, 1, 2, 3])
            parts.append(f"{start}:{limit}:{stride}")
            shape.append(-(-(limit - start) // stride))
        self._next(f"slice {self.value} [{', '.join(parts)}]", shape, self._type(self.shape))

    def _pad(self) -> None:
        edges = ([self.random.choice([0, 0, self.random.randint(-2, 9)]) for _ in self.shape] for _ in range(2))
        low, high = edges
        inner = [self.random.choice([0, 0, 0, 1, 2]) for _ in self.shape]
        shape = [
            before + size + (size - 1) * gap + after for before, size, gap, after in zip(low, self.shape, inner, high)
        ]
        if min(shape) > 0 and prod(shape) < _LARGEST:
            types = f"{self._type(self.shape)}, tensor<{self.element}>"
            self._next(f"pad {self.value}, %filler, low = {low}, high = {high}, interior = {inner}", shape, types)

    def _join(self) -> None:
        dim = self.random.randrange(len(self.shape))
        joined = [self._operand(dim) for _ in range(self.random.randint(1, 3))]
        shape = list(self.shape)
        shape[dim] = sum(other[dim] for _, other in joined)
        names, types = ", ".join(name for name, _ in joined), ", ".join(self._type(other) for _, other in joined)
        self._next(f"concatenate {names}, dim = {dim}", shape, types)

    def _operand(self, dim: int) -> tuple[str, list[int]]:
        """What is joined along a dimension: what there is, a part of it, an input, or one number."""
        kind, shape = self.random.random(), list(self.shape)
        if kind < 0.35:
            return self.value, shape
        if kind < 0.55:
            start = self.random.randrange(shape[dim])
            shape[dim] = self.random.randint(1, shape[dim] - start)
            parts = [
                f"{start if other == dim else 0}:{(start if other == dim else 0) + size}"
                for other, size in enumerate(shape)
            ]
            return self._put(f"slice {self.value} [{', '.join(parts)}]", shape, self._type(self.shape)), shape
        shape[dim] = self.random.choice([1, 3, 8, 16, 21])
        if kind < 0.65:
            return self._put("broadcast_in_dim %filler, dims = []", shape, f"tensor<{self.element}>", False), shape
        same = self.random.random() < 0.6
        return self._arg(shape, self.dims if same else self._dims(len(shape), 0.4)), shape

    def _reverse(self) -> None:
        dims = [dim for dim in range(len(self.shape)) if self.random.random() < 0.6]
        name = f"%{len(self.lines)}"
        mark = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {_dims_text(self.dims)}>]>}}"
        self.lines.append(f"{name} = stablehlo.reverse {self.value}, dims = {dims} {mark} : {self._type(self.shape)}")
        self.value = name

    def _reshape(self) -> None:
        random, before = self.random, self.shape
        if random.random() < 0.5:
            dim = random.randrange(len(before))
            first = random.choice(_divisors(before[dim]))
            shape = [*before[:dim], first, before[dim] // first, *before[dim + 1 :]]
        else:
            first = random.choice(_divisors(prod(before)))
            second = random.choice(_divisors(prod(before) // first))
            shape = random.choice(
                [[prod(before)], [first, prod(before) // first], [first, second, prod(before) // first // second]]
            )
        shape = shape if len(shape) <= 4 else [prod(shape)]
        if random.random() < 0.6:  # the same axes in the same order
            axes, at = [axis for dim in self.dims for axis in dim], 0
            self.dims = [[] for _ in shape]
            for axis in axes:
                at = random.randint(at, len(shape) - 1)
                self.dims[at].append(axis)
        else:
            self.dims = self._dims(len(shape), 0.8)
        self._next(f"reshape {self.value}", shape, self._type(before))


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _dims_text(dims: Dims) -> str:
    return "[" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims) + "]"
