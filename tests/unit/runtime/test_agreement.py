"""Processes that are about to run different programs are refused."""

from __future__ import annotations

import numpy as np
import pytest

from pyshardy.errors import ShardyError
from pyshardy.runtime import exported
from pyshardy.runtime.exported import agree, refuse_others


def test_equal_programs_go_on() -> None:
    refuse_others(np.zeros((3, 32), np.uint8))


def test_the_processes_that_differ_are_named() -> None:
    digests = np.zeros((4, 32), np.uint8)
    digests[1, 31] = digests[3, 0] = 1
    with pytest.raises(ShardyError) as caught:
        refuse_others(digests)
    assert str(caught.value) == (
        "running a program in several processes: got another program, other options or other shapes in process 1, 3 than "
        "in process 0, needed the same program, partitioned with the same options, in all processes"
    )


def test_the_words_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def gather(digest: np.ndarray) -> np.ndarray:
        seen.append(digest)
        return np.stack(seen)

    monkeypatch.setattr(exported.multihost_utils, "process_allgather", gather)
    agree("a program")
    agree("a program")
    with pytest.raises(ShardyError, match="in process 2 than in process 0"):
        agree("another one")


def test_one_process_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyshardy

    monkeypatch.setattr(exported, "agree", None)
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    assert len(pyshardy.run(pyshardy.partition(pyshardy.load(text)), np.ones(4, np.float32))) == 1
