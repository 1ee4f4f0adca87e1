"""Several processes that run a program together, with a coordination service that is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from pyshardy.errors import ShardyError
from pyshardy.runtime import peers
from pyshardy.runtime.peers import processes_of, run_together, watch_peers

TIMED_OUT = """DEADLINE_EXCEEDED: Barrier timed out. Id: x::0. This usually happens because a task was too slow.
# of tasks that reached the barrier: 1/3.
The first task at the barrier: 0. Some timed out task names:
1
/job:jax_worker/replica:0/task:12
RPC: /xla.coordination.CoordinationService/Barrier [type.googleapis.com/x='']"""


class Service:
    """What the client of JAX's coordination service does, as far as it is used."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.barriers: list[tuple[str, int, list[int]]] = []
        self.answers = threading.Event()
        self.answers.set()
        self.refusal: Exception | None = None

    def key_value_set(self, key: str, value: str, allow_overwrite: bool) -> None:
        assert allow_overwrite
        self.answers.wait()
        self.values[key] = value

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.values.items() if name.startswith(key)]

    def wait_at_barrier(self, name: str, timeout: int, processes: list[int]) -> None:
        self.barriers.append((name, timeout, processes))
        if self.refusal is not None:
            raise self.refusal


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    found = Service()
    monkeypatch.setattr(peers, "coordination_client", lambda: found)
    monkeypatch.setattr(peers, "_watch", None)
    monkeypatch.setattr(peers, "_BEAT_SECONDS", 0.02)
    monkeypatch.setattr(peers, "_LOOK_SECONDS", 0.02)
    yield found
    if peers._watch is not None:
        peers._watch.end()
    found.answers.set()


def keep_alive(service: Service, process: int, seconds: float) -> threading.Thread:
    """Give signs of life for another process for a while."""

    def beat() -> None:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            service.values[f"pyshardy/alive/{process}"] = str(number := number + 1)
            time.sleep(0.02)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    return thread


def test_one_process_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "watch_peers", None)
    assert run_together((0,), threading.current_thread) is threading.current_thread()


def test_processes_that_jax_has_not_joined_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "coordination_client", lambda: None)
    monkeypatch.setattr(peers, "_watch", None)
    assert watch_peers() is None
    assert run_together((0, 1), threading.current_thread) is threading.current_thread()


def test_all_meet_before_every_run(service: Service) -> None:
    watch_peers(7, 9)
    assert [run_together((0, 1), lambda: len(service.barriers)) for _ in range(2)] == [1, 2]
    run_together((0, 2, 3), lambda: None)
    assert service.barriers == [
        ("pyshardy/run/0-1/0", 9000, [0, 1]),
        ("pyshardy/run/0-1/1", 9000, [0, 1]),
        ("pyshardy/run/0-2-3/0", 9000, [0, 2, 3]),
    ]


def test_errors_come_out(service: Service) -> None:
    with pytest.raises(ZeroDivisionError):
        run_together((0, 1), lambda: 1 // 0)


@pytest.mark.parametrize("x64", [False, True])
def test_the_types_are_those_of_the_caller(x64: bool, service: Service) -> None:
    with jax.enable_x64(x64):
        assert run_together((0, 1), lambda: jax.numpy.zeros(1, float).dtype.itemsize) == (8 if x64 else 4)


def test_who_does_not_come_is_named(service: Service) -> None:
    watch_peers(7, 9)
    service.refusal = jax.errors.JaxRuntimeError(TIMED_OUT)
    with pytest.raises(ShardyError) as caught:
        run_together((0, 1, 12), lambda: None)
    assert str(caught.value) == (
        "running a program in several processes: got process 1, 12 did not arrive within 9 s, needed the same runs in all "
        "processes\n  try: look at what that process does, or give initialize_distributed a longer wait_s"
    )


def test_another_error_of_the_barrier(service: Service) -> None:
    service.refusal = jax.errors.JaxRuntimeError("UNAVAILABLE: it is gone\nmore")
    with pytest.raises(ShardyError, match="got UNAVAILABLE: it is gone, needed all processes of the program to keep"):
        run_together((0, 1), lambda: None)


@pytest.mark.slow
def test_a_process_that_falls_silent_is_lost(service: Service) -> None:
    watch_peers(0.5, 9)
    keep_alive(service, 1, 60)
    keep_alive(service, 2, 1)
    start = time.monotonic()
    with pytest.raises(ShardyError) as caught:
        run_together((0, 1, 2), lambda: time.sleep(30))
    assert str(caught.value).startswith(
        "running a program in several processes: got no heartbeat from process 2 for 0.5 s, needed all processes"
    )
    assert 0.5 < time.monotonic() - start < 20


@pytest.mark.slow
def test_a_service_that_falls_silent_is_process_0(service: Service) -> None:
    watch_peers(0.5, 9)
    keep_alive(service, 1, 60)
    service.answers.clear()
    with pytest.raises(ShardyError, match="got no heartbeat from process 0 for 0.5 s"):
        run_together((0, 1), lambda: time.sleep(30))


@pytest.mark.slow
def test_what_takes_long_is_waited_for(service: Service) -> None:
    watch_peers(0.5, 9)
    keep_alive(service, 1, 60)
    assert run_together((0, 1), lambda: time.sleep(2) or "done") == "done"


def test_silence_from_before_a_pause_of_this_process_is_none() -> None:
    """Whoever was stopped has seen nothing meanwhile."""
    watching = object.__new__(peers._Watch)
    now = time.monotonic()
    watching.lost_after, watching._reached, watching._seen = 5.0, now, {1: now - 60}
    assert watching.lost((0, 1), since=now - 100) == 1
    assert watching.lost((0, 1), since=now) is None
    assert watching.lost((0, 2), since=now - 100) is None  # which has never begun
    watching._reached = now - 60
    assert watching.lost((1,), since=now - 100) == 0
    assert watching.lost((1,), since=now) is None


def test_the_processes_of_devices() -> None:
    assert processes_of(SimpleNamespace(process_index=index) for index in (3, 0, 3, 1)) == (0, 1, 3)


def test_a_new_client_is_watched_anew(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first: Any = watch_peers(7, 9)
    assert watch_peers() is first and (first.lost_after, first.wait) == (7, 9)
    monkeypatch.setattr(peers, "coordination_client", Service)
    assert watch_peers() is not first
    assert first._ended.is_set()
