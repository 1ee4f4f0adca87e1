"""Reads the collectives of a compiled program from the text of its HLO."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from pyshardy.core.axes import AxisRef
from pyshardy.core.collectives import CollectiveKind, sent_by_device
from pyshardy.core.devices import Groups, axes_moved, axes_of_groups, replica_groups
from pyshardy.core.mesh import MOST_DEVICES, Mesh
from pyshardy.costing.traffic import OTHER_GROUPS, AxesTotal, KindTotal
from pyshardy.ir.dtypes import element_of_hlo, tensor_bytes
from pyshardy.runtime.hlo_loops import Computations, rounds_of

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) (?:\([^\n]*\) -> [^\n]*)?\{$")
_INSTRUCTION = re.compile(r"^  (?:ROOT )?%[\w.-]+ = (?P<type>\(.*?\)|\S+) (?P<name>[a-z][\w-]*)\((?P<rest>.*)$")
_CALLED = re.compile(r"\b(calls|to_apply|body|condition|branch_computations|true_computation|false_computation)=")
_NAME = re.compile(r"%([\w.-]+)")
_SHAPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_LISTED = r"\{(?P<listed>[^=]*?)\}(?=[,\s]|$)"
_MESH = r"mesh\[(?P<mesh>[^\]]*)\](?:, device_ids=\(.*?\))? ?\{(?P<axes>[^}]*)\}"
_GROUPS = re.compile(rf"replica_groups=(?:{_LISTED}|\[\d+,(?P<size>\d+)\]<=|{_MESH})")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_ROWS = re.compile(r"replica_groups=\{\{([\d,{}]*)\}\}")
_CHANNEL = re.compile(r"channel_id=(\d+)")
_ASYNC = "async_collective_fusion_config"
"""What XLA for TPUs writes at the parts of a collective that several fusions take turns to run."""
_ASYNC_START = 'custom_call_target="AsyncCollectiveStart"'
"""What it calls in the fusion that starts such a collective; the others may be in a loop."""
_SCATTER = "all-reduce-scatter"
"""Its name for a computation that reduces and then keeps a part. It runs as one collective, a reduce-scatter."""
_KINDS = {kind.value.replace("_", "-"): kind for kind in CollectiveKind if kind is not CollectiveKind.ALL_SLICE}


@dataclass(frozen=True, slots=True)
class _Found:
    """A collective.

    Attributes:
        kind: Its kind.
        sent_bytes_per_device: The bytes that every device sends per run.
        line: The instruction.
        times: The number of runs.
        is_exact: Whether that is known.
        is_start: Whether it starts here and ends elsewhere.
    """

    kind: CollectiveKind
    sent_bytes_per_device: int
    line: str = ""
    times: int = 1
    is_exact: bool = True
    is_start: bool = False

    def in_loop(self, rounds: int, is_exact: bool) -> _Found:
        """A computation that runs in every round of a loop."""
        return replace(self, times=self.times * rounds, is_exact=self.is_exact and is_exact)


def hlo_kinds(text: str) -> tuple[KindTotal, ...]:
    """The collectives of a compiled HLO module per kind, counted as `Traffic.kinds` does.

    XLA writes the trip count beside a loop if it is known.

    >>> hlo_kinds(\"\"\"
    ... ENTRY %main (p: f32[8]) -> f32[8] {
    ...   ROOT %r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups=[2,4]<=[8], to_apply=%add
    ... }\"\"\")
    (KindTotal(kind='all_reduce', count=1, sent_bytes_per_device=48, is_lower_bound=False),)
    """
    found = _collectives(text)
    names = sorted({row.kind.value for row in found})
    return tuple(KindTotal(name, *_total([row for row in found if row.kind.value == name])) for name in names)


def hlo_collectives(text: str, mesh: Mesh) -> tuple[AxesTotal, ...]:
    """The collectives of a compiled HLO module by kind and axes of a mesh.

    Args:
        text: The module.
        mesh: The mesh of the program, whose devices are numbered as the compiler's partitions.

    >>> hlo_collectives(\"\"\"
    ... ENTRY %main (p: f32[8]) -> f32[8] {
    ...   ROOT %r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups=[2,4]<=[8], to_apply=%add
    ... }\"\"\", Mesh([("x", 2), ("y", 4)]))
    (AxesTotal(kind='all_reduce', axes='y', count=1, sent_bytes_per_device=48, is_lower_bound=False),)
    """
    rows: dict[tuple[str, str], list[_Found]] = {}
    for row in _collectives(text):
        rows.setdefault((row.kind.value, _axes(row, mesh)), []).append(row)
    return tuple(AxesTotal(kind, axes, *_total(rows[kind, axes])) for kind, axes in sorted(rows))


def _collectives(text: str) -> list[_Found]:
    """The collectives that run; one that several fusions take turns to run counts where it starts."""
    found: dict[Hashable, _Found] = {}
    for number, row in enumerate(_reached(_computations(text))):
        channel = _CHANNEL.search(row.line) if _ASYNC in row.line else None
        key: Hashable = number if channel is None else (row.kind, channel[1])
        if key not in found or (row.is_start and not found[key].is_start):
            found[key] = row
        elif row.is_start:
            found[number] = row
    return [row for row in found.values() if row.times]


def _total(rows: list[_Found]) -> tuple[int, int, bool]:
    return sum(row.times for row in rows), _cost(rows), not all(row.is_exact for row in rows)


def _axes(row: _Found, mesh: Mesh) -> str:
    """The axes along which a collective communicates."""
    if mesh.size > MOST_DEVICES:
        return OTHER_GROUPS
    try:
        pairs = _PAIRS.search(row.line)
        axes = axes_of_groups(_groups(row.line), mesh) if pairs is None else axes_moved(_pairs(pairs[1]), mesh)
    except ValueError:  # groups that do not fit the mesh
        axes = None
    if axes is None:
        return OTHER_GROUPS
    return ", ".join(name for name in mesh.axis_names if any(axis.name == name for axis in axes))


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(source), int(target)) for source, target in re.findall(r"\{(\d+),(\d+)\}", text)]


def _groups(line: str) -> Groups:
    """The groups of devices of a collective.

    >>> _groups("replica_groups=[2,2]<=[2,2]T(1,0)"), _groups("replica_groups={{0,1},{2,3}}")
    (((0, 2), (1, 3)), ((0, 1), (2, 3)))
    >>> _groups("replica_groups=mesh['x'=2,'y'=2] {'y'}")
    ((0, 1), (2, 3))
    """
    iota = _IOTA.search(line)
    if iota is not None:
        import numpy as np

        sizes = [int(size) for size in iota[3].split(",")]
        order = [int(place) for place in iota[4].split(",")] if iota[4] else range(len(sizes))
        ids = np.arange(prod(sizes)).reshape(sizes).transpose(order).reshape(int(iota[1]), int(iota[2]))
        return tuple(tuple(row) for row in ids.tolist())
    match = _GROUPS.search(line)
    if match is not None and match["mesh"] is not None:
        mesh = Mesh([(name, int(size)) for name, size in re.findall(r"'([^']*)'=(\d+)", match["mesh"])])
        return replica_groups(tuple(_axis_refs(match["axes"])), mesh)
    listed = _ROWS.search(line)
    rows = re.findall(r"[\d,]+", listed[1].replace("},{", " ")) if listed else ()
    return tuple(tuple(map(int, row.split(","))) for row in rows)


def _axis_refs(text: str) -> Iterator[AxisRef]:
    for name, pre_size, size in re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", text):
        yield AxisRef(name, int(pre_size), int(size)) if size else AxisRef(name)


def _cost(rows: list[_Found]) -> int:
    return sum(row.times * row.sent_bytes_per_device for row in rows)


def _computations(text: str) -> dict[str, list[str]]:
    """The instructions of every computation; the entry computation is named "ENTRY"."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        match = _COMPUTATION.match(line)
        if match is not None:
            lines = found["ENTRY" if match[1] else match[2]] = []
        elif line.startswith("  "):
            lines.append(line)
    return found


def _reached(computations: Computations, name: str = "ENTRY") -> Iterator[_Found]:
    is_start = any(_ASYNC_START in line for line in computations.get(name, ()))
    for line in computations.get(name, ()):
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        kind = _KINDS.get(match["name"].removesuffix("-start"))
        if kind is not None:
            type = _result_type(match["type"]) if match["name"].endswith("-start") else match["type"]
            sent = _sent(kind, type, match["rest"])
            if sent is not None and kind is CollectiveKind.ALL_REDUCE and name.startswith(_SCATTER):
                kind, sent = CollectiveKind.REDUCE_SCATTER, sent // 2
            if sent is not None:
                yield _Found(kind, sent, match["rest"], is_start=is_start)
            continue
        yield from _inside(computations, name, match["name"], match["rest"])


def _inside(computations: Computations, caller: str, name: str, rest: str) -> Iterator[_Found]:
    """The collectives in the computations that an instruction calls.

    Those of a loop count once per round. Of a conditional, only the branch that sends most counts.
    """
    called = [(role, list(_reached(computations, computation))) for role, computation in _called(rest)]
    if name == "conditional":
        yield from max((found for _, found in called), key=_cost, default=[])
        return
    rounds = rounds_of(computations, caller, rest) if name == "while" and any(found for _, found in called) else None
    for role, found in called:
        if name != "while":
            yield from found
        elif rounds is None:
            yield from (row.in_loop(1, False) for row in found)
        else:
            yield from (row.in_loop(rounds + (role == "condition"), True) for row in found)


def _result_type(type: str) -> str:
    """The results in the type of an op that starts a collective: its second part; operands come first, then the rest.

    >>> _result_type("(f32[8], f32[64])"), _result_type("((f32[8]{0}, s8[2]), (f32[64]{0}, s8[16]))")
    ('f32[64]', 'f32[64]{0}, s8[16]')
    >>> _result_type("((bf16[2,4]{1,0}), bf16[2,4]{1,0})"), _result_type("f32[8]{0:T(256)}")
    ('bf16[2,4]{1,0}', 'f32[8]{0:T(256)}')
    """
    if not type.startswith("("):
        return type
    parts, depth = [""], 0
    for character in type[1:-1]:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts[min(1, len(parts) - 1)].strip().removeprefix("(").removesuffix(")")


def _called(rest: str) -> Iterator[tuple[str, str]]:
    """The computations that an instruction calls, each with its role."""
    for match in _CALLED.finditer(rest):
        part = rest[match.end() :]
        listed = part[1 : part.index("}")] if part.startswith("{") else part.partition(",")[0]
        yield from ((match[1], name) for name in _NAME.findall(listed))


def _sent(kind: CollectiveKind, type: str, rest: str) -> int | None:
    """The bytes that a device sends; None for a permute in which no device sends."""
    held = sum(map(_bytes, _SHAPE.finditer(type)))
    if kind is CollectiveKind.COLLECTIVE_PERMUTE:
        pairs = _PAIRS.search(rest)
        listed = re.findall(r"\{(\d+),(\d+)\}", pairs[1] if pairs else "")
        return held if any(source != target for source, target in listed) else None
    size = _group_size(rest)
    if size == 1:
        return None
    before = held // size if kind is CollectiveKind.ALL_GATHER else held
    return sent_by_device(kind, before, held, size)


def _bytes(match: re.Match[str]) -> int:
    name, sizes = match[1], tuple(int(size) for size in match[2].split(",") if size)
    return tensor_bytes(sizes, element_of_hlo(name))


def _group_size(rest: str) -> int:
    match = _GROUPS.search(rest)
    if match is None:
        return 1
    if match["size"]:
        return int(match["size"])
    if match["mesh"] is not None:
        return prod(_axis_sizes(match["mesh"], match["axes"]))
    return max((group.count(",") + 1 for group in re.findall(r"\{?([\d,]+)\}?", match["listed"] or "")), default=1)


def _axis_sizes(mesh: str, axes: str) -> Iterable[int]:
    sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", mesh)}
    for name, part in re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", axes):
        yield int(part) if part else sizes[name]
