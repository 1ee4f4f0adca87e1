"""Commands in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from .sample_modules import MLP


def run_without(stream: int, *args: Any, module: str = "pyshardy.cli.main") -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a process of which standard output (1) or standard error (2) is closed."""
    command = ["sh", "-c", f'exec "$@" {stream}>&-', "sh", sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, cwd=MLP.parents[1], capture_output=True, check=False)


def run_process(*args: Any, module: str = "pyshardy.cli.main", **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, cwd=MLP.parents[1], stderr=subprocess.PIPE, check=False, **options)
