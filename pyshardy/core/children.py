"""Processes of Python that pyshardy starts: where they find the package, how they end, and what their end means.

They are plain processes, not workers of `multiprocessing`: that imports the user's script again in every worker, which
runs a script without `if __name__ == "__main__"` twice; it says neither by which signal a worker ended nor what it
wrote; and a limit of time ends only the waiting, not the worker and what that has started.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])


def child_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child that imports this package, wherever it lies.

    Args:
        changes: Variables that are different in the child.
    """
    paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(changes or {})}


def end_child(child: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """End a child that was started with `start_new_session`, and all that it has started."""
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def ending_of(status: int, log: str = "") -> str:
    """How a child ended, in words.

    Args:
        status: Its exit status, as `subprocess` gives it.
        log: What it wrote to standard error; its last line is quoted.

    >>> ending_of(-11), ending_of(1, "Traceback:\\nMemoryError\\n")
    ('ends with SIGSEGV', 'ends with status 1: MemoryError')
    """
    how = f"status {status}" if status >= 0 else _signal(-status)
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "")
    return f"ends with {how}: {last}" if last else f"ends with {how}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
