"""Parser of rules; `str` of a rule is the exact inverse.

Factors are the letters `i` to `z`, then `z_1`, `z_2` and so on. A compound dimension has no spaces: `ij`.

Source: docs/semantics/rules.md#notation
"""

from __future__ import annotations

import re

from pyshardy.core.scanner import Scanner
from pyshardy.rules.rule import SPECIAL_KINDS, FactorKind, Rule, factor_symbol

_SYMBOLS = re.compile(r"[A-Za-z_][\w$.]*")


def parse_rule(text: str) -> Rule:
    """Read a rule; a leading `#sdy.op_sharding_rule` is accepted. Raises `NotationError` at the offending place.

    >>> parse_rule("<([ij])->([i, j]) {i=2, j=4}>").operands
    (((0, 1),),)
    """
    scanner = Scanner(text, "reading a sharding rule")
    scanner.accept("#sdy.op_sharding_rule")
    start = scanner.position
    scanner.expect("<")
    operands = _scan_tensors(scanner)
    scanner.expect("->")
    results = _scan_tensors(scanner)
    sizes = _scan_sizes(scanner)
    kinds = [FactorKind.PASS_THROUGH] * len(sizes)
    for kind in SPECIAL_KINDS:
        for factor in _scan_set(scanner, kind.value, len(sizes)):
            if kinds[factor] is not FactorKind.PASS_THROUGH:
                raise scanner.fail("every factor in at most one set", got=f"{factor_symbol(factor)} again")
            kinds[factor] = kind
    blocked = _scan_set(scanner, "blocked_propagation", len(sizes))
    is_custom = scanner.accept(",")
    if is_custom:
        scanner.expect("custom")
    scanner.expect(">")
    return scanner.finish(scanner.build(start, lambda: Rule(sizes, operands, results, kinds, blocked, is_custom)))


def _scan_tensors(scanner: Scanner) -> list[list[list[int]]]:
    scanner.expect("(")
    tensors = [_scan_tensor(scanner)]
    while scanner.accept(","):
        tensors.append(_scan_tensor(scanner))
    scanner.expect(")")
    return tensors


def _scan_tensor(scanner: Scanner) -> list[list[int]]:
    scanner.expect("[")
    return scanner.comma_list(lambda: _scan_symbols(scanner), "]")


def _scan_symbols(scanner: Scanner) -> list[int]:
    start = scanner.position
    found = scanner.match(_SYMBOLS)
    word = found.group() if found else ""
    factors = []
    while word:
        match = re.match(r"z_([1-9]\d{0,8})(?!\d)|([i-z])(?!_)", word)
        if match is None:
            scanner.position = start
            raise scanner.fail("factors i to z, or z_1, z_2, ...", got=word)
        number, letter = match.groups()
        factors.append(ord(letter) - ord("i") if letter else int(number) + 17)
        word = word[match.end() :]
    return factors


def _scan_sizes(scanner: Scanner) -> list[int]:
    sizes: list[int] = []
    if not scanner.accept("{"):
        return sizes
    while True:
        expected = factor_symbol(len(sizes))
        if _scan_symbols(scanner) != [len(sizes)]:
            raise scanner.fail(f"the size of factor {expected}; sizes are listed in the order i, j, k, ...")
        scanner.expect("=")
        sizes.append(scanner.integer(f"the size of factor {expected}"))
        if not scanner.accept(","):
            break
    scanner.expect("}")
    return sizes


def _scan_set(scanner: Scanner, name: str, factor_count: int) -> list[int]:
    if not scanner.accept(name):
        return []
    scanner.expect("=")
    if not scanner.accept("{"):
        return []
    symbols = scanner.comma_list(lambda: _scan_symbols(scanner), "}")
    factors = [factors[0] for factors in symbols if factors]
    for factor in factors:
        if factor >= factor_count:
            raise scanner.fail("factors that have a size", got=factor_symbol(factor))
    if factors != sorted(set(factors)):
        raise scanner.fail(f"the factors of {name} in order, each once")
    return factors
