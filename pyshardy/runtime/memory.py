"""How much memory a program takes when it runs, and how much there is.

Virtual devices live in one process, so a program needs what all of them need together. A program that does not fit
takes the whole machine with it: it is better not to start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyshardy.errors import UsageError
from pyshardy.frontend.interface import Port
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import functions, is_declaration, main_function
from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.report.summary import format_bytes
from pyshardy.rules.properties import ELEMENTWISE

_RENAMING = frozenset(
    ("stablehlo.reshape", "stablehlo.optimization_barrier", "sdy.sharding_constraint", "sdy.reshard", "stablehlo.tuple")
)
"""Ops whose results take the memory of their operands."""
_MADE_ON_THE_WAY = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.iota", "sdy.constant"))
"""Ops whose results whoever uses them makes himself; constants are counted apart."""
_KEEPING = frozenset(("stablehlo.while",))
"""Ops that hold results while their regions make new ones; others give what their regions have made."""
_MEMORY_INFO = Path("/proc/meminfo")
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def peak_bytes(root: Op) -> int:
    """The most that one run of a program holds at a time: inputs, outputs, and what is still needed in between.

    An estimate. XLA fuses elementwise ops, so what one of them hands to another one alone is not counted, nor are
    broadcast numbers; it may also reorder ops, and keep copies for layouts and collectives.

    Args:
        root: The program of one device.
    """
    main = main_function(root)
    if is_declaration(main):
        return 0
    return _Peaks(root).of_function(main) + sum(_bytes(arg) for arg in main.region.blocks[0].args)


class _Peaks:
    """The most that every function holds at a time, without what its callers hold."""

    def __init__(self, root: Op) -> None:
        self._functions = {function.attrs["sym_name"]: function for function in functions(root)}
        self._found: dict[Op, int] = {}

    def of_function(self, function: Op) -> int:
        if function not in self._found:
            self._found[function] = 0  # what calls itself does not end here
            if not is_declaration(function):
                self._found[function] = max(self._of_block(block)[0] for block in function.region.blocks)
        return self._found[function]

    def _of_block(self, block: Block) -> tuple[int, set[Value]]:
        """The most that a block holds of what it makes, and the values from around it that it uses."""
        last: dict[Value, Op] = {}
        inside: dict[Op, int] = {}
        source: dict[Value, Value] = {}
        for op in block:
            inside[op], around = self._inside(op)
            for value in (*op.operands, *around):
                last[source.get(value, value)] = op
            if op.name in _RENAMING:
                for result, operand in zip(op.results, op.operands):
                    source[result] = source.get(operand, operand)
        return self._walk(block, last, inside), {value for value in last if value.block is not block}

    def _walk(self, block: Block, last: Mapping[Value, Op], inside: Mapping[Op, int]) -> int:
        ends: dict[Op, list[Value]] = {}
        for value, op in last.items():
            ends.setdefault(op, []).append(value)
        live = most = 0
        for op in block:
            held = sum(_held(result) for result in op.results)
            most = max(most, live + (held + inside[op] if op.name in _KEEPING else max(held, inside[op])))
            live += sum(_held(result) for result in op.results if result in last)
            for value in ends.get(op, ()):
                if (maker := value.defining_op) is not None and maker.block is block:
                    live -= _held(value)
        return most

    def _inside(self, op: Op) -> tuple[int, set[Value]]:
        """The most that an op holds while it runs, and the values that its regions use from around it."""
        if op.name == "func.call":
            function = self._functions.get(op.attrs["callee"])
            return (0 if function is None else self.of_function(function)), set()
        most = 0
        around: set[Value] = set()
        for region in op.regions:
            for block in region.blocks:
                peak, used = self._of_block(block)
                most = max(most, peak)
                around |= used
        return most, around


def _held(value: Value) -> int:
    """The bytes that a result of an op takes for as long as it is needed."""
    op = value.defining_op
    assert op is not None
    if op.name in _RENAMING or (op.name in _MADE_ON_THE_WAY and not _is_table(op)):
        return 0
    user = value.only_user()
    if op.name in ELEMENTWISE and user is not None and user.name in ELEMENTWISE and user.block is op.block:
        return 0
    return _bytes(value)


def _is_table(op: Op) -> bool:
    """Whether an op is a constant of different numbers, which has memory of its own."""
    value = op.attrs.get("value")
    return value is not None and not getattr(value, "is_splat", False)


def _bytes(value: Value) -> int:
    type = value.type
    return known_bytes(type.shape, type.element) if type.is_ranked_tensor else 0


def ports_bytes(ports: Sequence[Port]) -> int:
    """The bytes of whole inputs or outputs."""
    return sum(known_bytes(port.shape, port.element) for port in ports)


def placed_bytes(arrays: Sequence[Any]) -> int:
    """The bytes that arrays take which lie on several devices already."""
    shards = [getattr(array, "addressable_shards", ()) for array in arrays]
    return sum(shard.data.nbytes for found in shards if len(found) > 1 for shard in found)


def check_memory(what: str, needed: int) -> None:
    """Refuse what needs more memory than there is.

    Args:
        what: What is to be done, in the -ing form.
        needed: The estimate in bytes.

    Raises:
        UsageError: There is less; names both.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise UsageError(
            what,
            got=f"a program that takes about {format_bytes(needed)} of memory",
            needed=f"one that fits in the {format_bytes(available)} that are free on this machine",
            hint="a smaller program, or --force (force=True in Python) to run it all the same",
        )


def available_bytes() -> int | None:
    """The memory that this process may still take: what is free, or less where it is limited; None if not known."""
    found = [size for size in (_free_bytes(), *_left_in_groups()) if size is not None]
    return max(0, min(found)) if found else None


def _free_bytes() -> int | None:
    try:
        for line in _MEMORY_INFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _left_in_groups() -> Iterator[int]:
    """What the control groups of this process leave, with what they hold of files counted as free."""
    for folder, limit, usage in _group_files():
        try:
            allowed = int((folder / limit).read_text())
            used = int((folder / usage).read_text())
            counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such group here, or "max": no limit
            continue
        files = counts.get("total_inactive_file", counts.get("inactive_file", "0"))
        yield allowed - used + int(files)


def _group_files() -> Iterator[tuple[Path, str, str]]:
    """The folders of the memory groups of this process and those around them, with the names of two files."""
    try:
        lines = [line.split(":", 2) for line in _CGROUP.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if not controllers:
            top, limit, usage = _CGROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, usage = _CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            yield folder, limit, usage
            if folder == top:
                break
