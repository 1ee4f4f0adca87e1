"""Sharding rules as data.

A rule names the *factors* of an op, its independent loop indices, with their sizes, and lists the factors of every
dimension of every operand and result, major to minor. The same factor in two tensors links their dimensions.

Source: docs/semantics/rules.md#what-a-rule-is
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from pyshardy.core.intern import Interned
from pyshardy.errors import InvalidRuleError

DimMapping = tuple[int, ...]
TensorMapping = tuple[DimMapping, ...]
Shape = tuple[int, ...] | None
"""Sizes of the dimensions of a value; None for a value without dimensions, such as a token."""


class FactorKind(Enum):
    """The cost of sharding a factor."""

    __hash__ = object.__hash__  # lookups hash it, and the hash of `Enum` is a slow Python function

    PASS_THROUGH = "pass_through"
    """Free, if all tensors that have the factor are sharded alike on it."""
    REDUCTION = "reduction"
    """Results are partial and need an all-reduce."""
    NEED_REPLICATION = "need_replication"
    """The axes must be gathered first."""
    PERMUTATION = "permutation"
    """Neighbouring shards exchange data."""


_LETTERS = "ijklmnopqrstuvwxyz"
SPECIAL_KINDS = (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


def factor_symbol(factor: int) -> str:
    """The symbol of a factor.

    >>> factor_symbol(0), factor_symbol(17), factor_symbol(18)
    ('i', 'z', 'z_1')
    """
    return _LETTERS[factor] if factor < len(_LETTERS) else f"z_{factor - len(_LETTERS) + 1}"


class Rule(Interned):
    """The sharding rule of one op.

    Args:
        factor_sizes: Size of every factor. Their product need not equal the sizes of the dimensions.
        operands: Per operand and dimension, the factors of the dimension, major to minor.
        results: The same for every result.
        kinds: Kind of every factor; empty means pass-through for all.
        blocked: Factors along which nothing propagates, ascending.
        is_custom: Whether a user gave the rule; such a rule is never dropped.

    Raises:
        InvalidRuleError: An index out of range, a factor twice in a tensor or nowhere, a dimension without a
            factor, a size-1 factor in a compound dimension, or a reduction factor in a result.

    >>> print(Rule((2, 4, 8), [[[0], [2]], [[2], [1]]], [[[0], [1]]],
    ...            (FactorKind.PASS_THROUGH, FactorKind.PASS_THROUGH, FactorKind.REDUCTION)))
    <([i, k], [k, j])->([i, j]) {i=2, j=4, k=8} reduction={k}>
    """

    __slots__ = ("factor_sizes", "operands", "results", "kinds", "blocked", "is_custom", "_tensors")

    factor_sizes: tuple[int, ...]
    operands: tuple[TensorMapping, ...]
    results: tuple[TensorMapping, ...]
    kinds: tuple[FactorKind, ...]
    blocked: tuple[int, ...]
    is_custom: bool
    _tensors: tuple[TensorMapping, ...]

    def __new__(  # noqa: D102 (the class docstring says it)
        cls,
        factor_sizes: Iterable[int],
        operands: Iterable[Iterable[Iterable[int]]],
        results: Iterable[Iterable[Iterable[int]]],
        kinds: Iterable[FactorKind] = (),
        blocked: Iterable[int] = (),
        is_custom: bool = False,
    ) -> Rule:
        try:
            sizes = tuple(factor_sizes)
            return cls._make(
                (
                    sizes,
                    _as_mappings(operands),
                    _as_mappings(results),
                    tuple(kinds) or (FactorKind.PASS_THROUGH,) * len(sizes),
                    tuple(blocked),
                    is_custom,
                )
            )
        except TypeError as error:
            needed = "factors as integers, in lists: sizes, and per tensor and dimension its factors"
            raise InvalidRuleError(_DOING, got=f"values of other types ({error})", needed=needed) from error

    @classmethod
    def _canonical(cls, *fields: object) -> tuple[object, ...]:
        _check(*fields)  # type: ignore[arg-type]
        return fields

    def __str__(self) -> str:
        text = f"({_format_tensors(self.operands)})->({_format_tensors(self.results)})"
        if self.factor_sizes:
            sizes = [f"{factor_symbol(factor)}={size}" for factor, size in enumerate(self.factor_sizes)]
            text += " {" + ", ".join(sizes) + "}"
        for kind in SPECIAL_KINDS:
            text += _format_set(kind.value, self.factors_of(kind))
        text += _format_set("blocked_propagation", self.blocked)
        return f"<{text}{', custom' if self.is_custom else ''}>"

    def __repr__(self) -> str:
        return f"Rule({self})"

    @property
    def tensors(self) -> tuple[TensorMapping, ...]:
        """The mappings of the operands, then of the results."""
        try:
            return self._tensors
        except AttributeError:
            found = self.operands + self.results
            object.__setattr__(self, "_tensors", found)
            return found

    def factors_of(self, kind: FactorKind) -> tuple[int, ...]:
        """The factors of one kind, ascending."""
        return tuple(factor for factor, found in enumerate(self.kinds) if found is kind)

    def in_all_tensors(self, factor: int) -> bool:
        """Whether every tensor of rank 1 or more has the factor."""
        return all(any(factor in dim for dim in tensor) for tensor in self.tensors if tensor)

    @property
    def batching_factors(self) -> tuple[int, ...]:
        """The pass-through factors that every tensor of rank 1 or more has, ascending."""
        return tuple(factor for factor in self.factors_of(FactorKind.PASS_THROUGH) if self.in_all_tensors(factor))

    @property
    def has_compound_dims(self) -> bool:
        """Whether any dimension is made of several factors."""
        return any(len(dim) > 1 for tensor in self.tensors for dim in tensor)


_DOING = "making a sharding rule"


def _as_mappings(tensors: Iterable[Iterable[Iterable[int]]]) -> tuple[TensorMapping, ...]:
    return tuple([tuple([tuple(dim) for dim in tensor]) for tensor in tensors])


def _check(
    sizes: tuple[int, ...],
    operands: tuple[TensorMapping, ...],
    results: tuple[TensorMapping, ...],
    kinds: tuple[FactorKind, ...],
    blocked: tuple[int, ...],
    is_custom: bool,
) -> None:
    if len(kinds) != len(sizes):
        raise InvalidRuleError(_DOING, got=f"{len(kinds)} kinds", needed=f"{len(sizes)}, one per factor")
    if not operands or not results:
        raise InvalidRuleError(
            _DOING,
            got=f"{len(operands)} operands and {len(results)} results",
            needed="at least one of each",
        )
    used: set[int] = set()
    for kind, tensors in (("operand", operands), ("result", results)):
        for index, tensor in enumerate(tensors):
            used.update(_check_tensor(tensor, sizes, kind, index))
    if len(used) != len(sizes):
        missing = min(set(range(len(sizes))) - used)
        raise InvalidRuleError(_DOING, got=f"factor {missing} that no tensor has", needed="factors in use")
    if blocked and (list(blocked) != sorted(set(blocked)) or not set(blocked) <= used):
        raise InvalidRuleError(_DOING, got=f"blocked factors {blocked}", needed="factors, ascending, each once")
    reduced = {factor for factor, kind in enumerate(kinds) if kind is FactorKind.REDUCTION}
    for index, tensor in enumerate(results if reduced else ()):
        for dim in tensor:
            if reduced.intersection(dim):
                raise InvalidRuleError(
                    _DOING, got=f"a reduction factor in result {index}", needed="reduction factors in operands only"
                )


def _check_tensor(tensor: TensorMapping, sizes: tuple[int, ...], kind: str, index: int) -> set[int]:
    seen: set[int] = set()
    for position, dim in enumerate(tensor):
        if not dim:
            raise _wrong("no factor for", position, kind, index, "at least one")
        for factor in dim:
            if not 0 <= factor < len(sizes):
                raise _wrong(f"factor {factor} in", position, kind, index, f"0 to {len(sizes) - 1}")
            if factor in seen:
                needed = "every factor at most once per tensor"
                raise _wrong(f"factor {factor} again in", position, kind, index, needed)
            seen.add(factor)
            if len(dim) > 1 and sizes[factor] == 1:
                needed = "size-1 factors to stand alone"
                raise _wrong(f"factor {factor} of size 1 in", position, kind, index, needed)
    return seen


def _wrong(what: str, position: int, kind: str, index: int, needed: str) -> InvalidRuleError:
    return InvalidRuleError(_DOING, got=f"{what} dimension {position} of {kind} {index}", needed=needed)


def _format_tensors(tensors: tuple[TensorMapping, ...]) -> str:
    return ", ".join("[" + ", ".join("".join(map(factor_symbol, dim)) for dim in tensor) + "]" for tensor in tensors)


def _format_set(name: str, factors: tuple[int, ...]) -> str:
    return f" {name}={{{', '.join(map(factor_symbol, factors))}}}" if factors else ""
