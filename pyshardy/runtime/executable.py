"""The interface of the engines that run programs on global arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pyshardy.errors import UsageError
from pyshardy.frontend.interface import Interface
from pyshardy.runtime.arrays import check_inputs
from pyshardy.runtime.peers import run_together


class Executable(ABC):
    """A program that takes and returns global arrays.

    Attributes:
        interface: Its inputs and outputs.
        processes: The processes that run it together.
    """

    interface: Interface
    processes: tuple[int, ...] = ()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for global arrays, which may already be on devices.

        Raises:
            UsageError: Inputs that do not fit.
            ShardyError: The program fails to compile or run.
        """
        checked = check_inputs(arrays, self.interface.inputs)
        return run_together(self.processes, lambda: self.run(checked))

    @abstractmethod
    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for arrays that have the types of the inputs."""

    def as_text(self) -> str:
        """The HLO that XLA has compiled; raises `UsageError` if the engine does not compile."""
        raise UsageError("looking at a compiled program", got="the interpreter", needed="an engine that compiles")
