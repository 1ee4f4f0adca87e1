"""Writing results, where a file appears whole or not at all, and naming the file read in errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyshardy.errors import InvalidModuleError, UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module


def load_source(arguments: argparse.Namespace) -> Module:
    """The module in the file or dump that a command line names."""
    from pyshardy.frontend.load import load_path

    return load_path(
        arguments.source,
        module=arguments.module,
        mesh=arguments.mesh,
        allow_unregistered_dialects=arguments.allow_unregistered_dialect,
    )


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it, and nothing is left behind on failure.

    Raises:
        UsageError: The file cannot be written.
    """
    import tempfile  # slow to import

    target = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"writing {path}", got=reason, needed="a place that can be written to") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def writing_to_standard_output(command: Callable[[], int]) -> int:
    """Run a command that writes to standard output; its exit status, 1 if the output could not be written.

    A reader that has read enough, as `head` does, is no error worth a message.
    """
    try:
        status = command()
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
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
