from __future__ import annotations

from typing import Any

import pytest

from pyshardy.core.axes import AxisRef
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
from pyshardy.errors import InvalidShardingError

from .short import mesh, ref, refs

Q24 = mesh("q=24")
MESH = mesh("u=4 v=24 w=2")

# What the operations give for pairs of axes; `-` is none. Source: docs/semantics/representation.md#algebra-of-axes
TABLE = """
    a       | b       | overlaps | coexist | contains | prefix | suffix | overlap | pre w/o | suf w/o | GCP     | merge
    q       | q:(2)3  | yes      | yes     | yes      | no     | no     | q:(2)3  | q:(1)2  | q:(6)4  | -       | no
    q:(2)3  | q       | yes      | yes     | no       | no     | no     | q:(2)3  | -       | -       | -       | no
    q:(1)6  | q:(2)6  | yes      | yes     | no       | no     | no     | q:(2)3  | q:(1)2  | -       | -       | no
    q:(2)6  | q:(1)6  | yes      | yes     | no       | no     | no     | q:(2)3  | -       | q:(6)2  | -       | no
    q:(2)12 | q:(6)2  | yes      | yes     | yes      | no     | no     | q:(6)2  | q:(2)3  | q:(12)2 | -       | no
    q:(1)2  | q:(6)4  | no       | yes     | no       | no     | no     | -       | q:(1)2  | q:(1)2  | -       | no
    q:(1)6  | q:(6)4  | no       | yes     | no       | no     | no     | -       | q:(1)6  | q:(1)6  | -       | yes
    q:(1)2  | q:(1)3  | yes      | no      | no       | yes    | no     | -       | -       | -       | -       | no
    q:(1)2  | q:(3)4  | no       | no      | no       | no     | no     | -       | -       | -       | -       | no
    q:(2)3  | q:(3)4  | yes      | no      | no       | no     | no     | -       | -       | -       | -       | no
    q:(1)12 | q:(1)2  | yes      | yes     | yes      | no     | no     | q:(1)2  | -       | q:(2)6  | q:(1)2  | no
    q:(2)3  | q:(2)3  | yes      | yes     | yes      | yes    | yes    | q:(2)3  | -       | -       | q:(2)3  | no
    q       | q       | yes      | yes     | yes      | yes    | yes    | q       | -       | -       | q       | no
    q:(1)2  | q       | yes      | yes     | no       | yes    | no     | q:(1)2  | -       | -       | q:(1)2  | no
    q:(6)4  | q       | yes      | yes     | no       | no     | yes    | q:(6)4  | -       | -       | -       | no
    q:(6)2  | q:(2)6  | yes      | yes     | no       | no     | yes    | q:(6)2  | -       | -       | -       | no
    q:(6)4  | q:(1)6  | no       | yes     | no       | no     | no     | -       | q:(6)4  | q:(6)4  | -       | no
    q:(2)3  | r:(2)3  | no       | yes     | no       | no     | no     | -       | q:(2)3  | q:(2)3  | -       | no
    q       | r       | no       | yes     | no       | no     | no     | -       | q       | q       | -       | no
"""


def _rows() -> list[list[str]]:
    lines = [line for line in TABLE.splitlines() if line.strip()]
    return [[cell.strip() for cell in line.split("|")] for line in lines[1:]]


@pytest.mark.parametrize("row", _rows(), ids=lambda row: f"{row[0]} {row[1]}")
def test_two_references(row: list[str]) -> None:
    a, b = map(ref, row[:2])
    facts = [
        a.overlaps(b),
        a.can_coexist(b),
        a.contains(b),
        a.is_prefix_of(b),
        a.is_suffix_of(b, Q24),
        a.overlap(b),
        a.prefix_without_overlap(b),
        a.suffix_without_overlap(b, Q24),
        a.common_prefix(b),
        a.can_merge(b),
    ]
    given = [("no", "yes")[fact] if isinstance(fact, bool) else str(fact or "-").replace('"', "") for fact in facts]
    assert given == row[2:]


@pytest.mark.parametrize(
    ("first", "second", "strict"),
    [
        ("q:(1)2", "q", True),
        ("q:(1)2", "q:(1)6", True),
        ("q:(1)2", "q:(1)2", False),
        ("q", "q", False),
        ("q:(2)3", "q", False),
    ],
)
def test_strict_prefix_of_a_reference(first: str, second: str, strict: bool) -> None:
    assert ref(first).is_strict_prefix_of(ref(second)) is strict


def test_fields_and_text() -> None:
    full, part = AxisRef("x"), AxisRef("x", 2, 4)
    assert (full.name, full.pre_size, full.size, full.is_full) == ("x", 1, None, True)
    assert (part.name, part.pre_size, part.size, part.is_full) == ("x", 2, 4, False)
    assert (str(full), str(part), str(AxisRef('a"b', 1, 2))) == ('"x"', '"x":(2)4', r'"a\22b":(1)2')
    assert (repr(full), repr(part)) == ("AxisRef('x')", "AxisRef('x', 2, 4)")


def test_length_and_end() -> None:
    assert [(axis.length(MESH), axis.end(MESH)) for axis in refs("v v:(2)3")] == [(24, 24), (3, 6)]
    with pytest.raises(InvalidShardingError, match="got unknown axis name \"z\", needed one of 'u', 'v', 'w'"):
        AxisRef("z").length(MESH)


def test_order_of_references() -> None:
    scrambled = refs("c b:(2)4 b a b:(4)2 b:(1)4 b:(2)2 b:(1)2")
    assert sorted(scrambled, key=AxisRef.sort_key) == list(refs("a b:(1)2 b:(1)4 b b:(2)2 b:(2)4 b:(4)2 c"))


def test_mesh_order_goes_by_the_position_of_the_name() -> None:
    assert sort_axes(refs("a:(2)2 a b:(2)2 b:(1)2 a:(1)2"), mesh("b=8 a=8")) == list(
        refs("b:(1)2 b:(2)2 a:(1)2 a a:(2)2")
    )


@pytest.mark.parametrize(
    ("major", "minor", "merged"),
    [
        ("v:(1)2", "v:(2)3", "v:(1)6"),
        ("v:(2)3", "v:(6)2", "v:(2)6"),
        ("v:(1)6", "v:(6)4", "v"),
        ("v:(2)3", "v:(6)4", "v:(2)12"),
    ],
)
def test_merging(major: str, minor: str, merged: str) -> None:
    assert ref(major).can_merge(ref(minor))
    assert ref(major).merge(ref(minor), MESH) is ref(merged)


@pytest.mark.parametrize(
    ("axis", "size", "head", "tail"),
    [
        ("v", 2, "v:(1)2", "v:(2)12"),
        ("v:(2)6", 3, "v:(2)3", "v:(6)2"),
        ("v:(2)6", 2, "v:(2)2", "v:(4)3"),
    ],
)
def test_head_and_tail(axis: str, size: int, head: str, tail: str) -> None:
    assert ref(axis).head(size, MESH) is ref(head)
    assert ref(axis).tail(size, MESH) is ref(tail)


def test_head_of_the_whole_length_and_tail_after_nothing_are_the_reference() -> None:
    for axis in refs("v v:(2)3"):
        assert axis.head(axis.length(MESH), MESH) is axis
        assert axis.tail(1, MESH) is axis


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", 0, 2), 'referring to axis "x": got sub-axis pre-size 0, needed at least 1'),
        (("x", -1, 2), 'referring to axis "x": got sub-axis pre-size -1, needed at least 1'),
        (("x", 2, 1), 'referring to axis "x": got sub-axis size 1, needed greater than 1'),
        (("x", 2, -3), 'referring to axis "x": got sub-axis size -3, needed greater than 1'),
        (("x", 2, 2**62), f'referring to axis "x": got sub-axis (2){2**62}, needed an end below 2^63'),
        (("x", 2), 'referring to axis "x": got pre-size 2 without a size, needed both or neither'),
        (("x", 2.5, 2), 'referring to axis "x": got 2.5, needed an integer'),
        (("x", 2, "4"), "referring to axis \"x\": got '4', needed an integer"),
        ((3,), "referring to an axis: got name 3, needed a string"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        AxisRef(*arguments)
    assert str(caught.value) == message


def test_sharding_size() -> None:
    assert axes_size(refs("u v:(2)3 w"), MESH) == 24
    assert axes_size((), MESH) == 1


@pytest.mark.parametrize(
    ("axes", "axis", "result"),
    [
        ("", "u", "u"),
        ("u v:(1)2", "v:(2)3", "u v:(1)6"),
        ("v:(1)2 u", "v:(2)3", "v:(1)2 u v:(2)3"),
        ("v:(2)3", "v:(1)2", "v:(2)3 v:(1)2"),
        ("v:(1)6", "v:(6)4", "v"),
    ],
)
def test_append_or_merge(axes: str, axis: str, result: str) -> None:
    changed = list(refs(axes))
    append_or_merge(changed, ref(axis), MESH)
    assert tuple(changed) == refs(result)


@pytest.mark.parametrize(
    ("axes", "result"),
    [
        ("", ""),
        ("w v u", "u v w"),
        ("v:(2)3 u v:(1)2", "u v:(1)6"),
        ("v:(6)4 v:(2)3 v:(1)2 w", "v w"),
        ("v:(6)2 v:(1)2", "v:(1)2 v:(6)2"),
    ],
)
def test_sort_and_merge(axes: str, result: str) -> None:
    assert sort_and_merge(refs(axes), MESH) == refs(result)


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("", "x", ""),
        ("x y", "x y", "x y"),
        ("x y z", "x y", "x y"),
        ("x y", "x y:(1)2", "x y:(1)2"),
        ("x:(1)2 y", "x:(1)4 y", "x:(1)2"),
        ("x y", "z y", ""),
        ("x:(1)2", "x:(1)3", ""),
    ],
)
def test_common_prefix_of_lists(first: str, second: str, result: str) -> None:
    assert common_prefix(refs(first), refs(second)) == common_prefix(refs(second), refs(first)) == refs(result)


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [("", "x", False), ("x", "y", False), ("y x:(1)2", "z x", True), ("x:(1)2", "x:(2)2", False)],
)
def test_overlap_of_lists(first: str, second: str, overlap: bool) -> None:
    assert lists_overlap(refs(first), refs(second)) is lists_overlap(refs(second), refs(first)) is overlap


@pytest.mark.parametrize(
    ("axis", "others", "prefix"),
    [
        ("v", "", "v"),
        ("v", "u w", "v"),
        ("v", "u v:(6)2", "v:(1)6"),
        ("v", "v:(6)2 v:(2)3", "v:(1)2"),
        ("v", "v:(6)2 v:(1)2", None),
        ("v", "v:(1)2 v:(6)2", None),
        ("v:(1)2", "v:(3)4", None),
    ],
)
def test_prefix_without_overlap_with_a_list(axis: str, others: str, prefix: str | None) -> None:
    assert prefix_without_overlaps(ref(axis), refs(others)) is (None if prefix is None else ref(prefix))


@pytest.mark.parametrize(
    ("axes", "others", "kept"),
    [
        ("u v w", "", "u v w"),
        ("u v w", "x", "u v w"),
        ("u v w", "v", "u"),
        ("u v w", "v:(2)3", "u v:(1)2"),
        ("u v w", "w v:(1)2", "u"),
        ("u v w", "u", ""),
    ],
)
def test_truncating_at_the_first_overlap(axes: str, others: str, kept: str) -> None:
    assert truncate_overlaps(refs(axes), refs(others)) == refs(kept)


@pytest.mark.parametrize(
    ("axes", "removed", "kept"),
    [
        ("", "u", ""),
        ("u v", "u v", ""),
        ("u v", "", "u v"),
        ("v u", "u", "v"),
        ("u v:(1)12", "v:(2)3 u:(1)2", "u:(2)2 v:(1)2 v:(6)2"),
        ("v", "v:(2)3", "v:(1)2 v:(6)4"),
        ("v", "v:(12)2 v:(2)3", "v:(1)2 v:(6)2"),
        ("v:(2)3 w", "v", "w"),
        ("v:(1)2 v:(2)3", "w", "v:(1)2 v:(2)3"),
        ("w v:(1)2", "v:(1)3", "w"),
    ],
)
def test_subtraction(axes: str, removed: str, kept: str) -> None:
    assert subtract_axes(refs(axes), refs(removed), MESH) == refs(kept)


@pytest.mark.parametrize(
    ("first", "second", "strict"),
    [
        ("", "", False),
        ("", "x", True),
        ("x", "", False),
        ("x", "x", False),
        ("x", "x y", True),
        ("x y", "x", False),
        ("x:(1)2", "x y", True),
        ("x:(1)2", "x", True),
        ("x:(2)2", "x y", False),
        ("x:(1)2 y", "x y", False),
        ("z x:(1)2", "z x", True),
        ("y", "x y", False),
        ("y x", "z x w", False),
    ],
)
def test_prefixes_of_lists(first: str, second: str, strict: bool) -> None:
    assert is_strict_prefix(refs(first), refs(second)) is strict
    assert is_prefix(refs(first), refs(second)) is (strict or first == second)


def test_order_of_lists() -> None:
    ordered = ["", "a", "b", "a b", "a:(1)2 c", "b a", "a a a"]
    lists = sorted(map(refs, ordered), key=list_sort_key)
    assert lists == [refs(text) for text in ["", "a", "b", "a:(1)2 c", "a b", "b a", "a a a"]]


@pytest.mark.parametrize(
    ("mentioned", "result"),
    [
        ("", "u v w"),
        ("v u", "u v w"),
        ("v:(2)3 v:(12)2", "u v:(1)2 v:(2)3 v:(6)2 v:(12)2 w"),
        ("v:(1)2", "u v:(1)2 v:(2)12 w"),
        ("u:(2)2 w", "u:(1)2 u:(2)2 v w"),
    ],
)
def test_ordered_references_of_a_mesh(mentioned: str, result: str) -> None:
    assert ordered_refs(MESH, refs(mentioned)) == refs(result)


def test_axes_that_fit_the_mesh() -> None:
    check_axes_in_mesh(refs("u v:(1)12 v:(12)2 w"), MESH, "checking")


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("z", "checking: got unknown axis name \"z\", needed one of 'u', 'v', 'w'"),
        (
            "v:(1)5",
            'checking: got sub-axis "v":(1)5, needed an end that divides 24, the size of axis "v"',
        ),
        (
            "v:(4)4",
            'checking: got sub-axis "v":(4)4, needed an end that divides 24, the size of axis "v"',
        ),
        (
            "v:(1)48",
            'checking: got sub-axis "v":(1)48, needed an end that divides 24, the size of axis "v"',
        ),
        ("v:(1)24", 'checking: got sub-axis "v":(1)24 of the full size 24, needed the full axis "v"'),
    ],
)
def test_axes_that_do_not_fit_the_mesh(axis: str, message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        check_axes_in_mesh(refs(f"u {axis}"), MESH, "checking")
    assert str(caught.value) == message
