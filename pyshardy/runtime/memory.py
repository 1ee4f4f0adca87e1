"""How much memory a program takes when it runs, and how much there is.

Virtual devices live in one process, so a program needs what all of them need together. A program that does not fit
takes the whole machine with it: it is better not to start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyshardy.costing.peak import peak_bytes as peak_of_program
from pyshardy.errors import UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.nodes import Op
from pyshardy.report.summary import format_bytes

_MEMORY_INFO = Path("/proc/meminfo")
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def peak_bytes(root: Op) -> int:
    """The most that one run of a program holds at a time: inputs, outputs, and what is still needed in between.

    An estimate, of one device, as `pyshardy.cost` makes it.

    Args:
        root: The program of one device.
    """
    return peak_of_program(cost_program(root, {}))


def tensors_bytes(tensors: Sequence[InterfaceTensor]) -> int:
    """The bytes of whole inputs or outputs."""
    return sum(known_bytes(tensor.shape, tensor.element) for tensor in tensors)


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
