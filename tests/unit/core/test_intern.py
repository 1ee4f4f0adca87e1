from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.intern import Interned, as_integer, clear_caches, register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError

MAKERS: list[Callable[[], Interned]] = [
    lambda: Mesh([("x", 2), ("y", 4)]),
    lambda: Mesh([("x", 2), ("y", 4)], device_ids=range(7, -1, -1)),
    lambda: Mesh([], device_ids=[3]),
    lambda: Mesh([]),
    lambda: AxisRef("x"),
    lambda: AxisRef("x", 2, 4),
    lambda: DimSharding(["x", AxisRef("y", 1, 2)], is_open=True, priority=1),
    lambda: TensorSharding("m", [DimSharding(["x"])], ["y"], [AxisRef("z", 2, 2)], ReductionKind.MAX),
    lambda: TensorSharding(Mesh([("x", 2)]), [DimSharding(["x"])]),
]
makers = pytest.mark.parametrize("make", MAKERS, ids=lambda make: str(make()))


@makers
def test_equal_content_is_one_object(make: Callable[[], Interned]) -> None:
    assert make() is make()
    assert {make(): 1}[make()] == 1


def test_different_content_is_different_objects() -> None:
    values = [make() for make in MAKERS]
    assert len(set(values)) == len(MAKERS)
    assert all(one != other for at, one in enumerate(values) for other in values[:at])


def test_the_same_fields_of_another_class_are_another_value() -> None:
    class One(Interned):
        __slots__ = ("field",)

    class Two(Interned):
        __slots__ = ("field",)

    assert One._make((1,)) is One._make((1,))
    assert One._make((1,)) != Two._make((1,))


def test_arguments_of_any_iterable_kind_give_the_same_value() -> None:
    assert Mesh(iter([["x", 2]]), iter([1, 0])) is Mesh((("x", 2),), (1, 0))
    assert DimSharding(axis for axis in ["x"]) is DimSharding((AxisRef("x"),))


@makers
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_gives_the_same_object(make: Callable[[], Interned], protocol: int) -> None:
    value = make()
    assert pickle.loads(pickle.dumps(value, protocol)) is value


@pytest.mark.slow
def test_pickles_outlive_the_values() -> None:
    pickled = {str(make()): pickle.dumps(make()) for make in MAKERS}
    gc.collect()
    assert [str(pickle.loads(one)) for one in pickled.values()] == list(pickled)
    assert len(pickled) == len(MAKERS)


def test_unpickling_checks_what_it_makes() -> None:
    rebuild, (cls, _) = AxisRef("x", 2, 4).__reduce__()
    with pytest.raises(InvalidShardingError, match="got sub-axis pre-size 0, needed at least 1"):
        rebuild(cls, ("x", 0, 4))


@makers
def test_copies_are_the_same_object(make: Callable[[], Interned]) -> None:
    value = make()
    assert copy.copy(value) is copy.deepcopy(value) is value
    assert copy.deepcopy([value, {"key": value}]) == [value, {"key": value}]


@makers
def test_values_are_immutable(make: Callable[[], Interned]) -> None:
    value = make()
    kind = type(value).__name__
    field = value._fields[0]
    with pytest.raises(AttributeError, match=f"{kind} is immutable; make a new one instead of setting '{field}'"):
        setattr(value, field, None)
    with pytest.raises(AttributeError, match=f"{kind} is immutable; make a new one instead of setting 'other'"):
        value.other = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=f"{kind} is immutable; '{field}' cannot be deleted"):
        delattr(value, field)
    assert value is make()


@pytest.mark.slow
def test_values_are_freed() -> None:
    value = AxisRef("used nowhere else")
    address = weakref.ref(value)
    del value
    gc.collect()
    assert address() is None


@pytest.mark.slow
def test_a_value_keeps_its_parts_and_nothing_keeps_the_value() -> None:
    sharding = TensorSharding("m", [DimSharding(["used nowhere else"])])
    whole, part = weakref.ref(sharding), weakref.ref(sharding.dims[0].axes[0])
    gc.collect()
    assert part() is AxisRef("used nowhere else")
    del sharding
    gc.collect()
    assert whole() is None
    assert part() is None


def test_an_invalid_value_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidShardingError):
            AxisRef("x", 0, 2)


def test_clearing_caches_calls_what_is_registered_and_keeps_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyshardy.core.intern._cache_clearers", [])
    cleared: list[str] = []
    register_cache(lambda: cleared.append("first"))
    register_cache(lambda: cleared.append("second"))
    values = [make() for make in MAKERS]
    clear_caches()
    assert cleared == ["first", "second"]
    assert all(value is make() for value, make in zip(values, MAKERS))


def test_threads_get_the_same_object(eager_threads: None) -> None:
    rounds, count = 60, 4
    barrier = threading.Barrier(count)
    made: list[list[Interned]] = [[] for _ in range(count)]

    def work(mine: list[Interned]) -> None:
        for index in range(rounds):
            barrier.wait()
            mine.extend(AxisRef(f"axis {index} {part}", 2, 2) for part in range(20))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made[0]) == rounds * 20
    assert all(value is first for mine in made for value, first in zip(mine, made[0]))


@pytest.mark.parametrize("integer", [int, np.int64, np.int32, bool])
def test_integers_of_other_kinds_become_plain_ones(integer: Callable[[int], Any]) -> None:
    name = f"an axis of {integer.__name__}"
    one = integer(1)
    values = [
        Mesh([(name, one)]),
        Mesh([(name, 2)], device_ids=[one, integer(0)]),
        AxisRef(name, one, 2),
        DimSharding([name], priority=one),
    ]
    assert [str(value) for value in values] == [
        f'<["{name}"=1]>',
        f'<["{name}"=2], device_ids=[1, 0]>',
        f'"{name}":(1)2',
        f'{{"{name}"}}p1',
    ]
    assert type(as_integer(one, "counting")) is int


@pytest.mark.parametrize("value", [2.5, "2", None])
def test_what_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(InvalidShardingError, match=f"counting: got {value!r}, needed an integer"):
        as_integer(value, "counting")
