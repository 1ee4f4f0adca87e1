"""How processes find each other before JAX joins them."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import pytest

from pyshardy.errors import ShardyError, UsageError
from pyshardy.runtime.distributed import initialize_distributed as connect

Joined = list[tuple[Any, ...]]


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Joined:
    """What JAX's own runtime is asked for instead of doing it."""
    calls: Joined = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda *args, **options: calls.append(args))
    return calls


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """Do something beside the test; the error that it ends with."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            action()
        except ShardyError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


def dial(port: int) -> socket.socket:
    """A connection to process 0, as soon as it listens."""
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError("nobody listens")


def address(port: int) -> str:
    return f"127.0.0.1:{port}"


@pytest.mark.parametrize("late", [0, 2])
def test_all_go_on_once_all_are_there(late: int, joined: Joined, port: int) -> None:
    def come(process: int) -> Callable[[], object]:
        return lambda: connect(address(port), 3, process, timeout_s=30)

    early = [in_thread(come(process)) for process in range(3) if process != late]
    time.sleep(0.3)
    assert joined == []
    come(late)()
    for thread, errors in early:
        thread.join(30)
        assert not thread.is_alive() and not errors
    assert sorted(joined) == [(address(port), 3, process) for process in range(3)]


def test_one_process_waits_for_nobody(joined: Joined, port: int) -> None:
    connect(address(port), 1, 0, timeout_s=5)
    assert joined == [(address(port), 1, 0)]


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\n", b"7\n", b"7 2\n", b"0 2\n", b"-1 2\n", b"x" * 10_000, b"\xff\xfe\n"]
)
def test_strangers_are_no_processes(said: bytes, joined: Joined, port: int) -> None:
    thread, errors = in_thread(lambda: connect(address(port), 2, 0, timeout_s=30))
    with dial(port) as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        connect(address(port), 2, 1, timeout_s=30)
        thread.join(30)
    assert not thread.is_alive() and not errors
    assert len(joined) == 2


@pytest.mark.slow
def test_a_process_that_comes_and_leaves_is_waited_for(joined: Joined, port: int) -> None:
    thread, errors = in_thread(lambda: connect(address(port), 3, 0, timeout_s=1.5))
    with dial(port) as leaver:
        leaver.sendall(b"1 3\n")
    with dial(port) as other:
        other.sendall(b"2 3\n")
        thread.join(30)
    (error,) = errors
    assert "got process 1 did not connect within 1.5 s" in str(error)
    assert joined == []


def test_all_that_are_missing_are_named(joined: Joined, port: int) -> None:
    with pytest.raises(ShardyError) as caught:
        connect(address(port), 4, 0, timeout_s=0.2)
    assert str(caught.value) == (
        "joining the processes of a program: got process 1, 2, 3 did not connect within 0.2 s, needed all processes\n"
        "  try: start all of them with the same coordinator and number of processes, or give a longer timeout_s"
    )
    assert joined == []


@pytest.mark.slow
def test_process_0_that_hangs_up_is_dialled_again_until_time_is_up(joined: Joined, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as server:
        thread, errors = in_thread(lambda: connect(address(port), 2, 1, timeout_s=1))
        for _ in range(2):
            server.accept()[0].close()
        thread.join(30)
    (error,) = errors
    assert f"process 0 does not answer at {address(port)} within 1 s" in str(error)
    assert joined == []


@pytest.mark.parametrize("coordinator", ["", "host", ":80", "host:", "host:port", "host:-1"])
def test_a_coordinator_is_a_host_and_a_port(coordinator: str, joined: Joined) -> None:
    with pytest.raises(UsageError) as caught:
        connect(coordinator, 2, 0)
    needed = "needed a host and a port, such as host:1234"
    assert str(caught.value) == f"joining the processes of a program: got the coordinator '{coordinator}', {needed}"


@pytest.mark.parametrize("process", [-1, 2])
def test_a_number_that_is_no_process(process: int, joined: Joined) -> None:
    with pytest.raises(UsageError, match=f"got process {process}, needed one of 0 to 1"):
        connect("127.0.0.1:1", 2, process)


def test_an_address_that_is_taken(joined: Joined, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ShardyError) as caught:
        connect(address(port), 2, 0, timeout_s=1)
    assert re.search(
        f"got {address(port)}: Address already in use.*, needed an address to listen at", str(caught.value)
    )


def test_jax_that_has_begun_already(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    def initialize(*_: Any, **__: Any) -> None:
        raise RuntimeError("jax.distributed.initialize() must be called before any JAX calls")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    with pytest.raises(ShardyError, match="got jax.distributed.initialize.. must be called before any JAX calls"):
        connect(address(port), 1, 0)


def test_processes_that_count_differently_are_refused_on_both_sides(joined: Joined, port: int) -> None:
    thread, errors = in_thread(lambda: connect(address(port), 2, 0, timeout_s=30))
    with pytest.raises(UsageError) as caught:
        connect(address(port), 3, 1, timeout_s=30)
    thread.join(30)
    needed = "needed the same process_count in all processes"
    assert str(caught.value) == f"joining the processes of a program: got 3 processes here, 2 in process 0, {needed}"
    assert [str(error) for error in errors] == [
        f"joining the processes of a program: got 2 processes here, 3 in process 1, {needed}"
    ]
    assert joined == []


def test_jax_is_told_after_how_long_a_process_is_lost(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    asked: list[dict[str, int]] = []
    monkeypatch.setattr(jax.distributed, "initialize", lambda *_, **options: asked.append(options))
    connect(address(port), 1, 0, timeout_s=7, lost_after_s=11.5)
    assert asked == [{"initialization_timeout": 7, "heartbeat_timeout_seconds": 22, "shutdown_timeout_seconds": 11}]


@pytest.mark.parametrize("seconds", [0, -1, 4.9, float("nan")])
def test_a_process_is_not_lost_at_once(seconds: float, joined: Joined, port: int) -> None:
    with pytest.raises(UsageError, match=r"got lost_after_s .*, needed 5 or more"):
        connect(address(port), 1, 0, lost_after_s=seconds)
    assert joined == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_process_is_waited_for(seconds: float, joined: Joined, port: int) -> None:
    with pytest.raises(UsageError, match=r"got wait_s .*, needed more than 0 and less than 1000000"):
        connect(address(port), 1, 0, wait_s=seconds)
    assert joined == []
