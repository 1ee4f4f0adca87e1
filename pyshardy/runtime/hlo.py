"""Reads the collectives of a compiled program from the text of its HLO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from pyshardy.ir.dtypes import element_of_hlo, tensor_bytes
from pyshardy.report.traffic import KindTotal
from pyshardy.reshard.collectives import CollectiveKind, sent_by_device

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) (?:\([^\n]*\) -> [^\n]*)?\{$")
_INSTRUCTION = re.compile(r"^  (?:ROOT )?%[\w.-]+ = (?P<type>\(.*?\)|\S+) (?P<name>[a-z][\w-]*)\((?P<rest>.*)$")
_CALLED = re.compile(r"\b(calls|to_apply|body|condition|branch_computations|true_computation|false_computation)=")
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_NAME = re.compile(r"%([\w.-]+)")
_SHAPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_LISTED = r"\{(?P<listed>[^=]*?)\}(?=[,\s]|$)"
_MESH = r"mesh\[(?P<mesh>[^\]]*)\](?:, device_ids=\(.*?\))? ?\{(?P<axes>[^}]*)\}"
_GROUPS = re.compile(rf"replica_groups=(?:{_LISTED}|\[\d+,(?P<size>\d+)\]<=|{_MESH})")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_KINDS = {kind.value.replace("_", "-"): kind for kind in CollectiveKind if kind is not CollectiveKind.ALL_SLICE}


@dataclass(frozen=True, slots=True)
class _Found:
    kind: CollectiveKind
    sent_bytes_per_device: int
    times: int = 1
    is_exact: bool = True

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
    found = [row for row in _reached(_computations(text)) if row.times]
    names = sorted({row.kind.value for row in found})
    return tuple(_total(name, [row for row in found if row.kind.value == name]) for name in names)


def _total(name: str, rows: list[_Found]) -> KindTotal:
    count, sent = sum(row.times for row in rows), _cost(rows)
    return KindTotal(name, count, sent, not all(row.is_exact for row in rows))


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


def _reached(computations: dict[str, list[str]], name: str = "ENTRY") -> Iterator[_Found]:
    for line in computations.get(name, ()):
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        kind = _KINDS.get(match["name"].removesuffix("-start"))
        if kind is not None:
            is_start = match["name"].endswith("-start")
            sent = _sent(kind, _result_type(match["type"]) if is_start else match["type"], match["rest"])
            if sent is not None:
                yield _Found(kind, sent)
            continue
        yield from _inside(computations, match["name"], match["rest"])


def _inside(computations: dict[str, list[str]], name: str, rest: str) -> Iterator[_Found]:
    """The collectives in the computations that an instruction calls.

    Those of a loop count once per round. Of a conditional, only the branch that sends most counts.
    """
    called = [(role, list(_reached(computations, computation))) for role, computation in _called(rest)]
    if name == "conditional":
        yield from max((found for _, found in called), key=_cost, default=[])
        return
    trip_count = _TRIP_COUNT.search(rest)
    for role, found in called:
        if name != "while":
            yield from found
            continue
        rounds = (int(trip_count[1]) if trip_count else 0) + (role == "condition")
        yield from (row.in_loop(rounds if trip_count else 1, trip_count is not None) for row in found)


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
