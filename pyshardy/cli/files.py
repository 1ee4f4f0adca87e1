"""Writing results: a file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyshardy.errors import UsageError


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it, and nothing is left behind on failure.

    Raises:
        UsageError: The file cannot be written.
    """
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
