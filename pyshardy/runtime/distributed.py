"""Joining the processes of a program on several machines, on JAX's own distributed runtime.

JAX ends a process that waits in vain for another one. Process 0 of 2, if it is alone, aborts in
`jax.distributed.initialize` after the `initialization_timeout`, and prints a C++ stack (jaxlib 0.10 and 0.12). Here the
processes connect to process 0 first. If one is missing, the others raise an error.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import jax

from pyshardy.errors import ShardyError, UsageError
from pyshardy.runtime.peers import watch_peers

_RETRY_SECONDS = 0.1
_HELLO_SECONDS = 5.0
"""How long process 0 listens to one connection. A process sends its number at once."""
_LONGEST_HELLO = 20
_LAST_PORT = 65535
_PORT_DIGITS = 5
_INSTANT = 0.001
_LEAST_SECONDS = 5
_LONGEST_WAIT = 10**6
_GO = b"go\n"
_COUNT = b"count "
"""The prefix of the message in which process 0 tells its process count to a process with another count."""
_DOING = "joining the processes of a program"


def initialize_distributed(
    coordinator: str,
    process_count: int,
    process_id: int,
    timeout_s: float = 60.0,
    lost_after_s: float = 20.0,
    wait_s: float = 300.0,
) -> None:
    """Join the other processes, so that `jax.devices()` are the devices of all, and `pyshardy.run` uses them.

    Every process calls it once, before anything else of JAX. It waits for all processes and then calls
    `jax.distributed.initialize`. A program that calls that itself does not need it.

    Args:
        coordinator: Host and port at which process 0 listens, "10.0.0.1:1234".
        process_count: Number of processes.
        process_id: The number of this process, from 0.
        timeout_s: The seconds to wait for the others.
        lost_after_s: The seconds without a heartbeat of a process after which `pyshardy.run` raises an error in the
            others; at least 5. After twice as long, JAX ends them.
        wait_s: The seconds that `pyshardy.run` waits for the other processes to call it, as long as they are alive.

    Raises:
        UsageError: The coordinator is not host and port, a number is not a process, process 0 has another process
            count, `lost_after_s` is less than 5, or `wait_s` is not positive.
        ShardyError: Not all processes connected in time, or JAX fails to join them.
    """
    host, port = _address(coordinator)
    _check_processes(process_count, process_id)
    _check_seconds(timeout_s, lost_after_s, wait_s)
    deadline = time.monotonic() + timeout_s
    if process_id == 0:
        _gather(host, port, process_count, deadline, timeout_s)
    else:
        _report(host, port, (process_id, process_count), deadline, timeout_s)
    lost = int(lost_after_s)
    try:
        jax.distributed.initialize(
            coordinator,
            process_count,
            process_id,
            initialization_timeout=max(1, int(timeout_s)),
            heartbeat_timeout_seconds=2 * lost,
            shutdown_timeout_seconds=lost,
        )
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ShardyError(_DOING, got=reason, needed="processes that have not used JAX before") from error
    watch_peers(lost_after_s, wait_s)


def _check_processes(process_count: int, process_id: int) -> None:
    for name, value in (("process_count", process_count), ("process_id", process_id)):
        if not isinstance(value, int):
            raise UsageError(_DOING, got=f"{name} {value!r}", needed="a whole number")
    if not 0 <= process_id < process_count:
        raise UsageError(_DOING, got=f"process {process_id}", needed=f"one of 0 to {process_count - 1}")


def _check_seconds(timeout_s: float, lost_after_s: float, wait_s: float) -> None:
    for name, seconds in (("timeout_s", timeout_s), ("lost_after_s", lost_after_s), ("wait_s", wait_s)):
        if not isinstance(seconds, (int, float)):
            raise UsageError(_DOING, got=f"{name} {seconds!r}", needed="a number of seconds")
    if not lost_after_s >= _LEAST_SECONDS:
        raise UsageError(_DOING, got=f"lost_after_s {lost_after_s:g}", needed=f"{_LEAST_SECONDS} or more")
    if not 0 < wait_s < _LONGEST_WAIT:
        raise UsageError(_DOING, got=f"wait_s {wait_s:g}", needed=f"more than 0 and less than {_LONGEST_WAIT}")


def _address(coordinator: str) -> tuple[str, int]:
    needed = "a host and a port, such as host:1234"
    if not isinstance(coordinator, str):
        raise UsageError(_DOING, got=f"the coordinator {coordinator!r}", needed=needed)
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(_DOING, got=f"the coordinator '{coordinator}'", needed=needed)
    if len(port) > _PORT_DIGITS or not 0 < int(port) <= _LAST_PORT:
        raise UsageError(_DOING, got=f"the port {port[:20]}", needed=f"one from 1 to {_LAST_PORT}")
    return host, int(port)


def _gather(host: str, port: int, process_count: int, deadline: float, timeout_s: float) -> None:
    """Wait until every other process has sent its number, then let all continue."""
    waiting: dict[int, socket.socket] = {}
    with _listener(host, port) as listener, ExitStack() as connections:
        while missing := [number for number in range(1, process_count) if not _is_open(waiting.get(number))]:
            try:
                listener.settimeout(max(_INSTANT, deadline - time.monotonic()))
                connection = connections.enter_context(listener.accept()[0])
            except TimeoutError:
                numbers = ", ".join(map(str, missing))
                raise _missing(f"process {numbers} did not connect", timeout_s) from None
            number, count = _said(connection)
            if count not in (None, process_count):
                with suppress(OSError):
                    connection.sendall(_COUNT + f"{process_count}\n".encode())
                raise _other_count(process_count, f"process {number}", count)
            waiting[number] = connection
        for number in range(1, process_count):
            try:
                waiting[number].sendall(_GO)
            except OSError:
                raise _missing(f"process {number} disconnected", timeout_s) from None


def _said(connection: socket.socket) -> tuple[int, int | None]:
    """The number of a process and its process count, as it reports them; -1 and None for any other caller."""
    connection.settimeout(_HELLO_SECONDS)
    try:
        with connection.makefile(errors="replace") as lines:
            number, count = map(int, lines.readline(_LONGEST_HELLO).split())
            return number, count
    except (OSError, ValueError):
        return -1, None


def _is_open(connection: socket.socket | None) -> bool:
    """Whether there is a connection with a process at its other end."""
    if connection is None:
        return False
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextmanager
def _listener(host: str, port: int) -> Iterator[socket.socket]:
    try:
        listener = socket.create_server(("", port) if host in ("", "0.0.0.0") else (host, port))
    except OSError as error:
        raise ShardyError(_DOING, got=f"{host}:{port}: {error.strerror}", needed="an address to listen at") from error
    with listener:
        yield listener


def _report(host: str, port: int, own: tuple[int, int], deadline: float, timeout_s: float) -> None:
    """Send the number of this process and the process count to process 0, and wait until it lets all continue."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _missing(f"process 0 does not answer at {host}:{port}", timeout_s)
        try:
            with socket.create_connection((host, port), timeout=left) as connection:
                connection.sendall("{} {}\n".format(*own).encode())
                answer = connection.makefile("rb").readline()
                if answer == _GO:
                    return
                if answer.startswith(_COUNT):
                    raise _other_count(own[1], "process 0", int(answer.removeprefix(_COUNT)))
        except OSError:
            pass  # process 0 or another process is missing: try again until time is up
        time.sleep(_RETRY_SECONDS)


def _other_count(own: int, other: str, count: int | None) -> UsageError:
    return UsageError(
        _DOING, got=f"{own} processes here, {count} in {other}", needed="the same process_count in all processes"
    )


def _missing(what: str, timeout_s: float) -> ShardyError:
    return ShardyError(
        _DOING,
        got=f"{what} within {timeout_s:g} s",
        needed="all processes",
        hint="start all of them with the same coordinator and number of processes, or give a longer timeout_s",
    )
