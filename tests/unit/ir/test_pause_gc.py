from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from pyshardy.ir import pause_gc as module
from pyshardy.ir.pause_gc import pause_gc

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    """Undo what `tests/conftest.py` does for all other tests."""
    gc.unfreeze()
    yield
    gc.enable()
    gc.collect()
    gc.freeze()


class Node:
    def __init__(self, other: Node | None = None) -> None:
        self.other = other or self


def make(count: int) -> list[Node]:
    with pause_gc():
        return [Node() for _ in range(count)]


def is_old(node: Node) -> bool:
    return any(found is node for found in gc.get_objects(generation=2))


def test_much_that_is_made_counts_as_old_at_once() -> None:
    gc.collect()
    many = make(2 * module._MANY)
    assert is_old(many[0])
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_little_that_is_made_is_left_to_the_collector() -> None:
    gc.collect()
    assert not is_old(make(10)[0])


def test_what_others_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert frozen > 0
        make(2 * module._MANY)
        assert frozen // 2 < gc.get_freeze_count() <= frozen  # a few may die meanwhile, of other threads too
    finally:
        gc.unfreeze()


def test_garbage_among_what_is_old_is_found_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 5 * module._MANY)
    monkeypatch.setattr(module, "_aged", 0)
    gc.collect()
    first = weakref.ref(make(module._MANY + 1000)[0])
    assert first() is not None
    for _ in range(5):
        make(module._MANY + 1000)
    assert first() is None


def test_the_collector_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with pause_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_on_again_after_the_last_of_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread asks whether it is on, and switches it off only when another one has switched it on."""
    first_is_in, second_asks, second_goes_on = (threading.Event() for _ in range(3))
    is_enabled = gc.isenabled

    def asked() -> bool:
        answer = is_enabled()
        if threading.current_thread().name == "second":
            second_asks.set()
            assert second_goes_on.wait(10)
        return answer

    def first() -> None:
        with pause_gc():
            first_is_in.set()
            second_asks.wait(1)
        second_goes_on.set()

    def second() -> None:
        assert first_is_in.wait(10)
        with pause_gc():
            pass

    monkeypatch.setattr(gc, "isenabled", asked)
    threads = [threading.Thread(target=first), threading.Thread(target=second, name="second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert is_enabled()
