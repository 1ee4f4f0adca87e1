"""Random choices for valid ops, and the MLIR text of an op inside a function of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import TypeVar

T = TypeVar("T")
Shape = tuple[int, ...]

_SIZES = (0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 30)


class Draw(random.Random):
    """A seeded source of choices."""

    def size(self, low: int = 0) -> int:
        """Size of a dimension, at least `low`."""
        return max(low, self.choice(_SIZES))

    def shape(self, min_rank: int = 0, max_rank: int = 4, low: int = 0) -> Shape:
        """Sizes, each at least `low`."""
        return tuple(self.size(low) for _ in range(self.randint(min_rank, max_rank)))

    def flag(self, chance: float = 0.5) -> bool:
        """True with the given probability."""
        return self.random() < chance

    def subset(self, items: Sequence[T], at_least: int = 0, at_most: int | None = None) -> list[T]:
        """Some of the items, in their order."""
        limit = len(items) if at_most is None else min(at_most, len(items))
        chosen = self.sample(range(len(items)), self.randint(min(at_least, limit), limit))
        return [items[index] for index in sorted(chosen)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All of the items in some order."""
        return self.sample(list(items), len(items))

    def below(self, size: int) -> int:
        """A size of at most `size`, often that itself, and at least 1 where possible."""
        return size if self.flag(0.4) else self.randint(min(1, size), size)

    def regrouped(self, shape: Shape) -> Shape:
        """Another shape with as many elements."""
        if not prod(shape):
            return (*self.shape(), 0)
        primes = [prime for size in shape for prime in _prime_factors(size)]
        sizes = [1] * self.randint(1 if primes else 0, 4)
        for prime in self.shuffled(primes):
            sizes[self.randrange(len(sizes))] *= prime
        return self._split(shape) if self.flag() else tuple(sizes)

    def _split(self, shape: Shape) -> Shape:
        """The shape with dimensions merged, split and interspersed with ones."""
        sizes = [prime for size in shape for prime in _prime_factors(size) or [1]]
        while len(sizes) > 1 and self.flag(0.6):
            at = self.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        return tuple(sizes)


def _prime_factors(number: int) -> list[int]:
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


def replaced(shape: Sequence[int], dim: int, size: int) -> Shape:
    """The shape with another size in one dimension."""
    return (*shape[:dim], size, *shape[dim + 1 :])


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def array(values: Sequence[int]) -> str:
    """A dense array attribute of 64-bit integers."""
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def dense_pairs(pairs: Sequence[tuple[int, int]]) -> str:
    """A dense attribute of pairs."""
    if not pairs:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<{[list(pair) for pair in pairs]}> : tensor<{len(pairs)}x2xi64>"


def function(body: str, operands: Sequence[str]) -> str:
    """A function with `body`; its arguments `%a0`, `%a1`, ... have the types `operands`."""
    arguments = ", ".join(f"%a{index}: {type}" for index, type in enumerate(operands))
    return f"func.func @NAME({arguments}) {{\n{body}\n  return\n}}\n"


def op_line(
    name: str, operands: Sequence[str], results: Sequence[str], attrs: str = "", region: str = "", names: str = ""
) -> str:
    """One op in generic form on `%a0`, `%a1`, ..., or on `names`; its results are `%r`."""
    target = "" if not results else "%r = " if len(results) == 1 else f"%r:{len(results)} = "
    values = names or ", ".join(f"%a{index}" for index in range(len(operands)))
    held = f" ({{{region}}})" if region else ""
    return f'  {target}"{name}"({values}){held} {{{attrs}}} : ({", ".join(operands)}) -> ({", ".join(results)})'


def op(name: str, operands: Sequence[str], results: Sequence[str], attrs: str = "", region: str = "") -> str:
    """A function that holds one op."""
    return function(op_line(name, operands, results, attrs, region), operands)


def combiner(elements: Sequence[str], ops: Sequence[str] = (), result: str = "") -> str:
    """A region on two scalars per element type, all left ones first.

    Args:
        elements: The element types.
        ops: The op that combines each left and right scalar; `add` by default.
        result: Full text of the returned values, instead of those of `ops`.
    """
    count = len(elements)
    types = [f"tensor<{element}>" for element in elements]
    args = ", ".join(f"%x{index}: {type}" for index, type in enumerate(types * 2))
    lines = [
        f'%y{index} = "stablehlo.{name}"(%x{index}, %x{index + count}) : ({type}, {type}) -> {type}'
        for index, (name, type) in enumerate(zip(ops or ["add"] * count, types))
    ]
    returned = result or ", ".join(f"%y{index}" for index in range(count))
    return f'^bb0({args}):\n{chr(10).join(lines)}\n"stablehlo.return"({returned}) : ({", ".join(types)}) -> ()\n'
