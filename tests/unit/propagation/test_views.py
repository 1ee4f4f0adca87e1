"""The two sides of a manual computation.

Source: docs/semantics/propagation.md#manual-computations
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.views import join_manual_axes, manual_prefix, strip_manual_axes

from ..core.short import sharding


@pytest.mark.parametrize(
    ("manual", "outer", "inner"),
    [
        ("a", '[{"a", "b"}, {?}]', '[{"b"}, {?}]'),
        ("a b", '[{"a", "b", "c", ?}, {}]', '[{"c", ?}, {}]'),
        ("a", '[{"b", ?}, {"a"}p1]', '[{"b", ?}, {}]'),  # an empty closed dimension has no priority
        ("a", '[{"b", ?}p2, {"a", ?}p1]', '[{"b", ?}p2, {?}p1]'),
        ("a", '[{"a", "b"}p1, {}]', '[{"b"}p1, {}]'),
        ("a c", '[{"b"}, {}], replicated={"a", "d"}, unreduced={"c", "e"}', '[{"b"}, {}], replicated={"d"}, unreduced={"e"}'),
        ("a", '[{"b"}, {}], unreduced=max{"a", "c"}', '[{"b"}, {}], unreduced=max{"c"}'),
        ("a", '[{"a":(1)2, "b"}, {}]', '[{"b"}, {}]'),
        ("", '[{"a"}p1, {}], replicated={"b"}', '[{"a"}p1, {}], replicated={"b"}'),
        ("a", "[{}, {?}]", "[{}, {?}]"),
        ("b", '[{"a", "b"}, {}]', '[{"a", "b"}, {}]'),  # only those in front
    ],
)  # fmt: skip
def test_stripping(manual: str, outer: str, inner: str) -> None:
    assert strip_manual_axes(sharding(outer), tuple(manual.split())) is sharding(inner)


@pytest.mark.parametrize(
    ("manual", "outer", "inner", "joined"),
    [
        ("a", '[{"a", "b"}, {?}]', '[{"c", ?}, {"d"}]', '[{"a", "c", ?}, {"d"}]'),
        ("a b", '[{"b", "c"}, {"a"}]', "[{?}p1, {}]", '[{"b", ?}p1, {"a"}]'),
        ("a", "[{?}, {?}]", '[{"c"}, {}]', '[{"c"}, {}]'),
        # replicated and unreduced axes are those of the outer side, the kind of reduction is lost
        ("a", '[{"a"}, {}], replicated={"b"}, unreduced=max{"c"}', '[{?}, {"e"}], replicated={"d"}, unreduced={"f"}',
         '[{"a", ?}, {"e"}], replicated={"b"}, unreduced={"c"}'),
        ("a", '[{"a"}, {}], replicated={"a2"}', '[{"c"}, {}]', '[{"a", "c"}, {}], replicated={"a2"}'),
    ],
)  # fmt: skip
def test_joining(manual: str, outer: str, inner: str, joined: str) -> None:
    assert join_manual_axes(sharding(outer), sharding(inner), tuple(manual.split())) is sharding(joined)


def test_joining_takes_the_mesh_of_the_inner_side() -> None:
    found = join_manual_axes(sharding('[{"a"}]', "@outer"), sharding("[{?}]", "@inner"), ("a",))
    assert found is sharding('[{"a", ?}]', "@inner")


@pytest.mark.parametrize(
    ("manual", "outer"), [("a", '[{"a", "b"}p1, {"c", ?}]'), ("a b", '[{"a"}, {"b", ?}]'), ("a", "[{?}, {}]")]
)
def test_joining_undoes_stripping(manual: str, outer: str) -> None:
    names = tuple(manual.split())
    assert join_manual_axes(sharding(outer), strip_manual_axes(sharding(outer), names), names) is sharding(outer)


@pytest.mark.parametrize(
    ("dim", "count"),
    [('{"a", "b", "c"}', 2), ('{"c", "a"}', 0), ("{?}", 0), ('{"b", "a", ?}', 2), ('{"a", "c", "b"}', 1)],
)
def test_leading_manual_axes(dim: str, count: int) -> None:
    assert manual_prefix(sharding(f"[{dim}]").dims[0], {"a", "b"}) == count
