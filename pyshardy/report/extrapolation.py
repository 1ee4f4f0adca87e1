"""Figures of a program with many layers, from those of compiled versions with few.

Every size is taken to follow a line in the number of layers, by least squares. Collectives do; the memory of temporary
values does so less exactly, as a compiler orders the kernels of every version anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pyshardy.costing.traffic import AxesTotal, KindTotal

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ShortenedProgram:
    """What a compiler made of a version with a few layers.

    Attributes:
        layers: The number of layers of each group.
        memory: The bytes of a device by kind.
        kinds: The collectives by kind.
        rows: The collectives by kind and axes.
    """

    layers: tuple[int, ...]
    memory: Mapping[str, int]
    kinds: tuple[KindTotal, ...]
    rows: tuple[AxesTotal, ...]


def whole_memory(versions: Sequence[ShortenedProgram], layers: Sequence[int]) -> dict[str, int]:
    """The memory of the whole program by kind.

    Args:
        versions: Versions with a few layers; at least one more than groups.
        layers: The number of layers of each group of the whole program.

    >>> versions = [ShortenedProgram((count,), {"temp": 100 + 100 * count}, (), ()) for count in (2, 3, 5)]
    >>> whole_memory(versions, [16])
    {'temp': 1700}
    """
    return _whole(versions, layers, lambda version: dict(version.memory))


def memory_without_one(versions: Sequence[ShortenedProgram], layers: Sequence[int]) -> list[dict[str, int]]:
    """The memory of the whole program by kind, without each of the versions; none if all are needed.

    >>> known = ((2, 300), (3, 410), (5, 600))
    >>> versions = [ShortenedProgram((count,), {"temp": temp}, (), ()) for count, temp in known]
    >>> memory_without_one(versions, [7])
    [{'temp': 790}, {'temp': 800}, {'temp': 850}]
    """
    if len(versions) < len(layers) + 2:
        return []
    return [whole_memory([*versions[:at], *versions[at + 1 :]], layers) for at in range(len(versions))]


def whole_kinds(versions: Sequence[ShortenedProgram], layers: Sequence[int]) -> tuple[KindTotal, ...]:
    """The collectives of the whole program by kind; see `whole_memory`."""
    counts = _whole(versions, layers, lambda version: {one.kind: one.count for one in version.kinds})
    sent = _whole(versions, layers, lambda version: {one.kind: one.sent_bytes_per_device for one in version.kinds})
    unsure = {one.kind for version in versions for one in version.kinds if one.is_lower_bound}
    return tuple(KindTotal(kind, counts[kind], sent[kind], kind in unsure) for kind in sorted(sent) if sent[kind])


def whole_rows(versions: Sequence[ShortenedProgram], layers: Sequence[int]) -> tuple[AxesTotal, ...]:
    """The collectives of the whole program by kind and axes; see `whole_memory`."""

    def of(version: ShortenedProgram) -> dict[tuple[str, str], AxesTotal]:
        return {(one.kind, one.axes): one for one in version.rows}

    counts = _whole(versions, layers, lambda version: {key: one.count for key, one in of(version).items()})
    sent = _whole(
        versions, layers, lambda version: {key: one.sent_bytes_per_device for key, one in of(version).items()}
    )
    unsure = {key for version in versions for key, one in of(version).items() if one.is_lower_bound}
    return tuple(AxesTotal(*key, counts[key], sent[key], key in unsure) for key in sorted(sent) if sent[key])


def _whole(
    versions: Sequence[ShortenedProgram], layers: Sequence[int], sizes: Callable[[ShortenedProgram], Mapping[_Key, int]]
) -> dict[_Key, int]:
    """Each size of the whole program, by least squares."""
    known = [sizes(version) for version in versions]
    keys = list(dict.fromkeys(key for one in known for key in one))
    if not keys:
        return {}
    given = np.array([[1.0, *version.layers] for version in versions])
    values = np.array([[float(one.get(key, 0)) for key in keys] for one in known])
    lines = np.linalg.lstsq(given, values, rcond=None)[0]
    found = np.array([1.0, *layers]) @ lines
    return {key: max(0, round(float(value))) for key, value in zip(keys, found)}
