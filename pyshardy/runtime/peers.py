"""Running a program in several processes, none of which waits for another for ever.

JAX's coordination service holds the barrier at which all meet before they run, and the signs of life that they give
while they do. It would end a process over the death of another one, and over one that is alive and does not come it
would not.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

import jax

from pyshardy.errors import ShardyError
from pyshardy.frontend.jax_private import coordination_client

T = TypeVar("T")

_DOING = "running a program in several processes"
_BEAT_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 3.0
"""A process that has not looked for so long was stopped itself, so its observations are old."""
_ALIVE = "pyshardy/alive/"
_LATE = re.compile(r"Some timed out task names:\n(.*?)(?:\nRPC:|\Z)", re.DOTALL)
_NUMBER = re.compile(r"(\d+)\s*$", re.MULTILINE)


class _Watch:
    """Gives signs of life of this process, and sees those of the others, in a thread of its own.

    Args:
        client: That of JAX's coordination service.
        process: The number of this process.
        lost_after: Seconds without a sign of life after which a process is lost.
        wait: Seconds to wait for a process that is alive.
    """

    def __init__(self, client: Any, process: int, lost_after: float, wait: float) -> None:
        self.client, self.lost_after, self.wait = client, lost_after, wait
        self._process = process
        self._beats: dict[int, str] = {}
        self._seen: dict[int, float] = {}
        self._reached = time.monotonic()
        self._runs: dict[tuple[int, ...], count[int]] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="pyshardy signs of life", daemon=True).start()

    def _beat(self) -> None:
        for number in count():
            with suppress(jax.errors.JaxRuntimeError, ValueError):
                self.look(number)
            if self._ended.wait(_BEAT_SECONDS):
                return

    def end(self) -> None:
        """Give no more signs of life."""
        self._ended.set()

    def look(self, number: int) -> None:
        """Give a sign of life, and note those of the others."""
        self.client.key_value_set(f"{_ALIVE}{self._process}", str(number), allow_overwrite=True)
        beats = {int(key.rpartition("/")[2]): beat for key, beat in self.client.key_value_dir_get(_ALIVE)}
        self._reached = now = time.monotonic()
        for process, beat in beats.items():
            if self._beats.get(process) != beat:
                self._seen[process] = now
        self._beats = beats

    def lost(self, processes: Iterable[int], since: float) -> int | None:
        """A process that has given no sign of life for too long, at least since a moment; None if there is none."""
        now = time.monotonic()
        if now - max(self._reached, since) > self.lost_after:
            return 0  # which keeps the signs of all
        seen = dict(self._seen)
        return next((at for at in processes if at in seen and now - max(seen[at], since) > self.lost_after), None)

    def meet(self, processes: tuple[int, ...]) -> None:
        """Wait until all processes have come here as often as this one."""
        number = next(self._runs.setdefault(processes, count()))
        name = f"pyshardy/run/{'-'.join(map(str, processes))}/{number}"
        try:
            self.client.wait_at_barrier(name, int(self.wait * 1000), list(processes))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            raise _missing(str(error), self.wait) from error


def _missing(reason: str, wait: float) -> ShardyError:
    """The error of a barrier that not all have come to."""
    late = _LATE.search(reason)
    if late is None:
        got = reason.partition("\n")[0]
        hint = "look at what the other processes printed"
        return ShardyError(_DOING, got=got, needed="all processes of the program to keep running", hint=hint)
    numbers = ", ".join(_NUMBER.findall(late[1]))
    return ShardyError(
        _DOING,
        got=f"process {numbers} did not come within {wait:g} s",
        needed="the same runs in all processes",
        hint="look at what that process does, or give initialize_distributed a longer wait_s",
    )


_LOST_AFTER, _WAIT = 20.0, 300.0
_watch: _Watch | None = None
_starting = threading.Lock()


def watch(lost_after_s: float = _LOST_AFTER, wait_s: float = _WAIT) -> _Watch | None:
    """Begin to give signs of life, and to look for those of the others; None if JAX's processes are not joined.

    Args:
        lost_after_s: Seconds without a sign of life after which a process is lost.
        wait_s: Seconds to wait for a process that is alive.
    """
    global _watch
    client = coordination_client()
    with _starting:
        if _watch is None or _watch.client is not client:
            if _watch is not None:
                _watch.end()
            _watch = None if client is None else _Watch(client, jax.process_index(), lost_after_s, wait_s)
        return _watch


def processes_of(devices: Iterable[Any]) -> tuple[int, ...]:
    """The processes that have some of the devices."""
    return tuple(sorted({device.process_index for device in devices}))


def together(processes: tuple[int, ...], action: Callable[[], T]) -> T:
    """What an action gives that all processes run together; nothing special in a single one.

    Args:
        processes: The numbers of the processes.
        action: What to run; it may wait for the others as long as it likes.

    Raises:
        ShardyError: A process does not come in time, or gives no sign of life any more.
    """
    watching = watch() if len(processes) > 1 else None
    if watching is None:
        return action()
    found: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    x64 = jax.config.read("jax_enable_x64")

    def work() -> None:
        try:
            watching.meet(processes)
            with jax.enable_x64(x64):  # contexts are those of a thread
                found.append(action())
        except BaseException as error:  # noqa: BLE001 (it is raised where it is waited for)
            errors.append(error)
        done.set()

    threading.Thread(target=work, name="pyshardy run", daemon=True).start()
    _wait(done, watching, processes)
    if errors:
        raise errors[0]
    return found[0]


def _wait(done: threading.Event, watching: _Watch, processes: tuple[int, ...]) -> None:
    """Wait until it is done, or until a process is lost."""
    since = looked = time.monotonic()
    while not done.wait(_LOOK_SECONDS):
        now = time.monotonic()
        if now - looked > _PAUSE_SECONDS:
            since = now
        looked = now
        lost = watching.lost(processes, since)
        if lost is not None and not done.is_set():
            raise ShardyError(
                _DOING,
                got=f"no sign of life from process {lost} for {watching.lost_after:g} s",
                needed="all processes of the program to keep running",
                hint="look at what that process printed; JAX will end this one soon, if it does not end before",
            )
