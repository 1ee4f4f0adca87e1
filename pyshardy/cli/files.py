"""Writes results to files and standard output, and names the input file in errors."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pyshardy.core.files import write_whole
from pyshardy.core.text import STANDARD_INPUT, quote
from pyshardy.errors import InvalidModuleError, UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module

_PLACE_IN_FILE = re.compile(r'(?<=[( ])"-"(?=:\d+:\d+)')


def load_source(arguments: argparse.Namespace) -> Module:
    """The module that a command line names, with the shardings of its options."""
    from pyshardy.frontend.load import load_path

    module = load_path(
        arguments.source,
        module=arguments.module,
        mesh=arguments.mesh,
        allow_unregistered_dialects=arguments.allow_unregistered_dialect,
        isolate=arguments.isolate,
        needs_tilings=not arguments.shard,
    )
    return with_given_shardings(module, arguments)


def with_given_shardings(module: Module, arguments: argparse.Namespace) -> Module:
    """The module with the shardings that a command line assigns to inputs and outputs.

    Raises:
        UsageError: A sharding has no name, a name matches no input or output, or there is no mesh.
    """
    if not arguments.shard:
        return module
    return module.annotate(shardings_of(arguments.shard, "--shard"), arguments.mesh)


def shardings_of(texts: Sequence[str], option: str) -> dict[str, str | None]:
    """The shardings by name that an option assigns; for `--edit`, a name alone removes a sharding.

    Raises:
        UsageError: A sharding has no name or, for `--shard`, a name has no sharding.

    >>> shardings_of(["x=data,None", "params.w"], "--edit")
    {'x': 'data,None', 'params.w': None}
    """
    shardings: dict[str, str | None] = {}
    for text in texts:
        name, equals, spec = text.partition("=")
        if not name.strip() or not (equals or option == "--edit"):
            needed = "the name of an input or output and its sharding, like x=data,None"
            raise UsageError("reading the command line", got=f"{option} {text}", needed=needed)
        shardings[name.strip()] = spec if equals else None
    return shardings


def write_result(module: Module, arguments: argparse.Namespace, to_standard_output: bool) -> None:
    """Write a module to a file, or to standard output if that is requested.

    Text has locations, with the names of arguments and source lines, unless it goes to a terminal.
    """
    path = arguments.output
    if path is not None and path != "-":
        is_bytecode = str(path).endswith((".mlirbc", ".bc"))
        write_whole(
            path, module.bytecode() if is_bytecode else _text(module, arguments, arguments.locations is not False)
        )
    elif path is not None or to_standard_output:
        is_watched = sys.stdout.isatty() if arguments.locations is None else not arguments.locations
        sys.stdout.buffer.write(_text(module, arguments, not is_watched))


def _text(module: Module, arguments: argparse.Namespace, locations: bool) -> bytes:
    """The text of a module. Its locations name the input file, which MLIR calls "-"."""
    if not locations:
        return module.text().encode()
    text = module.text(debug_info=True)
    if arguments.source != STANDARD_INPUT:
        text = _PLACE_IN_FILE.sub(lambda _: quote(arguments.source), text)
    return text.encode()


OUT_OF_MEMORY = "running the command: got a program that takes more memory than there is"


class _Closed(io.RawIOBase):
    """Closed standard output: writing to it is an error, as in other programs."""

    def writable(self) -> bool:
        return True

    def write(self, _: Any) -> int:
        raise OSError(errno.EBADF, "a closed stream")


def open_standard_streams() -> None:
    """Make sure that standard streams exist and accept any character; those they cannot encode are escaped."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed(), encoding="utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open as long as the process is there)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            stream.reconfigure(errors="backslashreplace")


def writing_to_standard_output(command: Callable[[], int]) -> int:
    """Run a command that writes to standard output; return its exit status, 1 if writing failed.

    If the reader closes the pipe, as `head` does, there is no message.
    """
    open_standard_streams()
    try:
        status = command()
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still buffers
        if not isinstance(error, BrokenPipeError):
            print(f"error: writing to standard output: got {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1
    return status


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Name the input file in errors with locations inside it; MLIR calls it "-"."""
    try:
        yield
    except InvalidModuleError as error:
        if error.where and error.where.startswith("-:"):
            error.where = source + error.where[1:]
            error.args = (error._message(),)
        raise
