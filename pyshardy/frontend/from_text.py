"""Loads modules from files, standard input and strings: StableHLO, portable or not, HLO, and files of `jax.export`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyshardy.core.text import STANDARD_INPUT
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.ir.module import Module

BYTECODE_MAGIC = b"ML\xefR"


def read_file(path: str | Path, allow_unregistered_dialects: bool = False, isolate: bool = False) -> Module:
    """The module in a file of StableHLO, HLO or `jax.export`; `-` is standard input.

    Args:
        path: The file.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
        isolate: Whether to read it in a separate process, because its bytes may crash the reader.

    Raises:
        UsageError: There is no such file, or it cannot be read.
        InvalidModuleError: The file is not a valid module.
    """
    name = str(path)
    return load_bytes(read_bytes(name), name, allow_unregistered_dialects, isolate)


def read_bytes(path: str) -> bytes:
    """The content of a file, or of standard input for `-`; raises `UsageError` if it cannot be read."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("reading standard input", got="a closed stream", needed="a StableHLO module")
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
        raise UsageError(f"reading {path!r}", got="a name that no file can have", needed="a readable file") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"reading {path}", got=reason.lower(), needed="a readable file") from error


def load_bytes(
    content: bytes, name: str = STANDARD_INPUT, allow_unregistered_dialects: bool = False, isolate: bool = False
) -> Module:
    """The module in the content of a file.

    Args:
        content: StableHLO or HLO as text, as bytecode or as a protocol buffer, or a serialized `jax.export.Exported`.
        name: Its name in messages.
        allow_unregistered_dialects: Whether ops of unknown dialects are accepted, in generic form.
        isolate: Whether to read it in a separate process, because its bytes may crash the reader.

    Raises:
        InvalidModuleError: It is not a valid module.
    """
    return read_text_or_bytecode(content, name, allow_unregistered_dialects, isolate)[0]


def read_text_or_bytecode(
    content: bytes, name: str, allow_unregistered_dialects: bool = False, isolate: bool = False
) -> tuple[Module, bytes]:
    """The module in the content of a file, and the text or bytecode that MLIR read.

    The parameters are those of `load_bytes`.
    """
    if isolate:
        from pyshardy.frontend.isolated import read_isolated

        return read_isolated(content, name, allow_unregistered_dialects)
    source = text_or_bytecode(content, name)
    module = Module.parse(
        source, name=name, allow_unregistered_dialects=allow_unregistered_dialects, keep_inner_modules=False
    )
    if isinstance(source, str):
        return module, source.encode()
    if not content.startswith(BYTECODE_MAGIC):
        from pyshardy.frontend.from_hlo import with_open_results

        module = with_open_results(module, content)
    return module, source


def text_or_bytecode(content: bytes, name: str) -> str | bytes:
    """The content in a form that MLIR reads: text is decoded, other formats are converted to bytecode."""
    if content.startswith(BYTECODE_MAGIC):
        return _stable(content, name)
    from pyshardy.frontend.from_hlo import is_hlo_text, load_hlo_proto, load_hlo_text
    from pyshardy.ir.hlo_proto import hlo_module_proto

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        proto = hlo_module_proto(content)
        if proto is not None:
            return load_hlo_proto(proto, name)
        artifact = _artifact(content)
        if artifact is not None:
            return _stable(artifact, name)
        raise InvalidModuleError(
            "reading a module",
            where=f"{name}, byte {error.start}",
            got="bytes that are neither UTF-8 text nor MLIR bytecode",
            needed="StableHLO as text (.mlir) or as MLIR bytecode, HLO as text or .pb, or an Exported of jax.export",
        ) from error
    if is_hlo_text(text):
        return load_hlo_text(text, name)
    proto = hlo_module_proto(content) if content.startswith(b"\n") else None
    return text if proto is None else load_hlo_proto(proto, name)


def is_bytecode(content: bytes) -> bool:
    """Whether some content is bytecode that MLIR reads directly, unlike a portable artifact."""
    from pyshardy.ir.hlo import is_portable

    return content.startswith(BYTECODE_MAGIC) and not is_portable(content)


def text_in(content: bytes) -> str | None:
    """The MLIR text in some content; None for other formats."""
    from pyshardy.frontend.from_hlo import is_hlo_text
    from pyshardy.ir.hlo_proto import hlo_module_proto

    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    is_proto = content.startswith(b"\n") and hlo_module_proto(content) is not None
    return None if is_proto or is_hlo_text(text) else text


def _stable(content: bytes, name: str) -> bytes:
    """Bytecode in the dialects of StableHLO, from such bytecode or from a portable artifact."""
    from pyshardy.ir.hlo import bytecode_of_portable, is_portable

    return bytecode_of_portable(content, name) if is_portable(content) else content


def _artifact(content: bytes) -> bytes | None:
    from pyshardy.frontend.from_export import artifact_in

    return artifact_in(content)
