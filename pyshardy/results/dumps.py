"""Writes dumps as XLA does: a folder per program with the module at every stage, and a page that lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from pathlib import Path
from typing import Final

from pyshardy.core.files import replace_file
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module

DUMP_VARIABLE: Final = "PYSHARDY_DUMP_TO"
"""The environment variable that names the directory, if `dumping_to` does not."""
_directory: ContextVar[str | None] = ContextVar("dumps", default=None)
_SHARDY = "shardy"
_NUMBER = re.compile(r"module_(\d+)\.")
_UNFIT = re.compile(r"[^\w.-]+")
_INPUT = "00.input_module.mlir"
_MEANINGS = (
    (r"00\.input_module", "the program as it was given, with source lines"),
    (r"\d+\.before_propagation", "the input of propagation: simplified as XLA does, with the user's shardings"),
    (r"\d+\.propagation_after_user_priority_(\d+)", r"after the round of user priority \1"),
    (r"02\.after_propagation", "a sharding for every tensor: the one to look at"),
    (r"\d+\.after_explicit_reshards", "reshards where ops need other shardings than their operands have"),
    (r"03\.after_partitioner_passes", "the result of propagate"),
    (r"\d+\.after_partitioner_passes", "the program of one device, with local shapes and collectives"),
)
_STYLE = "body{font-family:sans-serif;margin:2em}td{padding:.1em 1em .1em 0}code,td a{font-family:monospace}"


@contextmanager
def dumping_to(directory: str) -> Iterator[None]:
    """Dump every program to a directory, whatever the environment variable says.

    Raises:
        UsageError: No file can have the name.
    """
    if "\0" in directory:
        got = "a name that no file can have"
        raise UsageError(f"writing dumps to {directory!r}", got=got, needed="a directory")
    before = _directory.set(directory)
    try:
        yield
    finally:
        _directory.reset(before)


def new_folder(module: Module) -> str:
    """Make a folder for the dumps of a program and write the program to it; empty if nobody asked for dumps.

    The folder is `shardy/module_0000.NAME` in the directory of `dumping_to`, or in the one that the environment
    variable `PYSHARDY_DUMP_TO` names, with the first free number.

    Args:
        module: The program as it was given.

    Raises:
        UsageError: The directory cannot be written to.
    """
    chosen = _directory.get()
    directory = os.environ.get(DUMP_VARIABLE) if chosen is None else chosen
    if not directory:
        return ""
    with _writing_to(directory):
        folder = _make_folder(Path(directory) / _SHARDY, module)
        replace_file(folder / _INPUT, module.text(debug_info=True).encode())
    write_index(folder)
    return str(folder)


@contextmanager
def _writing_to(directory: str | Path) -> Iterator[None]:
    """Refuse a directory that cannot be written to."""
    try:
        yield
    except OSError as error:
        got = (error.strerror or str(error)).lower()
        needed = "a directory that can be written to"
        raise UsageError(f"writing dumps to {directory}", got=got, needed=needed) from error


def _make_folder(parent: Path, module: Module) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    name = _UNFIT.sub("_", str(module.root.attrs.get("sym_name") or "module"))
    numbers = [int(found[1]) for path in parent.iterdir() if (found := _NUMBER.match(path.name))]
    number = max(numbers, default=-1) + 1
    while True:
        folder = parent / f"module_{number:04d}.{name}"
        try:
            folder.mkdir()
        except FileExistsError:  # of another process
            number += 1
        else:
            return folder


def write_index(folder: str | Path) -> None:
    """Write the page that lists all dumps in the directory of a program's folder.

    Args:
        folder: The result of `new_folder`; nothing happens if it is empty.

    Raises:
        UsageError: The directory cannot be written to.
    """
    if not str(folder):
        return
    directory = Path(folder).parent.parent
    with _writing_to(directory):
        programs = sorted(path for path in (directory / _SHARDY).iterdir() if path.is_dir())
        parts = "".join(map(_section, programs))
        page = f"<!DOCTYPE html><meta charset=utf-8><title>Dumps of pyshardy</title><style>{_STYLE}</style>"
        text = f"{page}\n<h1>Dumps of pyshardy</h1>\n{parts}"
        replace_file(directory / "index.html", text.encode(errors="backslashreplace"))


def _section(program: Path) -> str:
    """The part of the page for one program."""
    directory = program.parent.parent
    rows = "".join(map(_row, sorted(program.glob("*.mlir"))))
    command = escape(f"pyshardy show {directory}::{program.name}")
    return f"<h2>{escape(program.name)}</h2>\n<p><code>{command}</code></p>\n<table>\n{rows}</table>\n"


def _row(file: Path) -> str:
    link = escape(f"{_SHARDY}/{file.parent.name}/{file.name}", quote=True)
    lines = file.read_bytes().count(b"\n")
    return f'<tr><td><a href="{link}">{escape(file.name)}</a><td>{lines} lines<td>{escape(meaning_of(file.name))}\n'


def meaning_of(name: str) -> str:
    """The content of a file of a dump, in words.

    >>> meaning_of("02.propagation_after_user_priority_1.mlir")
    'after the round of user priority 1'
    """
    for pattern, meaning in _MEANINGS:
        found = re.match(pattern, name)
        if found is not None:
            return found.expand(meaning)
    return ""
