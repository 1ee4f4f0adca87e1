"""Parsers for meshes, axes and shardings; `str` of each value is the exact inverse.

The grammar is that of the `sdy` dialect. A leading `#sdy.mesh`,
`#sdy.sharding` or `#sdy.sharding_per_value` is accepted on input and never printed.

Source: docs/semantics/representation.md#notation
"""

from __future__ import annotations

import re
from functools import lru_cache
from sys import intern
from typing import Any

from pyshardy.core.axes import AxisRef
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.scanner import STRING, WORD, Scanner, int64
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.core.text import unquote
from pyshardy.errors import ShardyError

_SYMBOL = re.compile(rf"@(?:([A-Za-z_][\w$.]*)|{STRING.pattern})", re.ASCII)
_PLAIN_DIM = re.compile(r"\{[^{}\\/]*\}(?:p[0-9]+)?")
_PLAIN_SHARDING = re.compile(
    rf"<@([A-Za-z_][\w$.]*), \[((?:{_PLAIN_DIM.pattern}(?:, {_PLAIN_DIM.pattern})*)?)\]>", re.ASCII
)
"""A sharding in the most common form: without explicit axes, and without braces in axis names."""


def parse_mesh(text: str) -> Mesh:
    """Read a mesh; raises `NotationError` at the offending place.

    >>> parse_mesh('<["data"=4, "model"=2]>')
    Mesh([('data', 4), ('model', 2)])
    """
    scanner = Scanner(text, "reading a mesh")
    scanner.accept("#sdy.mesh")
    return scanner.finish(scan_mesh(scanner))


def parse_axis(text: str) -> AxisRef:
    """Read an axis reference.

    >>> parse_axis('"x":(2)4')
    AxisRef('x', 2, 4)
    """
    scanner = Scanner(text, "reading an axis")
    return scanner.finish(scan_axis(scanner))


def parse_dim(text: str) -> DimSharding:
    """Read a dimension sharding.

    >>> parse_dim('{"x", ?}p1')
    DimSharding({"x", ?}p1)
    """
    scanner = Scanner(text, "reading a dimension sharding")
    return scanner.finish(scan_dim(scanner))


def parse_sharding(text: str) -> TensorSharding:
    """Read a tensor sharding.

    >>> parse_sharding('<@mesh, [{"x"}, {?}], replicated={"y"}>').replicated
    (AxisRef('y'),)
    """
    scanner = Scanner(text, "reading a sharding")
    scanner.accept("#sdy.sharding")
    return scanner.finish(scan_sharding(scanner))


def parse_sharding_list(text: str) -> tuple[TensorSharding, ...]:
    """Read the shardings of several values, `<[<@mesh, [{"x"}]>, <@mesh, []>]>`.

    >>> len(parse_sharding_list('<[<@mesh, [{"x"}]>, <@mesh, []>]>'))
    2
    """
    scanner = Scanner(text, "reading a list of shardings")
    scanner.accept("#sdy.sharding_per_value")
    scanner.expect("<")
    scanner.expect("[")
    shardings = tuple(scanner.comma_list(lambda: scan_sharding(scanner), "]"))
    scanner.expect(">")
    return scanner.finish(shardings)


def format_sharding_list(shardings: tuple[TensorSharding, ...]) -> str:
    """The inverse of `parse_sharding_list`."""
    texts = {sharding: str(sharding) for sharding in dict.fromkeys(shardings)}
    return "<[" + ", ".join([texts[sharding] for sharding in shardings]) + "]>"


def scan_mesh(scanner: Scanner) -> Mesh:
    """Read a mesh at the scanner's position."""
    start = scanner.position
    scanner.expect("<")
    scanner.expect("[")
    axes = scanner.comma_list(lambda: _scan_mesh_axis(scanner), "]")
    device_ids = None
    if scanner.accept(","):
        scanner.expect("device_ids")
        scanner.expect("=")
        scanner.expect("[")
        device_ids = [scanner.integer("a device id")]
        while scanner.accept(","):
            device_ids.append(scanner.integer("a device id"))
        scanner.expect("]")
    scanner.expect(">")
    return scanner.build(start, lambda: Mesh(axes, device_ids))


def _scan_mesh_axis(scanner: Scanner) -> tuple[str, int]:
    name = scanner.string("an axis name in quotes")
    scanner.expect("=")
    return name, scanner.integer("the size of the axis")


def scan_axis(scanner: Scanner) -> AxisRef:
    """Read an axis reference at the scanner's position."""
    start = scanner.position
    name = scanner.string("an axis name in quotes")
    if not scanner.accept(":"):
        return AxisRef(name)
    scanner.expect("(")
    pre_size = scanner.integer("the pre-size of the sub-axis")
    scanner.expect(")")
    size = scanner.integer("the size of the sub-axis")
    return scanner.build(start, lambda: AxisRef(name, pre_size, size))


def scan_axes(scanner: Scanner) -> list[AxisRef]:
    """Read at least one axis reference and the closing brace."""
    axes = [scan_axis(scanner)]
    while scanner.accept(","):
        axes.append(scan_axis(scanner))
    scanner.expect("}")
    return axes


def scan_dim(scanner: Scanner) -> DimSharding:
    """Read a dimension sharding at the scanner's position."""
    start = scanner.position
    scanner.expect("{")
    axes: list[AxisRef] = []
    is_open = scanner.accept("?")
    if not is_open and not scanner.text.startswith("}", scanner.position):
        axes.append(scan_axis(scanner))
        while not is_open and scanner.accept(","):
            is_open = scanner.accept("?")
            if not is_open:
                axes.append(scan_axis(scanner))
    scanner.expect("}")
    priority = _scan_priority(scanner)
    return scanner.build(start, lambda: DimSharding(axes, is_open, priority))


@lru_cache(maxsize=4096)
def _dim_of(text: str) -> DimSharding:
    return parse_dim(text)


register_cache(_dim_of.cache_clear)


def _scan_priority(scanner: Scanner) -> int | None:
    word = WORD.match(scanner.text, scanner.position)
    if word is None:
        return None
    digits = word.group()[1:]
    if not word.group().startswith("p") or not digits.isascii() or not digits.isdigit():
        raise scanner.fail("a priority like p1", got=word.group())
    if digits.startswith("0") and digits != "0":
        raise scanner.fail("a priority without leading zeros", got=word.group())
    priority = int64(digits)
    if priority is None:
        raise scanner.fail("a 64-bit integer as priority", got=word.group())
    scanner.match(WORD)
    return priority


def scan_sharding(scanner: Scanner) -> TensorSharding:
    """Read a tensor sharding at the scanner's position."""
    start = scanner.position
    plain = _PLAIN_SHARDING.match(scanner.text, start)
    if plain:
        try:
            found = TensorSharding(intern(plain[1]), map(_dim_of, _PLAIN_DIM.findall(plain[2])))
        except ShardyError:
            pass  # reading it again below raises the error with its place
        else:
            scanner.position = plain.end()
            scanner.skip_space()
            return found
    scanner.expect("<")
    mesh = _scan_mesh_reference(scanner)
    scanner.expect(",")
    scanner.expect("[")
    dims = scanner.comma_list(lambda: scan_dim(scanner), "]")
    named: dict[str, list[AxisRef]] = {}
    reduction = ReductionKind.SUM
    while scanner.accept(","):
        if "replicated" not in named and scanner.accept_word("replicated"):
            scanner.expect("=")
            scanner.expect("{")
            named["replicated"] = scan_axes(scanner)
        elif "unreduced" not in named and scanner.accept_word("unreduced"):
            reduction = _scan_reduction(scanner)
            scanner.expect("{")
            named["unreduced"] = scan_axes(scanner)
        else:
            raise scanner.fail("'replicated' or 'unreduced', each at most once")
    scanner.expect(">")
    return scanner.build(
        start,
        lambda: TensorSharding(mesh, dims, named.get("replicated", ()), named.get("unreduced", ()), reduction),
    )


def _scan_mesh_reference(scanner: Scanner) -> str | Mesh:
    if scanner.accept_word("mesh"):
        return scan_mesh(scanner)
    symbol = scanner.match(_SYMBOL)
    if symbol is None:
        raise scanner.fail("'@' and the name of a mesh, or 'mesh<...>'")
    return symbol.group(1) or unquote(symbol.group(2))


def _scan_reduction(scanner: Scanner) -> ReductionKind:
    if not scanner.accept("="):
        return ReductionKind.SUM
    for kind in ReductionKind:
        if scanner.accept_word(kind.value):
            return kind
    return ReductionKind.SUM


def axis_to_json(axis: AxisRef | str) -> dict[str, Any]:
    """An axis, or its text, as JSON-ready data."""
    found = parse_axis(axis) if isinstance(axis, str) else axis
    return {"name": found.name, "pre_size": found.pre_size, "size": found.size}
