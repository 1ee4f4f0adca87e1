"""Laws of axis references and lists of them, checked on the positions of a mesh."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_checks import check_axes_in_mesh
from pyshardy.core.axis_lists import (
    append_or_merge,
    axes_size,
    common_prefix,
    is_prefix,
    is_strict_prefix,
    list_sort_key,
    lists_overlap,
    ordered_refs,
    prefix_without_overlaps,
    sort_and_merge,
    sort_axes,
    subtract_axes,
    truncate_overlaps,
)
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError

from .positions import count, independent, labels, number, refines, same_partition
from .strategies import axis_lists, axis_refs, compatible_lists, divisors, meshes, on_a_mesh, pieces

ONE = on_a_mesh(axis_refs)
PAIRS = on_a_mesh(lambda mesh: st.tuples(axis_refs(mesh), axis_refs(mesh)))
LISTS = on_a_mesh(axis_lists)
TWO_LISTS = on_a_mesh(compatible_lists)
THREE_LISTS = on_a_mesh(lambda mesh: compatible_lists(mesh, 3))


@st.composite
def on_one_axis(draw: st.DrawFn, count: int = 2, coexisting: bool = False) -> tuple[Mesh, list[AxisRef]]:
    """References to one axis of size 24 or 48, optionally all of which can coexist."""
    mesh = Mesh([("x", draw(st.sampled_from((24, 48))))])
    if not coexisting:
        return mesh, [draw(axis_refs(mesh)) for _ in range(count)]
    cut = draw(pieces(mesh))
    found = []
    for _ in range(count):
        start = draw(st.integers(0, len(cut) - 1))
        ref = cut[start]
        for piece in cut[start + 1 : draw(st.integers(start + 1, len(cut)))]:
            ref = ref.merge(piece, mesh)
        found.append(ref)
    return mesh, found


@pytest.mark.slow
@given(ONE)
def test_a_reference_makes_as_many_shards_as_it_is_long(drawn: tuple[Mesh, AxisRef]) -> None:
    mesh, axis = drawn
    check_axes_in_mesh([axis], mesh, "checking")
    assert count([axis], mesh) == axis.length(mesh)
    assert axis.end(mesh) == axis.pre_size * axis.length(mesh)


@given(meshes(min_axes=1), st.data())
def test_sub_axes_fit_if_they_divide_the_axis_and_are_not_all_of_it(mesh: Mesh, data: st.DataObject) -> None:
    name, total = data.draw(st.sampled_from(mesh.axes))
    axis = AxisRef(name, data.draw(st.integers(1, total)), data.draw(st.integers(2, total + 1)))
    if total % axis.end(mesh) == 0 and axis.size != total:
        check_axes_in_mesh([axis], mesh, "checking")
    else:
        with pytest.raises(InvalidShardingError, match="an end that divides|the full axis"):
            check_axes_in_mesh([axis], mesh, "checking")


@given(PAIRS | on_one_axis())
def test_overlap_and_coexistence_are_symmetric(drawn: tuple[Mesh, tuple[AxisRef, AxisRef]]) -> None:
    _, (a, b) = drawn
    assert a.overlaps(b) is b.overlaps(a)
    assert a.can_coexist(b) is b.can_coexist(a)
    assert a.overlap(b) is b.overlap(a)
    assert a.common_prefix(b) is b.common_prefix(a)
    assert a.overlaps(a) and a.can_coexist(a) and a.contains(a)


@given(on_one_axis())
def test_references_coexist_if_their_borders_divide_one_another(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b) = drawn
    borders = sorted({1, a.pre_size, a.end(mesh), b.pre_size, b.end(mesh), mesh.size})
    assert a.can_coexist(b) is not any(high % low for low, high in zip(borders, borders[1:]))


@given(on_one_axis(coexisting=True))
def test_what_coexists(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b) = drawn
    assert a.can_coexist(b)
    assert a.overlaps(b) is not independent([a], [b], mesh)
    assert a.contains(b) is refines([a], [b], mesh)


@given(on_one_axis(coexisting=True))
def test_the_overlap_is_what_both_know(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b) = drawn
    overlap = a.overlap(b)
    shared = () if overlap is None else (overlap,)
    assert refines([a], shared, mesh) and refines([b], shared, mesh)
    assert count([a, b], mesh) * axes_size(shared, mesh) == a.length(mesh) * b.length(mesh)


@given(on_one_axis(coexisting=True))
def test_prefix_overlap_and_suffix_take_a_reference_apart(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b) = drawn
    assume(a.overlaps(b))
    parts = (a.prefix_without_overlap(b), a.overlap(b), a.suffix_without_overlap(b, mesh))
    kept = [part for part in parts if part is not None]
    assert prod(part.length(mesh) for part in kept) == a.length(mesh)
    assert [number(label, kept, mesh) for label in labels(kept, mesh)] == [label[0] for label in labels([a], mesh)]
    assert not any(part is not None and part.overlaps(b) for part in (parts[0], parts[2]))


@given(PAIRS | on_one_axis())
def test_without_overlap_or_coexistence_there_is_nothing_to_take_apart(
    drawn: tuple[Mesh, tuple[AxisRef, AxisRef]],
) -> None:
    mesh, (a, b) = drawn
    outside = (a.prefix_without_overlap(b), a.suffix_without_overlap(b, mesh))
    if not a.can_coexist(b):
        assert outside == (None, None) and a.overlap(b) is None and a.common_prefix(b) is None
    elif not a.overlaps(b):
        assert outside == (a, a) and a.overlap(b) is None


@given(on_one_axis(count=3) | on_one_axis(count=3, coexisting=True))
def test_contains_is_a_partial_order(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    _, (a, b, c) = drawn
    if a.contains(b) and b.contains(c):
        assert a.contains(c)
    if a.contains(b) and b.contains(a):
        assert a is b


@given(on_one_axis(count=3) | on_one_axis(count=3, coexisting=True))
def test_prefix_and_suffix_are_partial_orders(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b, c) = drawn
    assert a.is_prefix_of(a) and a.is_suffix_of(a, mesh)
    if a.is_prefix_of(b) and b.is_prefix_of(c):
        assert a.is_prefix_of(c)
    if a.is_suffix_of(b, mesh) and b.is_suffix_of(c, mesh):
        assert a.is_suffix_of(c, mesh)
    assert a.is_strict_prefix_of(b) is (a.is_prefix_of(b) and a is not b)
    if a.is_prefix_of(b) and a.is_suffix_of(b, mesh):
        assert a is b


@given(PAIRS | on_one_axis())
def test_the_order_of_references_is_total(drawn: tuple[Mesh, tuple[AxisRef, AxisRef]]) -> None:
    _, (a, b) = drawn
    assert (a.sort_key() == b.sort_key()) is (a is b)
    if a.name == b.name and a.size is None and b.size is not None:
        assert (a.sort_key() < b.sort_key()) is (b.pre_size > 1)


@given(on_one_axis(coexisting=True))
def test_merging_keeps_the_shard_numbers(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    mesh, (a, b) = drawn
    if a.can_merge(b):
        merged = a.merge(b, mesh)
        assert merged.is_full is (merged.length(mesh) == mesh.size)
        assert [number(label, [a, b], mesh) for label in labels([a, b], mesh)] == [
            label[0] for label in labels([merged], mesh)
        ]


@given(ONE, st.data())
def test_head_and_tail_merge_back(drawn: tuple[Mesh, AxisRef], data: st.DataObject) -> None:
    mesh, axis = drawn
    length = axis.length(mesh)
    sizes = [size for size in divisors(length) if 1 < size < length]
    assume(sizes)
    size = data.draw(st.sampled_from(sizes))
    head, tail = axis.head(size, mesh), axis.tail(size, mesh)
    assert head.length(mesh) == size
    assert head.is_strict_prefix_of(axis) and tail.is_suffix_of(axis, mesh) and not head.overlaps(tail)
    assert head.can_merge(tail) and head.merge(tail, mesh) is axis


@given(LISTS)
def test_the_size_of_a_list_is_its_number_of_shards(drawn: tuple[Mesh, Axes]) -> None:
    mesh, axes = drawn
    assert axes_size(axes, mesh) == count(axes, mesh)


@given(LISTS)
def test_appending_with_merging_keeps_the_shard_numbers(drawn: tuple[Mesh, Axes]) -> None:
    mesh, axes = drawn
    merged: list[AxisRef] = []
    for axis in axes:
        append_or_merge(merged, axis, mesh)
    assert not any(major.can_merge(minor) for major, minor in zip(merged, merged[1:]))
    assert [number(label, merged, mesh) for label in labels(merged, mesh)] == [
        number(label, axes, mesh) for label in labels(axes, mesh)
    ]


@given(LISTS)
def test_sorting_and_merging_is_idempotent_and_keeps_the_partition(drawn: tuple[Mesh, Axes]) -> None:
    mesh, axes = drawn
    merged = sort_and_merge(axes, mesh)
    assert sort_and_merge(merged, mesh) == merged == sort_and_merge(axes[::-1], mesh)
    assert list(merged) == sort_axes(merged, mesh)
    assert same_partition(axes, merged, mesh)
    assert axes_size(merged, mesh) == axes_size(axes, mesh)
    assert not any(major.can_merge(minor) for major, minor in zip(merged, merged[1:]))


@given(TWO_LISTS)
def test_lists_overlap_if_they_share_something(drawn: tuple[Mesh, list[Axes]]) -> None:
    mesh, lists = drawn
    first, second = (_without_size_1(axes, mesh) for axes in lists)
    assert lists_overlap(first, second) is lists_overlap(second, first) is not independent(first, second, mesh)


@given(TWO_LISTS)
def test_subtraction_is_set_difference(drawn: tuple[Mesh, list[Axes]]) -> None:
    mesh, (axes, removed) = drawn
    kept = subtract_axes(axes, removed, mesh)
    assert refines(axes, kept, mesh)
    assert independent(kept, removed, mesh)
    assert same_partition((*kept, *removed), (*axes, *removed), mesh)
    assert axes_size(kept, mesh) == count((*axes, *removed), mesh) // count(removed, mesh)


@given(TWO_LISTS)
def test_subtraction_keeps_the_order_and_may_be_repeated(drawn: tuple[Mesh, list[Axes]]) -> None:
    mesh, (axes, removed) = drawn
    kept = subtract_axes(axes, removed, mesh)
    homes = [next(at for at, axis in enumerate(axes) if axis.contains(part)) for part in kept]
    assert homes == sorted(homes)
    assert subtract_axes(kept, removed, mesh) == kept
    assert subtract_axes(axes, (), mesh) == axes
    assert subtract_axes(axes, axes, mesh) == subtract_axes((), axes, mesh) == ()


@given(THREE_LISTS)
def test_subtracting_one_after_the_other_is_subtracting_both(drawn: tuple[Mesh, list[Axes]]) -> None:
    mesh, (axes, first, second) = drawn
    both = subtract_axes(subtract_axes(axes, first, mesh), second, mesh)
    other = subtract_axes(subtract_axes(axes, second, mesh), first, mesh)
    assert same_partition(both, other, mesh)
    union = (*first, *subtract_axes(second, first, mesh))
    assert same_partition(both, subtract_axes(axes, union, mesh), mesh)


@given(on_a_mesh(lambda mesh: st.tuples(axis_lists(mesh), st.lists(axis_refs(mesh), max_size=3).map(tuple))))
def test_subtraction_of_what_cannot_coexist_leaves_no_overlap(drawn: tuple[Mesh, tuple[Axes, Axes]]) -> None:
    mesh, (axes, removed) = drawn
    removed = tuple(axis for at, axis in enumerate(removed) if not lists_overlap([axis], removed[:at]))
    assert not lists_overlap(subtract_axes(axes, removed, mesh), removed)


@given(TWO_LISTS)
def test_truncation_keeps_the_longest_prefix_without_overlap(drawn: tuple[Mesh, list[Axes]]) -> None:
    mesh, lists = drawn
    axes, others = (_without_size_1(axes, mesh) for axes in lists)
    kept = truncate_overlaps(axes, others)
    assert is_prefix(kept, axes)
    assert independent(kept, others, mesh)
    longer = [prefix for prefix in _prefixes(axes, mesh) if axes_size(prefix, mesh) > axes_size(kept, mesh)]
    assert not any(_coexist(prefix, others) and independent(prefix, others, mesh) for prefix in longer)


def _without_size_1(axes: Axes, mesh: Mesh) -> Axes:
    """The references that tell any positions apart; to the algebra, an axis of size 1 overlaps itself all the same."""
    return tuple(axis for axis in axes if axis.length(mesh) > 1)


def _prefixes(axes: Axes, mesh: Mesh) -> list[Axes]:
    """Every prefix of the list, with the last reference cut in every way."""
    found: list[Axes] = []
    for at, axis in enumerate(axes):
        lengths = [size for size in divisors(axis.length(mesh)) if size > 1]
        found.extend((*axes[:at], axis.head(size, mesh)) for size in lengths)
    return found


@given(on_one_axis(count=3, coexisting=True))
def test_the_order_of_what_is_avoided_does_not_matter(drawn: tuple[Mesh, list[AxisRef]]) -> None:
    _, (axis, first, second) = drawn
    assert prefix_without_overlaps(axis, [first, second]) is prefix_without_overlaps(axis, [second, first])


@given(THREE_LISTS, st.data())
def test_strict_prefix_is_a_strict_partial_order(drawn: tuple[Mesh, list[Axes]], data: st.DataObject) -> None:
    mesh, lists = drawn
    c = lists[0]
    b = data.draw(st.sampled_from([(), *_prefixes(c, mesh), *lists]))
    a = data.draw(st.sampled_from([(), *_prefixes(b, mesh), *lists]))
    assert not is_strict_prefix(a, a) and is_prefix(a, a)
    assert not (is_strict_prefix(a, b) and is_strict_prefix(b, a))
    if is_strict_prefix(a, b) and is_strict_prefix(b, c):
        assert is_strict_prefix(a, c)
    assert is_strict_prefix(a, b) is (is_prefix(a, b) and a != b)


@given(LISTS)
def test_every_prefix_is_one(drawn: tuple[Mesh, Axes]) -> None:
    mesh, axes = drawn
    for prefix in _prefixes(axes, mesh):
        assert is_strict_prefix(prefix, axes) is (prefix != axes)
        assert common_prefix(prefix, axes) == common_prefix(axes, prefix) == prefix


@given(TWO_LISTS, st.data())
def test_the_common_prefix_is_the_longest(drawn: tuple[Mesh, list[Axes]], data: st.DataObject) -> None:
    mesh, (axes, other) = drawn
    start = data.draw(st.sampled_from([(), *_prefixes(axes, mesh)]))
    other = (*start, *subtract_axes(other, start, mesh))
    found = common_prefix(axes, other)
    assert is_prefix(found, axes) and is_prefix(found, other)
    assert not any(
        is_strict_prefix(found, prefix) and is_prefix(prefix, other) and _coexist(prefix, other)
        for prefix in _prefixes(axes, mesh)
    )


def _coexist(first: Axes, second: Axes) -> bool:
    return all(axis.can_coexist(other) for axis in first for other in second)


@given(TWO_LISTS)
def test_shorter_lists_come_first(drawn: tuple[Mesh, list[Axes]]) -> None:
    _, (first, second) = drawn
    assert (list_sort_key(first) == list_sort_key(second)) is (first == second)
    if len(first) != len(second):
        assert (list_sort_key(first) < list_sort_key(second)) is (len(first) < len(second))


@given(LISTS)
def test_ordered_references_make_up_the_mesh(drawn: tuple[Mesh, Axes]) -> None:
    mesh, mentioned = drawn
    parts = ordered_refs(mesh, mentioned)
    assert axes_size(parts, mesh) == mesh.size
    assert sort_and_merge(parts, mesh) == tuple(map(AxisRef, mesh.axis_names))
    assert [number(label, parts, mesh) for label in labels(parts, mesh)] == list(range(mesh.size))
    assert not any(part.overlaps(axis) and not axis.contains(part) for part in parts for axis in mentioned)
    assert ordered_refs(mesh, parts) == ordered_refs(mesh, mentioned[::-1]) == parts
