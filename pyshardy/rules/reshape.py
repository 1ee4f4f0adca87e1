"""The rule of reshape: it consumes both shapes from the major side, factor by factor.

Source: docs/semantics/rules.md#reshape
"""

from __future__ import annotations

from math import gcd

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder


def reshape(spec: OpSpec, conservative: bool) -> Rule | None:
    """Dimensions that are split or merged share factors; parts that do not match need communication.

    None if the tensor has no elements.

    >>> print(reshape(OpSpec("stablehlo.reshape", [(2, 9, 5)], [(6, 15)]), False))
    <([i, jk, l])->([ij, kl]) {i=2, j=3, k=3, l=5}>
    >>> print(reshape(OpSpec("stablehlo.reshape", [(12, 10)], [(8, 15)]), False))
    <([ij, lm])->([ij, km]) {i=4, j=3, k=3, l=2, m=5} need_replication={k, l} permutation={j}>
    """
    if 0 in spec.operand(0):
        return None
    builder = builder_of(spec)
    source, target = _Side(0, spec.operand(0)), _Side(1, spec.result(0))
    while source.is_open or target.is_open:
        if source.at_one:
            source.take_one(builder)
        elif target.at_one:
            target.take_one(builder)
        elif source.done == target.done:
            _share(builder, source, target)
        elif source.done < target.done:
            source.catch_up(builder, target)
        else:
            target.catch_up(builder, source)
    return builder.finish()


class _Side:
    """One of the two shapes, consumed up to a point inside its dimension `dim`.

    Attributes:
        rest: The remaining size of that dimension; 1 after the last one.
        done: Product of the sizes of all factors of this side so far.
    """

    def __init__(self, value: int, shape: tuple[int, ...]) -> None:
        self.value = value
        self.shape = shape
        self.dim = 0
        self.rest = shape[0] if shape else 1
        self.done = 1

    @property
    def is_open(self) -> bool:
        return self.dim < len(self.shape)

    @property
    def at_one(self) -> bool:
        return self.is_open and self.shape[self.dim] == 1

    @property
    def place(self) -> tuple[int, int]:
        return self.value, self.dim

    def step(self) -> None:
        self.dim += 1
        self.rest = self.shape[self.dim] if self.is_open else 1

    def use(self, size: int) -> None:
        self.done *= size
        self.rest //= size
        if self.is_open and self.rest == 1:
            self.step()

    def take_one(self, builder: RuleBuilder) -> None:
        """Give a dimension of size 1 a factor of its own."""
        builder.factor(1, [self.place], FactorKind.NEED_REPLICATION)
        self.step()

    def catch_up(self, builder: RuleBuilder, ahead: _Side) -> None:
        """Give this side, which covers fewer elements, a factor of its own, so that it covers as many or almost."""
        common = gcd(self.rest, ahead.rest)
        size, odd = divmod(ahead.done, self.done)
        if odd or self.rest % size:
            size = self.rest // common if self.rest > common else self.rest
        builder.factor(size, [self.place], FactorKind.NEED_REPLICATION)
        self.use(size)


def _share(builder: RuleBuilder, source: _Side, target: _Side) -> None:
    """Give both sides, which are level, one factor: the common part, or the whole rest if there is none."""
    common = gcd(source.rest, target.rest)
    if common > 1:
        builder.factor(common, [source.place, target.place])
        sizes = common, common
    else:
        builder.factor(source.rest, [source.place, target.place], FactorKind.PERMUTATION)
        sizes = source.rest, target.rest
    source.use(sizes[0])
    target.use(sizes[1])
