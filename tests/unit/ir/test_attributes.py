from __future__ import annotations

from collections.abc import Callable

import pytest

from pyshardy.ir.attributes import NO_ATTRS, Attributes, freeze
from pyshardy.ir.nodes import Op

CHANGES: list[Callable[[Attributes], object]] = [
    lambda attrs: attrs.__setitem__("x", 2),
    lambda attrs: attrs.__delitem__("x"),
    lambda attrs: attrs.__ior__({"y": 1}),
    lambda attrs: attrs.pop("x"),
    lambda attrs: attrs.popitem(),
    lambda attrs: attrs.clear(),
    lambda attrs: attrs.update(y=1),
    lambda attrs: attrs.setdefault("y", 1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_attributes_never_change(change: Callable[[Attributes], object]) -> None:
    attrs = Attributes(x=1)
    with pytest.raises(TypeError, match="use Op.set_attr and Op.remove_attr"):
        change(attrs)
    assert attrs == {"x": 1}


def test_every_function_of_dictionaries_that_changes_them_is_refused() -> None:
    """Another one in a newer Python would be found here."""
    reading = {"copy", "fromkeys", "get", "items", "keys", "values"}
    others = {name for name in dir(dict) if not name.startswith("_")} - reading
    assert all(getattr(Attributes, name) is Attributes._refuse for name in others)


def test_changes_make_others() -> None:
    attrs = Attributes(x=1, y=2, z=3)
    assert list(attrs.with_value("y", 4).items()) == [("x", 1), ("y", 4), ("z", 3)]
    assert list(attrs.without("y").items()) == [("x", 1), ("z", 3)]
    assert attrs.without("t") is attrs == {"x": 1, "y": 2, "z": 3}
    assert type(attrs.with_value("y", 4)) is type(attrs.without("y")) is Attributes


def test_freezing() -> None:
    given = {"x": 1}
    attrs = freeze(given)
    given["x"] = 2
    assert attrs == {"x": 1} and freeze(attrs) is attrs
    assert freeze(None) is freeze({}) is NO_ATTRS


def test_ops_that_share_attributes_change_alone() -> None:
    first = Op("t.a", attrs={"x": 1})
    second, third = first.clone(), first.clone()
    first.set_attr("y", 2)
    second.remove_attr("x")
    third.replace_attrs({"z": 3})
    assert (first.attrs, second.attrs, third.attrs) == ({"x": 1, "y": 2}, {}, {"z": 3})
