"""`pyshardy cost`: estimates time and memory of a program on a chip that need not be present."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from pyshardy.errors import UsageError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    add_hardware_options(parser)
    add_by_option(parser)
    text = "write a timeline of one step in Chrome's trace format, for ui.perfetto.dev"
    parser.add_argument("--trace", metavar="FILE", help=text)


def add_by_option(parser: argparse.ArgumentParser) -> None:
    """The option that sums the time of an estimate."""
    text = "sum the time by the scopes of the model or by source lines, too"
    parser.add_argument("--by", choices=("scope", "line"), help=text)


def add_hardware_options(parser: argparse.ArgumentParser) -> None:
    """The options of all commands that price programs."""
    text = "the chip (h100, v5p, ...), or a TOML file that describes one (default: that of --compiler, or v5p)"
    parser.add_argument("--hardware", metavar="CHIP|FILE", help=text)
    text = "the networks of mesh axes, like data=dcn (default: from the inside out)"
    parser.add_argument("--networks", metavar="AXES", help=text)
    parser.add_argument(
        "--shape", metavar="AxB", help="the dimensions of the torus, like 16x16 (default: near a square)"
    )
    text = "the prices of collectives (default formula)"
    parser.add_argument("--collectives", choices=("formula", "measured", "xla"), default="formula", help=text)


def costs(module: Any, mesh: str | None, arguments: argparse.Namespace, options: Any, propagate_options: Any) -> Any:
    """The estimate for a loaded module, on its mesh or on a mesh of other sizes."""
    from pyshardy.api.cost import cost
    from pyshardy.api.partition import partition
    from pyshardy.ir.mesh_sizes import with_mesh_sizes

    if mesh:
        module = with_mesh_sizes(module, parse_sizes(mesh, "--mesh"))
    return cost(
        partition(module, options, propagate_options=propagate_options),
        arguments.hardware,
        networks=parse_networks(arguments.networks),
        shape=parse_shape(arguments.shape),
        collectives=arguments.collectives,
    )


def parse_networks(text: str | None) -> Mapping[str, str] | None:
    """The networks of mesh axes.

    >>> parse_networks("data=dcn,model=ici")
    {'data': 'dcn', 'model': 'ici'}
    """
    return None if text is None else _pairs(text, "--networks", "axes with networks, like data=dcn")


def parse_sizes(text: str, option: str) -> dict[str, int]:
    """Mesh axes with their sizes.

    >>> parse_sizes("data=64,model=16", "--mesh")
    {'data': 64, 'model': 16}
    """
    needed = "axes with sizes, like data=64,model=16"
    found = {}
    for name, size in _pairs(text, option, needed).items():
        if not re.fullmatch(r"[1-9]\d{0,9}", size, re.ASCII) or int(size) > 2**31:
            raise UsageError("reading the command line", got=f"{option} {text}", needed=needed)
        found[name] = int(size)
    return found


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """The dimensions of a torus.

    >>> parse_shape("16x16")
    (16, 16)
    """
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text):
        raise UsageError("reading the command line", got=f"--shape {text}", needed="dimensions like 16x16")
    return tuple(map(int, text.split("x")))


def _pairs(text: str, option: str, needed: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value or name in found:
            raise UsageError("reading the command line", got=f"{option} {text}", needed=needed)
        found[name] = value
    return found


def write_trace(found: Any, path: str) -> None:
    """Write the timeline of an estimate to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    import json

    from pyshardy.core.files import write_whole

    write_whole(path, json.dumps(found.trace(), separators=(",", ":")).encode())
