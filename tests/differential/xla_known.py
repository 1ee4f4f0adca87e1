"""The known differences between our view of a program and XLA's dumps: the rows of docs/differences.md, by name.

A name is given only if what it stands for explains all of a difference: the programs agree once it is taken out of the
program that both are given, or nothing but what it names differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

ONLY_RESULT = "a sharding written on an op, where XLA replaces the op of the only result"
ORDER = "the order of ops that do not depend on each other"
RETURNED_RESHAPE = "a broadcast to the same shape of a reshape that is returned too"
COMPLEX = "exponentials of complex numbers"

_OP_SHARDING = re.compile(
    r" (\{sdy\.sharding = #sdy\.sharding_per_value<\[.*?\]>\}|sdy\.sharding = #sdy\.sharding_per_value<\[.*?\]>,)(?= |$)"
)
_SAME_SHAPE = re.compile(r"^ *(%\w+) = stablehlo\.broadcast_in_dim (%\w+), .*: \((tensor<[^>]*>+)\) -> \3$", re.M)
_EXPONENTIAL = re.compile(r"stablehlo\.(exponential|exponential_minus_one|logistic)\b.*complex<")


def known_difference(
    text: str, ours: Sequence[str], theirs: Sequence[str], is_equal: Callable[[str], bool]
) -> str | None:
    """The name of what explains a difference; None if nothing does.

    Args:
        text: The program.
        ours: Our module in normal form.
        theirs: XLA's.
        is_equal: Whether both agree on another program.
    """
    if ours != theirs and _unordered(ours) == _unordered(theirs):
        return ORDER
    if _EXPONENTIAL.search(text) and _interfaces(ours) == _interfaces(theirs):
        return COMPLEX
    if _count_results(text) == 1 and (other := without_op_shardings(text)) != text and is_equal(other):
        return ONLY_RESULT
    if (other := _without_broadcasts_to_the_same_shape(text)) != text and is_equal(other):
        return RETURNED_RESHAPE
    return None


def without_op_shardings(text: str) -> str:
    """A program without the shardings that stand on ops; those of inputs, outputs and constraints stay."""
    return _OP_SHARDING.sub("", text)


def _without_broadcasts_to_the_same_shape(text: str) -> str:
    while found := _SAME_SHAPE.search(text):
        rest = text[: found.start()] + text[found.end() + 1 :]
        text = re.sub(rf"{found[1]}\b", found[2], rest)
    return text


def _unordered(lines: Sequence[str]) -> Counter[str]:
    """The lines, whatever the numbers of values."""
    return Counter(re.sub(r"%(\d+|\?)", "%", line) for line in lines)


def _interfaces(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not line.startswith(" ")]


def _count_results(text: str) -> int:
    main = text[text.index("@main") :]
    returned = re.search(r"^ *(?:func\.)?return (.*?) :", main, re.M)
    return len(returned[1].split(",")) if returned else 0
