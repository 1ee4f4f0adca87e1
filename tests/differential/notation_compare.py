"""Comparing what pyshardy reads and prints with what MLIR's parser and verifier accept and print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from pyshardy.core.axis_checks import check_axes_in_mesh
from pyshardy.core.notation import (
    format_sharding_list,
    parse_axis,
    parse_dim,
    parse_mesh,
    parse_sharding,
    parse_sharding_list,
)
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding, mesh_of
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidShardingError, NotationError
from pyshardy.ir.context import make_context
from support.reference import jaxlib_version

from .notation_cases import MESHES, Case

Reader = Callable[[Case], "Outcome"]

_TITLES = {"mesh": "#sdy.mesh", "sharding": "#sdy.sharding", "shardings": "#sdy.sharding_per_value"}
_MESH_OPS = "".join(f"sdy.mesh {format_symbol(name)} = {mesh}\n" for name, mesh in MESHES.items())
_SUB_AXIS = re.compile(r":\((-?\d+)\)(-?\d+)")


@dataclass(frozen=True)
class Outcome:
    """What became of a text.

    Attributes:
        printed: The value as printed, or None if it was refused.
        message: Why it was refused.
    """

    printed: str | None
    message: str = ""

    def __str__(self) -> str:
        return f"refused: {self.message}" if self.printed is None else f"accepted: {self.printed}"


def ours(case: Case) -> Outcome:
    """Reading the text with pyshardy, and checking it against the meshes and the rank."""
    try:
        if case.kind == "mesh":
            return Outcome(str(parse_mesh(case.text)))
        if case.kind == "axis":
            axis = parse_axis(case.text)
            check_axes_in_mesh([axis], MESHES["m"], "checking an axis")
            return Outcome(str(axis))
        if case.kind == "dim":
            dim = parse_dim(case.text)
            _check(TensorSharding("m", [dim]), 1)
            return Outcome(str(dim))
        if case.kind == "sharding":
            sharding = parse_sharding(case.text)
            _check(sharding, case.rank)
            return Outcome(str(sharding))
        shardings = parse_sharding_list(case.text)
        for sharding in shardings:
            _check(sharding, case.rank)
        return Outcome(format_sharding_list(shardings))
    except (NotationError, InvalidShardingError) as error:
        return Outcome(None, str(error))


def _check(sharding: TensorSharding, rank: int) -> None:
    check_sharding(sharding, mesh_of(sharding, MESHES), rank)


def reference(case: Case) -> Outcome:
    """Reading the text with MLIR, and verifying a function whose arguments have these shardings.

    Needs a context to be entered.
    """
    try:
        printed, shardings = _parsed(case)
        for sharding in shardings:
            _refuse_overflow(sharding)
            argument = f"tensor<{'8x' * case.rank}f32> {{sdy.sharding = {sharding}}}"
            ir.Module.parse(f"{_MESH_OPS}func.func private @f({argument})")
        return Outcome(printed)
    except ir.MLIRError as error:
        diagnostics = error.error_diagnostics
        return Outcome(None, "; ".join(str(diagnostic.message) for diagnostic in diagnostics) or str(error))
    except _RefusedError as error:
        return Outcome(None, str(error))


class _RefusedError(Exception):
    """A refusal that is not MLIR's own."""


def _parsed(case: Case) -> tuple[str, list[str]]:
    """The value as MLIR prints it, and the shardings to verify it in."""
    title = _TITLES.get(case.kind)
    if title is not None:
        attr = ir.Attribute.parse(title + case.text)
        text = str(attr)
        if case.kind == "shardings":
            return text.removeprefix(title), [str(entry) for entry in sdy.TensorShardingPerValueAttr(attr).shardings]
        return text.removeprefix(title), [text] if case.kind == "sharding" else []
    # MLIR ignores what follows inside `#sdy<...>`, so the text is read inside of a sharding, too.
    name, outside = {"axis": ("axis_ref", "{{{}}}"), "dim": ("dimension_sharding", "{}")}[case.kind]
    printed = str(ir.Attribute.parse(f"#sdy<{name} {case.text}\n>")).removeprefix(f"#sdy<{name}")[:-1]
    inside = str(ir.Attribute.parse(f"#sdy.sharding<@m, [{outside.format(case.text + chr(10))}]>"))
    if inside != f"#sdy.sharding<@m, [{outside.format(printed)}]>":
        raise _RefusedError("text that is left over")
    return printed, [inside]


def _refuse_overflow(printed: str) -> None:
    """Refuse sub-axes whose end does not fit into 64 bits: MLIR's verifier divides by what is left of it, maybe 0."""
    if any(int(pre_size) * int(size) >= 2**63 for pre_size, size in _SUB_AXIS.findall(printed)):
        raise _RefusedError("a sub-axis that ends beyond 64 bits")


@dataclass(frozen=True)
class KnownDifference:
    """A kind of text that is read differently on purpose.

    Attributes:
        reason: Why it is.
        applies: Whether a text is of this kind, given what became of it here and in the reference.
    """

    reason: str
    applies: Callable[[Case, Outcome, Outcome], bool]


def _squeezed(text: str) -> str:
    return re.sub(r"//[^\r\n]*|\s", "", text)


KNOWN_DIFFERENCES = {
    "beginning": KnownDifference(
        "`#sdy.mesh<...>` is one token to MLIR; pyshardy reads `<...>` with or without it, and white space around it",
        lambda case, given, expected: (
            given.printed is not None and case.kind in _TITLES and not case.text.startswith("<")
        ),
    ),
    "end": KnownDifference(
        "MLIR overlooks an open string and a NUL character behind the value",
        lambda case, given, expected: (
            expected.printed is not None
            and re.search(r"""got ('"'|'\\x00'), needed the end of the text""", given.message) is not None
        ),
    ),
    "comment": KnownDifference(
        "MLIR matches brackets and quotes before it knows what a comment is",
        lambda case, given, expected: (
            given.printed is not None and re.search(r'//[^\r\n]*[][<>(){}"]', case.text) is not None
        ),
    ),
    "long form of an inlined mesh": KnownDifference(
        "MLIR also reads `mesh#sdy.mesh<...>`, which nothing prints",
        lambda case, given, expected: given.printed is None and "mesh#sdy.mesh" in _squeezed(case.text),
    ),
    "reduction kinds": KnownDifference(
        "before jaxlib 0.12 there are no reduction kinds, and `unreduced` needs an equals sign",
        lambda case, given, expected: (
            jaxlib_version() < (0, 12)
            and expected.printed is None
            and re.search(r"unreduced(=(sum|max|min))?\{", _squeezed(case.text)) is not None
        ),
    ),
}
"""All differences there are, by name."""


def compare(case: Case, read: Reader = ours) -> tuple[str | None, str | None]:
    """The difference on one text, if there is any, and the name of the known difference it belongs to, if any."""
    given, expected = read(case), reference(case)
    if given.printed == expected.printed:
        return None, None
    text = f"{case}\n  expected {expected}\n  given    {given}"
    known = [name for name, entry in KNOWN_DIFFERENCES.items() if entry.applies(case, given, expected)]
    return text, known[0] if known else None


def differences(cases: Iterable[Case], read: Reader = ours) -> list[str]:
    """What is read or printed differently, but for the known differences; empty if nothing is."""
    with make_context(), ir.Location.unknown():
        found = [compare(case, read) for case in cases]
    return [text for text, known in found if text is not None and known is None]
