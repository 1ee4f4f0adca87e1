"""Building a rule factor by factor.

Source: docs/semantics/rules.md#building-a-rule
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.rules.rule import FactorKind, Rule, Shape


class RuleBuilder:
    """A rule under construction: one growing list of factors per dimension of every operand and result.

    Values are numbered operands first, then results.

    Args:
        operand_shapes: Shape of every operand.
        result_shapes: Shape of every result.

    >>> builder = RuleBuilder([(6, 4)], [(4, 6)])
    >>> builder.factor(4, [(0, 1), (1, 0)])
    >>> builder.factor(6, [(0, 0), (1, 1)])
    >>> print(builder.finish())
    <([j, i])->([i, j]) {i=4, j=6}>
    """

    def __init__(self, operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape]) -> None:
        self.operand_count = len(operand_shapes)
        self.shapes = [*operand_shapes, *result_shapes]
        self.slots: list[list[list[int]]] = [[[] for _ in shape or ()] for shape in self.shapes]
        self.sizes: list[int] = []
        self.kinds: list[FactorKind] = []
        self.blocked: list[int] = []

    @property
    def operands(self) -> range:
        """The numbers of the operands."""
        return range(self.operand_count)

    @property
    def results(self) -> range:
        """The numbers of the results."""
        return range(self.operand_count, len(self.shapes))

    def factor(
        self,
        size: int,
        places: Iterable[tuple[int, int]],
        kind: FactorKind = FactorKind.PASS_THROUGH,
        blocked: bool = False,
    ) -> None:
        """Declare the next factor at pairs of value and dimension; of size 1, only where a slot is still empty."""
        index = len(self.sizes)
        self.sizes.append(size)
        self.kinds.append(kind)
        if blocked:
            self.blocked.append(index)
        for value, dim in places:
            slot = self.slots[value][dim]
            if size != 1 or not slot:
                slot.append(index)

    def everywhere(self, dim: int) -> list[tuple[int, int]]:
        """Dimension `dim` of every value of rank 1 or more."""
        return [(value, dim) for value, slots in enumerate(self.slots) if slots]

    def finish(self) -> Rule:
        """The rule; every dimension still without a factor gets one of its own, of size 1."""
        for slots in self.slots:
            for slot in slots:
                if not slot:
                    slot.append(len(self.sizes))
                    self.sizes.append(1)
                    self.kinds.append(FactorKind.PASS_THROUGH)
        return Rule(
            self.sizes,
            self.slots[: self.operand_count],
            self.slots[self.operand_count :],
            self.kinds,
            self.blocked,
        )


def identity_rule(shape: tuple[int, ...], operand_count: int = 1, result_count: int = 1) -> Rule:
    """Every dimension of every value is one factor: the rule of element-wise ops and of data-flow edges.

    >>> print(identity_rule((8, 16), operand_count=2))
    <([i, j], [i, j])->([i, j]) {i=8, j=16}>
    """
    mapping = [[dim] for dim in range(len(shape))]
    return Rule(shape, [mapping] * operand_count, [mapping] * result_count)
