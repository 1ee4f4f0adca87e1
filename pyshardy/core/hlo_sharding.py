"""Shardings as HLO writes them: GSPMD's tilings, and XLA's newer notation with named axes.

A tiling cuts a tensor into a grid of tiles and lists the device of every tile. Trailing dimensions of the grid are
*subgroups*: devices that hold the same tile, a partial sum of it, or unrelated data (manual). A tiling has no axes;
`core/tilings.py` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.mesh import MOST_DEVICES, Mesh
from pyshardy.core.scanner import Scanner
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding

_DOING = "reading an HLO sharding"
_INDEX = re.compile(r"/\*index=\d+\*/")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")
_SUBGROUP = re.compile(r"replicated|manual|unreduced")
_METADATA = re.compile(r"metadata=")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_REDUCTION = re.compile(r'sdy::reduction_op" op_name="(SUM|MAX|MIN)"')
_SINGLE = re.compile(r"(?:single_device|maximal_mesh)\[device_id=")
_GROUP = re.compile(r"shard_(?:as|like) (\d{1,18})")


class HloKind(Enum):
    """The forms of a sharding."""

    REPLICATED = "replicated"
    MANUAL = "manual"
    UNKNOWN = "unknown"
    ONE_DEVICE = "on one device"
    TILED = "tiled"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class HloSharding:
    """A sharding of one tensor.

    Attributes:
        kind: The form; it decides which of the other attributes count.
        mesh: The mesh, in the form with named axes.
        device: The device, if the tensor is on one device.
        tiles: The number of tiles along every dimension.
        subgroups: Kind and size of every trailing dimension of the grid of devices.
        devices: The devices of the grid, row by row.
        named: In the form with named axes: the sharding of the dimensions, on `mesh`.
        manual: The manual axes in that form.
        group: The number of its sharding group, whose members are sharded alike, if it is in one.
        reduction: How partial values combine.
    """

    kind: HloKind
    mesh: Mesh | None = None
    device: int = 0
    tiles: tuple[int, ...] = ()
    subgroups: tuple[tuple[str, int], ...] = ()
    devices: tuple[int, ...] = ()
    named: TensorSharding | None = None
    manual: Axes = ()
    group: int | None = None
    reduction: ReductionKind = ReductionKind.SUM

    def subgroup_size(self, kind: str) -> int:
        """Number of devices in the subgroups of a kind."""
        return prod(size for name, size in self.subgroups if name == kind)


def parse_hlo_shardings(text: str) -> tuple[HloSharding, ...]:
    """Read the shardings of one value, or of all values of a tuple.

    Raises:
        NotationError: Text that is not valid, with the place.

    >>> parse_hlo_shardings("{devices=[2,2]<=[2,2]T(1,0)}")[0].devices
    (0, 2, 1, 3)
    >>> [sharding.kind.value for sharding in parse_hlo_shardings("{{replicated}, {maximal device=1}}")]
    ['replicated', 'on one device']
    """
    scanner = Scanner(_INDEX.sub("", text), _DOING)
    scanner.expect("{")
    if scanner.stands_at("{", "}"):
        found = scanner.comma_list(lambda: _scan_braced(scanner), "}")
        return scanner.finish(tuple(found))
    return scanner.finish((_scan_body(scanner),))


def is_named(text: str) -> bool:
    """Whether this text uses named axes, or is a list with an entry that does.

    >>> is_named("{mesh['x'=2], replicated}"), is_named("{devices=[2]<=[2]}")
    (True, False)
    """
    return "mesh[" in text or "_device[" in text


def _scan_braced(scanner: Scanner) -> HloSharding:
    scanner.expect("{")
    return _scan_body(scanner)


def _scan_body(scanner: Scanner) -> HloSharding:
    """Read what stands in braces, and the closing brace."""
    found = _scan_form(scanner)
    start = scanner.position
    while not scanner.accept("}"):
        group = scanner.match(_GROUP)
        if group is not None:
            found = replace(found, group=int(group[1]))
        elif scanner.match(_METADATA) is not None:
            start = scanner.position
            _skip_braces(scanner)
            reduction = _REDUCTION.search(scanner.text[start : scanner.position])
            if reduction is not None:
                found = replace(found, reduction=ReductionKind[reduction[1]])
        else:
            raise scanner.fail("'}'")
    return found


def _skip_braces(scanner: Scanner) -> None:
    scanner.expect("{")
    depth = 1
    while depth:
        if scanner.match(_STRING) is not None:
            continue
        if scanner.stands_at(""):
            raise scanner.fail("'}'")
        depth += {"{": 1, "}": -1}.get(scanner.text[scanner.position], 0)
        scanner.position += 1
    scanner.skip_space()


def _scan_form(scanner: Scanner) -> HloSharding:
    for word in ("replicated", "manual", "unknown"):
        if scanner.accept_word(word):
            return HloSharding(HloKind(word))
    if scanner.accept_word("unreduced"):
        raise scanner.fail("a sharding that says on which devices it is unreduced", got="unreduced alone")
    if scanner.accept_word("maximal"):
        scanner.expect("device")
        scanner.expect("=")
        return HloSharding(HloKind.ONE_DEVICE, device=scanner.integer("a device id"))
    if scanner.match(_SINGLE):
        device = scanner.integer("a device id")
        scanner.expect("]")
        return HloSharding(HloKind.ONE_DEVICE, device=device)
    if scanner.accept("devices="):
        return _scan_tiling(scanner)
    if scanner.accept_word("mesh"):
        return _scan_named(scanner)
    raise scanner.fail("'replicated', 'manual', 'unknown', 'maximal', 'devices=' or 'mesh['")


def _scan_tiling(scanner: Scanner) -> HloSharding:
    start = scanner.position
    scanner.expect("[")
    grid = scanner.comma_list(lambda: scanner.integer("a number of tiles"), "]")
    if any(size < 1 for size in grid):
        scanner.position = start
        raise scanner.fail("sizes of at least 1", got=str(grid))
    devices = _scan_devices(scanner)
    kinds: list[str] = []
    if scanner.accept_word("last_tile_dim_replicate"):
        kinds = ["replicated"]
    elif scanner.accept_word("last_tile_dims"):
        scanner.expect("=")
        scanner.expect("{")
        kinds = scanner.comma_list(lambda: _scan_subgroup(scanner), "}")
    if len(kinds) > len(grid) or prod(grid) != len(devices) or len(set(devices)) != len(devices):
        got = f"the grid {grid} with {len(kinds)} subgroups over {len(devices)} devices"
        scanner.position = start
        raise scanner.fail("a grid of as many tiles as there are devices, each once", got=got)
    rank = len(grid) - len(kinds)
    return HloSharding(
        HloKind.TILED, tiles=tuple(grid[:rank]), subgroups=tuple(zip(kinds, grid[rank:])), devices=devices
    )


def _scan_subgroup(scanner: Scanner) -> str:
    found = scanner.match(_SUBGROUP)
    if found is None:
        raise scanner.fail("'replicated', 'manual' or 'unreduced'")
    return found.group()


def _scan_devices(scanner: Scanner) -> tuple[int, ...]:
    """Read devices: a list, or `<=` and the reshaped and transposed natural order."""
    if scanner.accept("<="):
        return _scan_iota(scanner)
    devices = [scanner.integer("a device id")]
    while scanner.accept(","):
        devices.append(scanner.integer("a device id"))
    return tuple(devices)


def _scan_iota(scanner: Scanner) -> tuple[int, ...]:
    start = scanner.position
    scanner.expect("[")
    sizes = scanner.comma_list(lambda: scanner.integer("a size"), "]")
    order = list(range(len(sizes)))
    if scanner.accept("T("):
        order = scanner.comma_list(lambda: scanner.integer("a dimension"), ")")
    if sorted(order) != list(range(len(sizes))) or prod(sizes) < 1:
        scanner.position = start
        raise scanner.fail("sizes of at least 1 and an order of their dimensions", got=f"{sizes} in the order {order}")
    if prod(sizes) > MOST_DEVICES:
        scanner.position = start
        raise scanner.fail(f"at most {MOST_DEVICES} devices", got=f"{prod(sizes)} devices")
    return transposed_iota(tuple(sizes), tuple(order))


def transposed_iota(sizes: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers from 0 upwards in an array of these sizes, row by row after transposing it.

    >>> transposed_iota((2, 3), (1, 0))
    (0, 3, 1, 4, 2, 5)
    """
    found = [0]
    for dim in order:
        stride = prod(sizes[dim + 1 :])
        found = [base + index * stride for base in found for index in range(sizes[dim])]
    return tuple(found)


def _scan_named(scanner: Scanner) -> HloSharding:
    start = scanner.position
    scanner.expect("[")
    sizes = scanner.comma_list(lambda: _scan_mesh_axis(scanner), "]")
    device_ids: tuple[int, ...] | None = None
    scanner.accept(",")
    if scanner.accept("device_ids=("):
        device_ids = _scan_iota(scanner) if scanner.stands_at("[") else _scan_devices(scanner)
        scanner.expect(")")
        scanner.expect(",")
    mesh = scanner.build(start, lambda: Mesh(sizes, device_ids))
    for word in ("replicated", "manual"):
        if not scanner.stands_at(f"{word}=") and scanner.accept_word(word):
            return HloSharding(HloKind(word), mesh=mesh)
    scanner.expect("[")
    dims = scanner.comma_list(lambda: _scan_dim(scanner), "]")
    axes = _scan_axes_by_role(scanner)
    return scanner.build(
        start,
        lambda: HloSharding(
            HloKind.NAMED,
            mesh=mesh,
            named=TensorSharding(mesh, dims, axes.get("replicated", ()), axes.get("unreduced", ())),
            manual=axes.get("manual", ()),
        ),
    )


def _scan_axes_by_role(scanner: Scanner) -> dict[str, Axes]:
    axes: dict[str, Axes] = {}
    while scanner.accept(","):
        role = scanner.match(_SUBGROUP)
        if role is None or role.group() in axes:
            raise scanner.fail("'replicated', 'unreduced' or 'manual', each at most once")
        scanner.expect("=")
        scanner.expect("{")
        axes[role.group()] = tuple(scanner.comma_list(lambda: _scan_axis(scanner), "}"))
    return axes


def _scan_name(scanner: Scanner) -> str:
    found = scanner.match(_QUOTED)
    if found is None:
        raise scanner.fail("an axis name in single quotes")
    return re.sub(r"\\(.)", r"\1", found[1])


def _scan_mesh_axis(scanner: Scanner) -> tuple[str, int]:
    name = _scan_name(scanner)
    scanner.expect("=")
    return name, scanner.integer("the size of the axis")


def _scan_axis(scanner: Scanner) -> AxisRef:
    start = scanner.position
    name = _scan_name(scanner)
    if not scanner.accept(":("):
        return AxisRef(name)
    pre_size = scanner.integer("the pre-size of the sub-axis")
    scanner.expect(")")
    size = scanner.integer("the size of the sub-axis")
    return scanner.build(start, lambda: AxisRef(name, pre_size, size))


def _scan_dim(scanner: Scanner) -> DimSharding:
    start = scanner.position
    scanner.expect("{")
    axes: list[AxisRef] = []
    is_open: list[bool] = []
    scan: Callable[[], None] = lambda: (  # noqa: E731 (an item is an axis or the mark of an open dimension)
        is_open.append(True) if scanner.accept("?") else axes.append(_scan_axis(scanner))
    )
    scanner.comma_list(scan, "}")
    return scanner.build(start, lambda: DimSharding(axes, bool(is_open)))
