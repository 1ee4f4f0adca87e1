"""Reads modules in a separate process, so that a crash of MLIR's or XLA's reader ends only that process.

The child (`reader_process.py`) reads the content, verifies it and writes it again; its output is read here. The output
is a line of JSON and a module, never a pickle, so nothing in it is executed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from pyshardy.core.children import ending_of
from pyshardy.errors import InvalidModuleError, ShardyError, UnsupportedVersionError
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.ir.module import Module

_DOING = "reading a module in a process of its own"
_SECONDS = 5
"""The CPU time that a small file may take; it usually takes a third of a second."""
_BYTES_PER_SECOND = 2**20
_WAITING = 12
"""The limit of elapsed time, as a multiple of that of CPU time, because the machine may be busy."""
_MEMORY = 4 * 2**30
_MEMORY_PER_BYTE = 32
_CHILD = "import sys; sys.path[:] = PATH; from pyshardy.frontend.reader_process import main; main()"
_ERRORS: Mapping[str, type[ShardyError]] = {
    error.__name__: error for error in (InvalidModuleError, UnsupportedVersionError)
}
"""The errors of reading."""


def read_isolated(content: bytes, name: str, allow_unregistered_dialects: bool = False) -> tuple[Module, bytes]:
    """The module in the content of a file, and the text or bytecode that a child process wrote.

    The child may take five seconds of CPU time plus one per MiB, and 4 GiB of memory plus 32 bytes per byte.

    Args:
        content: As for `from_text.load_bytes`.
        name: Its name in messages.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.

    Raises:
        InvalidModuleError: It is not a valid module, or the child crashed or took too long.
    """
    seconds = _SECONDS + len(content) // _BYTES_PER_SECOND
    limits = {"seconds": seconds, "memory": _MEMORY + _MEMORY_PER_BYTE * len(content)}
    request = json.dumps({"name": name, "allow": allow_unregistered_dialects, **limits}).encode()
    child = [sys.executable, "-P", "-c", _CHILD.replace("PATH", repr(sys.path))]
    try:
        done = subprocess.run(
            child, input=request + b"\n" + content, capture_output=True, timeout=_WAITING * seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _ended(name, f"bytes that take more than {_WAITING * seconds} s to read") from error
    head, newline, source = done.stdout.partition(b"\n")
    if done.returncode == -signal.SIGXCPU:
        raise _ended(name, f"bytes that take more than {seconds} s to read")
    if done.returncode != 0 or not newline:
        log = done.stderr.decode(errors="replace") if done.returncode >= 0 else ""  # else stacks of MLIR's
        raise _ended(name, f"bytes on which the reader process {ending_of(done.returncode, log)}")
    try:
        answer: dict[str, Any] = json.loads(head)
        refused = _error(answer) if "error" in answer else None
        text = source.decode() if refused is None and answer["is_text"] else source
    except (ValueError, LookupError, TypeError) as error:  # the content may have taken over the child
        raise _ended(name, "bytes on which the reader process returns an invalid answer") from error
    if refused is not None:
        raise refused
    return Module.parse(
        text, name=name, allow_unregistered_dialects=allow_unregistered_dialects, keep_inner_modules=False
    ), source


def _ended(name: str, got: str) -> InvalidModuleError:
    return InvalidModuleError(_DOING, where=name, got=got, needed="StableHLO as text or bytecode, or HLO")


# Errors as JSON


def error_data(error: ShardyError) -> dict[str, Any]:
    """An error as plain data."""
    parts = {name: getattr(error, name) for name in ("doing", "where", "got", "needed", "hint")}
    diagnostics = getattr(error, "diagnostics", ())
    kind = next((name for name, kind in _ERRORS.items() if isinstance(error, kind)), InvalidModuleError.__name__)
    return {"error": kind, "parts": parts, "diagnostics": [_diagnostic_data(each) for each in diagnostics]}


def _diagnostic_data(diagnostic: Diagnostic) -> list[Any]:
    notes = [_diagnostic_data(note) for note in diagnostic.notes]
    return [diagnostic.severity.value, diagnostic.message, str(diagnostic.location), notes]


def _error(answer: Mapping[str, Any]) -> ShardyError:
    """An error from plain data."""
    error = _ERRORS[answer["error"]](**answer["parts"])
    if isinstance(error, InvalidModuleError):
        error.diagnostics = tuple(map(_diagnostic, answer["diagnostics"]))
    return error


def _diagnostic(data: list[Any]) -> Diagnostic:
    severity, message, location, notes = data
    return Diagnostic(Severity(severity), message, location, tuple(map(_diagnostic, notes)))
