"""Writing results to files and to standard output, and naming the file read in errors."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyshardy.core.text import quote
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.report.files import replace_file

if TYPE_CHECKING:
    from pyshardy.ir.module import Module

STANDARD_INPUT = "-"
_PLACE_IN_FILE = re.compile(r'(?<=[( ])"-"(?=:\d+:\d+)')


def load_source(arguments: argparse.Namespace) -> Module:
    """The module in the file or dump that a command line names, with the shardings that it gives."""
    from pyshardy.frontend.load import load_path

    module = load_path(
        arguments.source,
        module=arguments.module,
        mesh=arguments.mesh,
        allow_unregistered_dialects=arguments.allow_unregistered_dialect,
        isolate=arguments.isolate,
        needs_tilings=not arguments.shard,
    )
    return with_shardings(module, arguments)


def with_shardings(module: Module, arguments: argparse.Namespace) -> Module:
    """The module with the shardings that a command line gives to inputs and outputs.

    Raises:
        UsageError: A sharding without a name, a name that no input or output has, or no mesh.
    """
    if not arguments.shard:
        return module
    return module.annotate(shardings_of(arguments.shard, "--shard"), arguments.mesh)


def shardings_of(texts: Sequence[str], option: str) -> dict[str, str | None]:
    """The shardings that an option gives to names; for `--edit`, a name alone takes one away.

    Raises:
        UsageError: A sharding without a name, or for `--shard` a name without a sharding.

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


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file at once: no reader sees a part of it, and a failure leaves nothing behind (`replace_file`).

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"writing {path}", got=reason, needed="a place that can be written to") from error


def write_module(module: Module, arguments: argparse.Namespace, to_standard_output: bool) -> None:
    """Write a module to a file, or to standard output if there is none and that is wanted.

    Text has locations, which hold the names of arguments and the lines of the source, unless a person looks at it.
    """
    path = arguments.output
    if path and path != "-":
        is_bytecode = str(path).endswith((".mlirbc", ".bc"))
        write_whole(
            path, module.bytecode() if is_bytecode else _text(module, arguments, arguments.locations is not False)
        )
    elif path or to_standard_output:
        is_watched = sys.stdout.isatty() if arguments.locations is None else not arguments.locations
        sys.stdout.buffer.write(_text(module, arguments, not is_watched))


def _text(module: Module, arguments: argparse.Namespace, locations: bool) -> bytes:
    """The text of a module; in its locations the file that was read has its name, which MLIR calls "-"."""
    if not locations:
        return module.text().encode()
    text = module.text(debug_info=True)
    if arguments.source != STANDARD_INPUT:
        text = _PLACE_IN_FILE.sub(lambda _: quote(arguments.source), text)
    return text.encode()


OUT_OF_MEMORY = "running the command: got a program that takes more memory than there is"


class _Closed(io.RawIOBase):
    """Standard output that is closed: what is written to it is an error, as it is for other programs."""

    def writable(self) -> bool:
        return True

    def write(self, _: Any) -> int:
        raise OSError(errno.EBADF, "it is closed")


def open_standard_streams() -> None:
    """Make sure that standard streams exist and take any character; characters they cannot encode are escaped."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed(), encoding="utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open as long as the process is there)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            stream.reconfigure(errors="backslashreplace")


def writing_to_standard_output(command: Callable[[], int]) -> int:
    """Run a command that writes to standard output; its exit status, 1 if the output could not be written.

    A reader that has read enough, as `head` does, is no error worth a message.
    """
    open_standard_streams()
    try:
        status = command()
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still holds back
        if not isinstance(error, BrokenPipeError):
            print(f"error: writing to standard output: got {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1
    return status


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Name the file in errors about places inside it, which MLIR knows as "-"."""
    try:
        yield
    except InvalidModuleError as error:
        if error.where and error.where.startswith("-:"):
            error.where = source + error.where[1:]
            error.args = (error._message(),)
        raise
