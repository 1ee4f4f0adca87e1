"""Reads hardware from the tables of a TOML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from pyshardy.costing.hardware import Hardware, Measured, Network, check_positive, check_times, field_entries
from pyshardy.errors import UsageError


def hardware_from_data(data: Mapping[str, Any], where: str) -> Hardware:
    """Hardware from the content of a TOML file.

    Args:
        data: The tables of the file.
        where: The name of the file in errors.

    Raises:
        UsageError: A field is missing, unknown, or of a wrong type.
    """
    fields = dict(data)
    try:
        networks = tuple(
            _made(Network, _table(entry, "networks", where), _named("networks", entry, place), where)
            for place, entry in enumerate(field_entries(where, "networks", fields.pop("networks", ()), "tables"))
        )
        measurements = field_entries(where, "measured", fields.pop("measured", ()), "tables")
        measured = tuple(_measured(_table(entry, "measured", where), where) for entry in measurements)
        flops = tuple(_table(fields.pop("flops_per_s", {}), "flops_per_s", where).items())
        sources = tuple(_flat(_table(fields.pop("sources", {}), "sources", where)))
        fields |= {"networks": networks, "measured": measured, "flops_per_s": flops, "sources": sources}
        return _made(Hardware, fields, "the file", where)
    except UsageError as error:
        place = where if error.where is None or where in error.where else f"{where}, {error.where}"
        error.where = None
        raise error.located("reading a hardware file", place) from error


_T = TypeVar("_T", Network, Hardware, Measured)


def _made(kind: type[_T], fields: Mapping[str, Any], name: str, where: str) -> _T:
    """An object from the fields of a table.

    Raises:
        UsageError: A field is missing or unknown.
    """
    known = {one.name: one.default for one in dataclasses.fields(kind)}
    missing = [one for one, default in known.items() if default is dataclasses.MISSING and one not in fields]
    unknown = [one for one in fields if one not in known]
    if missing or unknown:
        needed = ", ".join(one for one in known if one not in ("networks", "measured", "flops_per_s", "sources"))
        raise UsageError(
            "reading a hardware file",
            where=where,
            got=f"{name} without {', '.join(missing)}" if missing else f"{name} with {', '.join(unknown)}",
            needed=f"the fields {needed}" if unknown else f"{', '.join(missing)} in {name}",
            hint="start from the file of a chip: print(pyshardy.costing.chips.chip_text('h100'))",
        )
    return kind(**fields)


def _named(table: str, entry: Any, place: int) -> str:
    """The name of one of several tables in errors: its position, and its name if it has one."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return f"{table} entry {place + 1}" + (f" ({name!r})" if name else "")


def _table(value: Any, name: str, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError("reading a hardware file", where=where, got=f"{name} = {value!r}", needed="a table")
    return dict(value)


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, str(value)))
    return found


def _measured(fields: dict[str, Any], where: str) -> Measured:
    """A measurement: times by size, or a latency and a bandwidth."""
    if "bytes_per_s" in fields:
        latency, rate = fields.pop("latency_s", 0.0), fields.pop("bytes_per_s")
        check_times(where, latency_s=latency)
        check_positive(where, bytes_per_s=rate)
        sizes = tuple(float(2**power) for power in range(10, 41))
        fields |= {"bytes": sizes, "seconds": tuple(latency + size / rate for size in sizes)}
    return _made(Measured, fields, "an entry of measured", where)
