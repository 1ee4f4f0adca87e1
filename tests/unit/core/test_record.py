from __future__ import annotations

from copy import deepcopy
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any, ClassVar

import pytest

from pyshardy.core.record import Record


class Base(Record):
    kind: ClassVar[str] = "base"

    depth: int
    name: str = "x"


class Child(Base):
    kind = "child"


class Grandchild(Child):
    is_last: bool = True


class Empty(Record):
    pass


class Checked(Record):
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"the size {self.size}")


def test_values_are_given_by_place_by_name_or_by_default() -> None:
    found = Grandchild(1, is_last=False)
    assert (found.depth, found.name, found.is_last, found.kind) == (1, "x", False, "child")
    assert repr(found) == "Grandchild(depth=1, name='x', is_last=False)"
    assert repr(Empty()) == "Empty()"


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((), {}, "Base() needs a value for 'depth'"),
        ((1, "y", 2), {}, "Base() takes 2 values, not 3"),
        ((1,), {"depth": 2}, "Base() got a second or unexpected value for 'depth'"),
        ((1,), {"kind": "y"}, "Base() got a second or unexpected value for 'kind'"),
    ],
)
def test_wrong_values_are_refused(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Base(*args, **kwargs)
    assert str(caught.value) == message


def test_values_that_a_class_refuses() -> None:
    assert Checked(0).size == 0
    for make in (lambda: Checked(-1), lambda: replace(Checked(), size=-1)):
        with pytest.raises(ValueError, match="the size -1"):
            make()


def test_equality_is_that_of_class_and_values() -> None:
    assert Base(1) == Base(1, "x") and hash(Base(1)) == hash(Base(1, "x"))
    assert Base(1) != Base(2)
    assert Base(1) != Child(1) and Base(1) != (1, "x")
    assert len({Base(1), Base(1), Child(1)}) == 2


def test_values_are_frozen() -> None:
    found = Base(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'depth'"):
        found.depth = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'depth'"):
        del found.depth
    assert found == Base(1)


def test_it_is_a_data_class() -> None:
    assert [field.name for field in fields(Grandchild)] == ["depth", "name", "is_last"]
    assert fields(Empty) == () and fields(Child) == fields(Base)
    assert replace(Child(1), name="y") == Child(1, "y")
    assert asdict(Grandchild(1)) == {"depth": 1, "name": "x", "is_last": True}
    assert deepcopy(Child(3)) == Child(3)
    match Child(3, "y"):
        case Base(depth, name):
            assert (depth, name) == (3, "y")
