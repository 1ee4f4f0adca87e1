"""Checks that all processes run the same program. Otherwise they would mix data or wait for each other for ever."""

from __future__ import annotations

import hashlib

import numpy as np
from jax.experimental import multihost_utils

from pyshardy.errors import ShardyError


def agree(program: str) -> None:
    """Compare the program of this process with those of the others; every process must call this.

    Args:
        program: The program and everything that decides how it runs, as a text that is equal in all processes.

    Raises:
        ShardyError: Another process runs something else. All processes raise it.
    """
    digest = np.frombuffer(hashlib.sha256(program.encode()).digest(), np.uint8)
    refuse_others(np.asarray(multihost_utils.process_allgather(digest)))


def refuse_others(digests: np.ndarray) -> None:
    """Raise unless all rows, one per process, are equal; the error names the processes that differ from process 0."""
    others = [str(process) for process, digest in enumerate(digests) if not np.array_equal(digest, digests[0])]
    if others:
        raise ShardyError(
            "running a program in several processes",
            got=f"another program, other options or other shapes in process {', '.join(others)} than in process 0",
            needed="the same program, partitioned with the same options, in all processes",
        )
