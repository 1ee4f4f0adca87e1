"""Sharding rules in einsum-like notation, for ops of any shape.

    rule  = values "->" values
    value = ["..." digits] {dim}            nothing at all is a scalar; values are separated by commas
    dim   = name | "(" name name ... ")"    a compound dimension, major to minor

The same name in two values links their dimensions. `...` stands for leading dimensions, the same number of them
wherever it appears; `...1` and `...2` are independent of `...`.

Source: docs/semantics/rules.md#rules-of-the-user
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from pyshardy.core.scanner import Scanner
from pyshardy.errors import RuleNotationError, UsageError
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule, Shape

_DOING = "reading a sharding rule in einsum notation"
_ELLIPSIS = re.compile(r"\.\.\.(\d{0,9})")
_NAME = re.compile(r"[^\W\d_]\w*")
_Factor = str | tuple[str, int]
"""A name, or a group of leading dimensions with the position in it."""


@dataclass(frozen=True, slots=True)
class _Dim:
    names: tuple[str, ...]
    position: int


@dataclass(frozen=True, slots=True)
class _Value:
    """One operand or result.

    Attributes:
        group: The ellipsis at its start, such as "..." or "...1"; empty if there is none.
        dims: The dimensions after it.
        position: Its position in the text.
    """

    group: str
    dims: tuple[_Dim, ...]
    position: int


@dataclass(frozen=True, slots=True)
class EinsumRule:
    """A rule in einsum notation; call it with an `OpSpec` to get the `Rule` for its shapes.

    Make it with `einsum_rule`.

    Attributes:
        text: The notation.
        operands: The notation of every operand.
        results: The notation of every result.
        kinds: The kind of every name that is not pass-through.
        blocked: The names along which nothing propagates.
        sizes: The sizes that the user gave.
    """

    text: str
    operands: tuple[_Value, ...]
    results: tuple[_Value, ...]
    kinds: Mapping[str, FactorKind]
    blocked: frozenset[str]
    sizes: Mapping[str, int]

    def __call__(self, spec: OpSpec, conservative: bool = False) -> Rule:
        """The rule for an op of these shapes; raises `InvalidRuleError` if the notation does not fit them."""
        self._check_count("operand", self.operands, spec.operand_shapes)
        self._check_count("result", self.results, spec.result_shapes)
        return _Instance(self, spec).rule()

    def __str__(self) -> str:
        return self.text

    def _check_count(self, kind: str, values: tuple[_Value, ...], shapes: tuple[Shape, ...]) -> None:
        if len(values) != len(shapes):
            raise self.misfit(
                (self.operands + self.results)[-1 if kind == "result" else 0].position,
                got=f"{len(shapes)} {kind}s",
                needed=f"{len(values)}, as the notation has",
            )

    def misfit(self, position: int, got: str, needed: str, hint: str | None = None) -> RuleNotationError:
        """The error for an op that the notation does not fit, pointing at a place in the text."""
        return RuleNotationError(
            f"using the sharding rule '{self.text}'",
            text=self.text,
            position=position,
            got=got,
            needed=needed,
            hint=hint,
        )


def einsum_rule(
    text: str,
    *,
    reduction: str | Iterable[str] = (),
    need_replication: str | Iterable[str] = (),
    permutation: str | Iterable[str] = (),
    blocked: str | Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> EinsumRule:
    """A rule in einsum notation.

    Args:
        text: Such as "... i k, ... k j -> ... i j" or "b (h d) -> b h d".
        reduction: Names of factors that leave partial results when sharded; a list, or a string with spaces.
        need_replication: Names of factors that cannot be sharded without gathering first.
        permutation: Names of factors along which neighbours exchange data.
        blocked: Names of factors along which nothing propagates.
        sizes: Sizes of factors that appear only in compound dimensions, if the dimensions do not determine them.

    Raises:
        NotationError: Text that is not valid, with the place.
        UsageError: Names that the text does not have, or names given twice.

    >>> rule = einsum_rule("... i k, ... k j -> ... i j", reduction="k")
    >>> print(rule(OpSpec("my.matmul", [(2, 4, 8), (2, 8, 16)], [(2, 4, 16)])))
    <([i, j, k], [i, k, l])->([i, j, l]) {i=2, j=4, k=8, l=16} reduction={k}, custom>
    >>> print(einsum_rule("b (h d) -> b h d")(OpSpec("my.split", [(2, 12)], [(2, 3, 4)])))
    <([i, jk])->([i, j, k]) {i=2, j=3, k=4}, custom>
    """
    operands, results = _parse(text)
    kinds: dict[str, FactorKind] = {}
    for kind, names in (
        (FactorKind.REDUCTION, reduction),
        (FactorKind.NEED_REPLICATION, need_replication),
        (FactorKind.PERMUTATION, permutation),
    ):
        for name in _names(names):
            if name in kinds:
                raise _refuse(text, f"{name} as {kinds[name].value} and as {kind.value}", "one kind for every name")
            kinds[name] = kind
    found = EinsumRule(text, operands, results, kinds, frozenset(_names(blocked)), dict(sizes or {}))
    _check_names(found)
    return found


def _names(given: str | Iterable[str]) -> list[str]:
    return given.replace(",", " ").split() if isinstance(given, str) else list(given)


def _refuse(text: str, got: str, needed: str) -> UsageError:
    return UsageError(f"making the sharding rule '{text}'", got=got, needed=needed)


def _check_names(rule: EinsumRule) -> None:
    in_text = {name for value in rule.operands + rule.results for name in _names_of(value)}
    for names, role in ((rule.kinds, "kind"), (rule.blocked, "kind"), (rule.sizes, "size")):
        for name in sorted(names):
            if name not in in_text:
                raise _refuse(rule.text, f"a {role} for {name}", f"one of {' '.join(sorted(in_text))}")
    alone = {dim.names[0] for value in rule.operands + rule.results for dim in value.dims if len(dim.names) == 1}
    for name, size in rule.sizes.items():
        if name in alone or name.startswith("."):
            raise _refuse(rule.text, f"a size for {name}", "sizes of factors that appear only in compound dimensions")
        if size < 1:
            raise _refuse(rule.text, f"size {size} for {name}", "a positive size")
    for value in rule.results:
        for name in _names_of(value):
            if rule.kinds.get(name) is FactorKind.REDUCTION:
                raise _refuse(rule.text, f"the reduction {name} in a result", "reductions in operands only")


def _names_of(value: _Value) -> list[str]:
    return [value.group] * bool(value.group) + [name for dim in value.dims for name in dim.names]


# Reading


def _parse(text: str) -> tuple[tuple[_Value, ...], tuple[_Value, ...]]:
    scanner = Scanner(text, _DOING)
    operands = _scan_values(scanner)
    scanner.expect("->")
    results = _scan_values(scanner)
    return scanner.finish((operands, results))


def _scan_values(scanner: Scanner) -> tuple[_Value, ...]:
    values = [_scan_value(scanner)]
    while scanner.accept(","):
        values.append(_scan_value(scanner))
    return tuple(values)


def _scan_value(scanner: Scanner) -> _Value:
    start = scanner.position
    found = scanner.match(_ELLIPSIS)
    group = f"...{int(found.group(1) or 0) or ''}" if found else ""
    dims: list[_Dim] = []
    seen: set[str] = set()
    while not scanner.stands_at(",", "->", ""):
        position = scanner.position
        dims.append(_Dim(tuple(_scan_dim(scanner, seen)), position))
    return _Value(group, tuple(dims), start)


def _scan_dim(scanner: Scanner, seen: set[str]) -> list[str]:
    start = scanner.position
    if not scanner.accept("("):
        return [_scan_name(scanner, seen)]
    names = []
    while not scanner.accept(")"):
        names.append(_scan_name(scanner, seen, " or ')'"))
    if len(names) < 2:
        scanner.position = start
        raise scanner.fail("at least two names in a compound dimension")
    return names


def _scan_name(scanner: Scanner, seen: set[str], otherwise: str = "") -> str:
    start = scanner.position
    if scanner.stands_at("..."):
        raise scanner.fail("'...' at the start of a value only")
    found = scanner.match(_NAME)
    if found is None:
        raise scanner.fail(f"a name that begins with a letter{otherwise}")
    name = found.group()
    if name in seen:
        scanner.position = start
        raise scanner.fail("every name at most once per value", got=f"{name} again")
    seen.add(name)
    return name


# Using


class _Instance:
    """A rule being built for one op."""

    def __init__(self, einsum: EinsumRule, spec: OpSpec) -> None:
        self.einsum = einsum
        self.values = [
            (value, shape or (), f"{kind} {index}")
            for kind, values, shapes in (
                ("operand", einsum.operands, spec.operand_shapes),
                ("result", einsum.results, spec.result_shapes),
            )
            for index, (value, shape) in enumerate(zip(values, shapes))
        ]
        self.lengths: dict[str, int] = {}
        self.sizes: dict[_Factor, int] = dict(iter(einsum.sizes.items()))

    def rule(self) -> Rule:
        for value, shape, where in self.values:
            self.measure(value, shape, where)
        self.infer()
        for value, shape, where in self.values:
            self.check_products(value, shape, where)
        tensors = [self.factors(value) for value, _, _ in self.values]
        order = {
            factor: index for index, factor in enumerate(dict.fromkeys(f for t in tensors for dim in t for f in dim))
        }
        mappings = [[[order[factor] for factor in dim] for dim in tensor] for tensor in tensors]
        names = [factor if isinstance(factor, str) else factor[0] for factor in order]
        return Rule(
            [self.sizes[factor] for factor in order],
            mappings[: len(self.einsum.operands)],
            mappings[len(self.einsum.operands) :],
            [self.einsum.kinds.get(name, FactorKind.PASS_THROUGH) for name in names],
            [index for index, name in enumerate(names) if name in self.einsum.blocked],
            is_custom=True,
        )

    def measure(self, value: _Value, shape: tuple[int, ...], where: str) -> None:
        """Record the sizes of leading dimensions and of factors that stand alone."""
        leading = len(shape) - len(value.dims)
        if leading < 0 or (leading and not value.group):
            least = "at least " if value.group else ""
            raise self.misfit(value.position, shape, where, f"rank {least}{len(value.dims)}")
        if value.group and self.lengths.setdefault(value.group, leading) != leading:
            needed = f"{self.lengths[value.group]} leading dimensions for {value.group}, as before"
            raise self.misfit(value.position, shape, where, needed)
        for index in range(leading):
            factor = (value.group, index)
            if self.sizes.setdefault(factor, shape[index]) != shape[index]:
                needed = f"size {self.sizes[factor]} in dimension {index}, as before"
                raise self.misfit(value.position, shape, where, needed)
        for dim, size in zip(value.dims, shape[leading:]):
            if len(dim.names) == 1:
                self.sizes[dim.names[0]] = min(size, self.sizes.get(dim.names[0], size))

    def infer(self) -> None:
        """Find, by division, the sizes of factors that appear only in compound dimensions."""
        compounds = [
            (dim, size, shape, where)
            for value, shape, where in self.values
            for dim, size in zip(reversed(value.dims), reversed(shape))
            if len(dim.names) > 1
        ]
        while compounds:
            compounds.sort(key=lambda compound: len(self.unknown(compound[0])))
            dim, size, shape, where = compounds.pop(0)
            missing = self.unknown(dim)
            if not missing:
                continue
            known = prod(self.sizes[name] for name in dim.names if name not in missing)
            if len(missing) > 1 or not known or size % known:
                hint = f"sizes={{{missing[0]!r}: ...}}"
                raise self.misfit(dim.position, shape, where, f"the size of {missing[0]}", hint)
            self.sizes[missing[0]] = size // known

    def unknown(self, dim: _Dim) -> list[str]:
        return [name for name in dim.names if name not in self.sizes]

    def check_products(self, value: _Value, shape: tuple[int, ...], where: str) -> None:
        for dim, size in zip(reversed(value.dims), reversed(shape)):
            sizes = [self.sizes[name] for name in dim.names]
            if len(sizes) > 1 and prod(sizes) != size:
                product = " * ".join(f"{name}={size}" for name, size in zip(dim.names, sizes))
                raise self.misfit(dim.position, shape, where, f"{product} instead of {size}")

    def factors(self, value: _Value) -> list[list[_Factor]]:
        """The factors of every dimension, without those of size 1 in compound dimensions."""
        tensor: list[list[_Factor]] = [[(value.group, index)] for index in range(self.lengths.get(value.group, 0))]
        for dim in value.dims:
            tensor.append([name for name in dim.names if self.sizes[name] != 1] or [dim.names[0]])
        return tensor

    def misfit(
        self, position: int, shape: tuple[int, ...], where: str, needed: str, hint: str | None = None
    ) -> RuleNotationError:
        text = "x".join(map(str, shape)) or "scalar"
        return self.einsum.misfit(position, f"{where} of shape {text}", needed, hint)
