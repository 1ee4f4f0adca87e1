"""Runs a program in several processes without one waiting for another for ever.

JAX's coordination service provides the barrier before a run and the store for heartbeats. It ends a process if another
one dies. It does not if another one is alive, but never reaches the barrier.
"""

from __future__ import annotations

import atexit
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

_T = TypeVar("_T")

_DOING = "running a program in several processes"
_BEAT_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 3.0
"""A process that has not checked heartbeats for this long was itself suspended, so its observations are outdated."""
_EXIT_SECONDS = 2.0
"""How long the end of the process waits for a last heartbeat."""
_ALIVE = "pyshardy/alive/"
_LATE = re.compile(r"Some timed out task names:\n(.*?)(?:\nRPC:|\Z)", re.DOTALL)
_NUMBER = re.compile(r"(\d+)\s*$", re.MULTILINE)


class _Watch:
    """Sends heartbeats of this process and watches those of the others, in its own thread.

    Args:
        client: The client of JAX's coordination service.
        process: The number of this process.
        lost_after: The seconds without a heartbeat after which a process is lost.
        wait: The seconds to wait for a process that is alive.
    """

    def __init__(self, client: Any, process: int, lost_after: float, wait: float) -> None:
        self.client, self.lost_after, self.wait = client, lost_after, wait
        self._process = process
        self._beats: dict[int, str] = {}
        self._seen: dict[int, float] = {}
        self._reached = time.monotonic()
        self._runs: dict[tuple[int, ...], count[int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pyshardy heartbeats", daemon=True)
        self._thread.start()
        atexit.register(self._end_and_wait)

    def _beat(self) -> None:
        for number in count():
            with suppress(jax.errors.JaxRuntimeError, ValueError):
                self.look(number)
            if self._ended.wait(_BEAT_SECONDS):
                return

    def end(self) -> None:
        """Stop sending heartbeats."""
        self._ended.set()
        atexit.unregister(self._end_and_wait)

    def _end_and_wait(self) -> None:
        """End the thread before Python does, which would end the process if the thread is in C++ just then."""
        self._ended.set()
        self._thread.join(_EXIT_SECONDS)

    def look(self, number: int) -> None:
        """Send a heartbeat, and record those of the others."""
        self.client.key_value_set(f"{_ALIVE}{self._process}", str(number), allow_overwrite=True)
        beats = {int(key.rpartition("/")[2]): beat for key, beat in self.client.key_value_dir_get(_ALIVE)}
        self._reached = now = time.monotonic()
        for process, beat in beats.items():
            if self._beats.get(process) != beat:
                self._seen[process] = now
        self._beats = beats

    def lost(self, processes: Iterable[int], since: float) -> int | None:
        """A process without a heartbeat for too long, and since a given moment; None if there is none."""
        now = time.monotonic()
        if now - max(self._reached, since) > self.lost_after:
            return 0  # it keeps the heartbeats of all
        seen = dict(self._seen)
        return next((at for at in processes if at in seen and now - max(seen[at], since) > self.lost_after), None)

    def meet(self, processes: tuple[int, ...]) -> None:
        """Wait until all processes have called this as often as this process."""
        number = next(self._runs.setdefault(processes, count()))
        name = f"pyshardy/run/{'-'.join(map(str, processes))}/{number}"
        try:
            self.client.wait_at_barrier(name, int(self.wait * 1000), list(processes))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            raise _missing(str(error), self.wait) from error


def _missing(reason: str, wait: float) -> ShardyError:
    """The error for a barrier that not all processes have reached."""
    late = _LATE.search(reason)
    if late is None:
        got = reason.partition("\n")[0]
        hint = "look at what the other processes printed"
        return ShardyError(_DOING, got=got, needed="all processes of the program to keep running", hint=hint)
    numbers = ", ".join(_NUMBER.findall(late[1]))
    return ShardyError(
        _DOING,
        got=f"process {numbers} did not arrive within {wait:g} s",
        needed="the same runs in all processes",
        hint="look at what that process does, or give initialize_distributed a longer wait_s",
    )


_LOST_AFTER, _WAIT = 20.0, 300.0
_watch: _Watch | None = None
_starting = threading.Lock()


def watch_peers(lost_after_s: float = _LOST_AFTER, wait_s: float = _WAIT) -> _Watch | None:
    """Start sending and watching heartbeats; None if JAX's processes are not joined.

    Args:
        lost_after_s: The seconds without a heartbeat after which a process is lost.
        wait_s: The seconds to wait for a process that is alive.
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
    """The processes that own the devices."""
    return tuple(sorted({device.process_index for device in devices}))


def run_together(processes: tuple[int, ...], action: Callable[[], _T]) -> _T:
    """Run an action that all processes run together; return its result.

    Args:
        processes: The numbers of the processes.
        action: The action; it may block on the other processes.

    Raises:
        ShardyError: A process does not arrive in time, or sends no heartbeats any more.
    """
    watching = watch_peers() if len(processes) > 1 else None
    if watching is None:
        return action()
    found: list[_T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    x64 = jax.config.read("jax_enable_x64")

    def work() -> None:
        try:
            watching.meet(processes)
            with jax.enable_x64(x64):  # contexts belong to a thread
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
    """Wait until the action is done or a process is lost."""
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
                got=f"no heartbeat from process {lost} for {watching.lost_after:g} s",
                needed="all processes of the program to keep running",
                hint="look at what that process printed; JAX will soon end this one too",
            )
