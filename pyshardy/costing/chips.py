"""The table of chips, and hardware files that users write."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pyshardy.core.intern import register_cache
from pyshardy.core.options import did_you_mean
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.hardware_file import hardware_from_data
from pyshardy.errors import UsageError

_FOLDER = "chips"


def chip_names() -> tuple[str, ...]:
    """The names of the chips in the table.

    >>> "h100" in chip_names()
    True
    """
    found = (entry.name for entry in (files("pyshardy.costing") / _FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def find_hardware(source: Hardware | str | Path) -> Hardware:
    """Hardware by the name of a chip, or from a TOML file.

    Raises:
        UsageError: There is no such chip or file, or the file does not describe hardware.

    >>> find_hardware("h100").name
    'NVIDIA H100 SXM'
    """
    if isinstance(source, Hardware):
        return source
    text = str(source)
    if isinstance(source, Path) or text.endswith(".toml"):
        return _read_file(Path(text))
    if text.lower() not in chip_names():
        raise UsageError(
            "looking up hardware",
            got=repr(text),
            needed=f"one of {', '.join(chip_names())}, or a TOML file",
            hint=did_you_mean(text.lower(), chip_names()),
        )
    return _chip(text.lower())


def chip_text(name: str) -> str:
    """The text of a chip's TOML file, as a start for your own."""
    find_hardware(name)
    return _text(name.lower())


@lru_cache(maxsize=32)
def _chip(name: str) -> Hardware:
    return hardware_from_data(tomllib.loads(_text(name)), f"chip {name}")


def _text(name: str) -> str:
    return (files("pyshardy.costing") / _FOLDER / f"{name}.toml").read_text()


register_cache(_chip.cache_clear)


def _read_file(path: Path) -> Hardware:
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError("reading a hardware file", where=str(path), got=error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError("reading a hardware file", where=str(path), got=str(error), needed="TOML") from error
    return hardware_from_data(data, str(path))
