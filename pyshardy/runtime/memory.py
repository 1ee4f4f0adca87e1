"""The memory that a program needs, and the memory that is available.

Virtual devices are in one process, so a program needs the sum of their memory. A program that does not fit may bring
down the whole machine, so it is refused before it starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

from pyshardy.core.text import format_bytes
from pyshardy.costing.peak import peak_bytes
from pyshardy.errors import UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.nodes import Op

_MEMORY_INFO = Path("/proc/meminfo")
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def peak_bytes_of_program(root: Op) -> int:
    """The peak memory of one run of a program: inputs, outputs, and intermediate values, in bytes.

    It is the estimate of `pyshardy.cost` for one device.

    Args:
        root: The program of one device.
    """
    return peak_bytes(cost_program(root, {}))


def tensors_bytes(tensors: Sequence[InterfaceTensor]) -> int:
    """The bytes of global inputs or outputs."""
    return sum(known_bytes(tensor.shape, tensor.element) for tensor in tensors)


def placed_bytes(arrays: Sequence[Any]) -> int:
    """The bytes of arrays that are already on several devices."""
    shards = [getattr(array, "addressable_shards", ()) for array in arrays]
    return sum(shard.data.nbytes for found in shards if len(found) > 1 for shard in found)


def check_memory(what: str, needed: int) -> None:
    """Refuse an action that needs more memory than is available.

    Args:
        what: The action, in the -ing form.
        needed: The estimate in bytes.

    Raises:
        UsageError: Less is available. The message names both figures.
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
    """The memory that this process may still use: the free memory, or a smaller limit; None if unknown."""
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
    """The memory left in the control groups of this process; cached files count as free."""
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
    """The directories of the memory control groups of this process and their parents, with the names of two files."""
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


def devices_in_memory(devices: Sequence[Any] | None, count: int) -> int:
    """How many of the first devices are virtual devices of this process, which share its memory."""
    available = list(jax.devices() if devices is None else devices)[:count]
    return sum(device.platform == "cpu" and device.process_index == jax.process_index() for device in available)
