"""Modules from files, standard input and strings."""

from __future__ import annotations

import sys
from pathlib import Path

from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.ir.module import Module

BYTECODE_MAGIC = b"ML\xefR"
STANDARD_INPUT = "-"


def load_file(path: str | Path, allow_unregistered_dialects: bool = False) -> Module:
    """The module in a file of StableHLO text or bytecode; `-` is standard input.

    Args:
        path: The file.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.

    Raises:
        UsageError: There is no such file, or it cannot be read.
        InvalidModuleError: The file holds no valid module.
    """
    name = str(path)
    return load_bytes(read_bytes(name), name, allow_unregistered_dialects)


def read_bytes(path: str) -> bytes:
    """The content of a file, or of standard input for `-`; raises `UsageError` if it cannot be read."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("reading standard input", got="none: it is closed", needed="a StableHLO module")
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"reading {path}", got="no such file", needed="a file with a StableHLO module") from error
    except IsADirectoryError as error:
        raise UsageError(
            f"reading {path or 'a file'}",
            got="a directory" if path else "an empty name",
            needed="a file with a StableHLO module",
        ) from error
    except ValueError as error:  # a zero byte, or characters that file names cannot have
        raise UsageError(f"reading {path}", got="a name that no file can have", needed="a readable file") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"reading {path}", got=reason.lower(), needed="a readable file") from error


def load_bytes(content: bytes, name: str = STANDARD_INPUT, allow_unregistered_dialects: bool = False) -> Module:
    """The module in the content of a file.

    Args:
        content: Text or bytecode.
        name: What to call it in messages.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.

    Raises:
        InvalidModuleError: It is no valid module.
    """
    source = text_or_bytecode(content, name)
    return Module.parse(source, name=name, allow_unregistered_dialects=allow_unregistered_dialects)


def text_or_bytecode(content: bytes, name: str) -> str | bytes:
    """The content as MLIR reads it: bytecode as it is, text decoded."""
    if content.startswith(BYTECODE_MAGIC):
        return content
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidModuleError(
            "reading a module",
            where=f"{name}, byte {error.start}",
            got="bytes that are neither UTF-8 text nor MLIR bytecode",
            needed="StableHLO as text (.mlir) or as MLIR bytecode",
        ) from error
