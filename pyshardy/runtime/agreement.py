"""Whether all processes are about to run the same: if not, they would mix numbers, or wait for each other for ever."""

from __future__ import annotations

import hashlib

import numpy as np
from jax.experimental import multihost_utils

from pyshardy.errors import ShardyError


def agree(program: str) -> None:
    """Compare what this process is about to run with what the others are; every process has to come here.

    Args:
        program: The program with all that decides how it runs, in the same words in every process.

    Raises:
        ShardyError: Another process runs something else; in every process.
    """
    digest = np.frombuffer(hashlib.sha256(program.encode()).digest(), np.uint8)
    refuse_others(np.asarray(multihost_utils.process_allgather(digest)))


def refuse_others(digests: np.ndarray) -> None:
    """Raise unless all rows, one per process, are equal; names the processes that differ from process 0."""
    others = [str(process) for process, digest in enumerate(digests) if not np.array_equal(digest, digests[0])]
    if others:
        raise ShardyError(
            "running a program in several processes",
            got=f"another program, other options or other shapes in process {', '.join(others)} than in process 0",
            needed="the same program, partitioned with the same options, in all processes",
        )
