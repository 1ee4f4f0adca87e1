"""Processes that price cures beside this one, on the other cores of the machine.

Each runs `pricing_process.py`: it reads pickles from its standard input, a program and then the changes of it to price.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple

from pyshardy.core.children import child_environment, end_child
from pyshardy.ir.module import Module
from pyshardy.report.diagnosis import Figures
from pyshardy.source.places import said_user_code

Change = Callable[[Module], Module]
_MOST_WORKERS = 4
_MOST_JOBS = 2
"""What a worker has to do at once, so that it need not wait for the next change while this process prices one."""


class PricedProgram(NamedTuple):
    """A program of which a worker prices changes.

    Attributes:
        file: The file with its bytecode.
        name: The name of the text that it was read from.
        allows_unregistered: Whether it may hold ops of unknown dialects.
        setting: The arguments of `Pricer`.
        sources: The packages that count as user code, and those that count as libraries.
    """

    file: str
    name: str
    allows_unregistered: bool
    setting: Any
    sources: tuple[tuple[str, ...], tuple[str, ...]]


class _Worker:
    """One process, with the numbers of the changes that it has to price, and the file of its program."""

    def __init__(self, answers: SimpleQueue[tuple[_Worker, Any]]) -> None:
        self.jobs: list[int] = []
        self.program = ""
        self.child = subprocess.Popen(  # in a session of its own, which Ctrl-C does not end
            [sys.executable, "-P", "-m", "pyshardy.checkup.pricing_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=child_environment({"JAX_PLATFORMS": "cpu"}), start_new_session=True,
        )  # fmt: skip
        self._listener = Thread(target=self._listen, args=(answers,), daemon=True)
        self._listener.start()

    def _listen(self, answers: SimpleQueue[tuple[_Worker, Any]]) -> None:
        assert self.child.stdout is not None
        for answer in pickles(self.child.stdout):
            answers.put((self, answer))
        answers.put((self, None))

    def send(self, *requests: Any) -> bool:
        """Send what it is to do; False if it has ended."""
        assert self.child.stdin is not None
        try:
            for one in requests:
                self.child.stdin.write(one if isinstance(one, bytes) else pickle.dumps(one))
            self.child.stdin.flush()
        except OSError:
            return False
        return True

    def end(self) -> None:
        """End it."""
        end_child(self.child)
        self._listener.join()
        for stream in (self.child.stdin, self.child.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class PricingWorkers:
    """Prices changes of programs in several processes at once. Its prices are those of one process.

    Args:
        setting: What a price depends on beside the program: the arguments of `Pricer`.
        count: The number of processes beside this one; by default one for each other core, at most four.
    """

    def __init__(self, setting: Any, count: int | None = None) -> None:
        self._setting = setting
        self._count = min(_MOST_WORKERS, _cores() - 1) if count is None else count
        self._workers: list[_Worker] = []
        self._answers: SimpleQueue[tuple[_Worker, Any]] = SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._module: Module | None = None
        self._program: PricedProgram | None = None
        self._programs = 0

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.end()
        self._workers = []
        if self._folder is not None:
            self._folder.cleanup()

    def prices(
        self, module: Module, changes: Iterable[Change], here: Callable[[Change], Figures | None]
    ) -> list[Figures | None]:
        """The prices of a program with each change, in order; changes are made while others are priced.

        Args:
            module: The program.
            changes: The changes.
            here: The price of a change, in this process: of what cannot be sent, or if all others are busy.
        """
        found: dict[int, Figures | None] = {}
        given: list[Change] = []
        for number, change in enumerate(changes):
            given.append(change)
            while self._take(found, given, here, wait=False):
                pass
            if not self._hand_out(module, number, change):
                found[number] = here(change)
        while any(one.jobs for one in self._workers):
            self._take(found, given, here, wait=True)
        return [found[number] for number in range(len(given))]

    def _hand_out(self, module: Module, number: int, change: Change) -> bool:
        """Let a worker price a change; False if none is free, or the change cannot be sent."""
        worker = self._free()
        try:
            data = None if worker is None else pickle.dumps((number, change))
        except (pickle.PicklingError, TypeError, AttributeError):
            return False
        if worker is None or data is None:
            return False
        program = self._written(module)
        is_sent = worker.send(data) if worker.program == program.file else worker.send(program, data)
        if is_sent:
            worker.program = program.file
            worker.jobs.append(number)
        return is_sent

    def _free(self) -> _Worker | None:
        """The worker with the least to do, if one can take more."""
        idle = [one for one in self._workers if not one.jobs]
        if not idle and len(self._workers) < self._count:
            idle = [_Worker(self._answers)]
            self._workers += idle
        found = min([*idle, *self._workers], key=lambda one: len(one.jobs), default=None)
        return None if found is None or len(found.jobs) >= _MOST_JOBS else found

    def _written(self, module: Module) -> PricedProgram:
        """A program in a file, which is written once."""
        if self._program is None or module is not self._module:
            self._programs += 1
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="pyshardy-")
            path = Path(self._folder.name) / f"{self._programs}.mlirbc"
            path.write_bytes(module.bytecode())
            allows = module.context.allow_unregistered_dialects
            self._module = module
            self._program = PricedProgram(str(path), module.name, allows, self._setting, said_user_code())
        return self._program

    def _take(
        self,
        found: dict[int, Figures | None],
        given: list[Change],
        here: Callable[[Change], Figures | None],
        *,
        wait: bool,
    ) -> bool:
        """Take an answer; False if there is none. The change of a worker that has ended is priced here."""
        try:
            worker, answer = self._answers.get(block=wait)
        except Empty:
            return False
        if answer is not None:
            number, price = answer
            worker.jobs.remove(number)
            found[number] = price
        elif worker in self._workers:
            self._workers.remove(worker)
            self._count -= 1
            worker.end()
            found |= {number: here(given[number]) for number in worker.jobs}
        return True


def _cores() -> int:
    """The cores that this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # not on every system
    return os.cpu_count() or 1 if known is None else len(known(0))


def pickles(stream: IO[bytes]) -> Iterator[Any]:
    """The pickles of a stream until it ends."""
    while True:
        try:
            yield pickle.load(stream)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return
