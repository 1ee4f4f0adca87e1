from __future__ import annotations

from typing import Any

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_checks import as_axes, check_disjoint, check_merged
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_dim
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding, is_equivalent, is_unsharded
from pyshardy.core.sharding_on_mesh import check_sharding, common_mesh, mesh_of, shard_counts
from pyshardy.errors import InvalidShardingError

from .short import mesh, refs, sharding

MESH = mesh("x=8 y=2 z=24")
FULL = sharding('[{"x"}p1, {"y", ?}p0, {?}], replicated={"z":(1)2}, unreduced=max{"z":(2)3}')


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ((), "{}"),
        (((), True), "{?}"),
        (((), True, 3), "{?}p3"),
        ((["x"],), '{"x"}'),
        ((["x"], False, 0), '{"x"}p0'),
        ((["x", AxisRef("y", 2, 4)], True, 12), '{"x", "y":(2)4, ?}p12'),
        (([AxisRef("x", 2, 2), AxisRef("x", 1, 2)],), '{"x":(2)2, "x":(1)2}'),
        (([AxisRef("x", 1, 2), AxisRef("x", 3, 2)],), '{"x":(1)2, "x":(3)2}'),
    ],
)
def test_dim_text(arguments: tuple[Any, ...], printed: str) -> None:
    dim = DimSharding(*arguments)
    assert str(dim) == printed
    assert repr(dim) == f"DimSharding({printed})"


def test_dim_changes() -> None:
    dim = DimSharding(["x"], is_open=True, priority=2)
    assert dim.closed() is DimSharding(["x"], False, 2)
    assert dim.closed().opened() is dim
    assert dim.without_priority() is DimSharding(["x"], True)


OVER_EMPTY = "got priority 1 on an empty closed dimension, needed an axis, an open dimension, or no priority"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["x"], True, -1), "got priority -1, needed a priority of at least 0"),
        (((), False, -1), "got priority -1, needed a priority of at least 0"),
        (((), False, 1), OVER_EMPTY),
        ((["x"], False, 1.5), "got 1.5, needed an integer"),
        ((["x", "y", "x"],), 'got axis "x" twice, needed every axis at most once'),
        ((["x", AxisRef("x", 1, 2)],), 'got "x" and "x":(1)2, needed no reference together with the full axis'),
        (
            ([AxisRef("x", 2, 4), "y", AxisRef("x", 1, 4)],),
            'got "x":(2)4 and "x":(1)4, needed no reference together with an overlapping part',
        ),
        (
            ([AxisRef("x", 1, 2), AxisRef("x", 2, 4)],),
            'got the consecutive sub-axes "x":(1)2 and "x":(2)4, needed the one sub-axis they make',
        ),
    ],
)
def test_dim_refusals(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        DimSharding(*arguments)
    assert str(caught.value) == f"sharding a dimension: {message}"


def test_an_empty_open_dimension_with_a_priority_cannot_be_closed() -> None:
    with pytest.raises(InvalidShardingError) as caught:
        parse_dim("{?}p1").closed()
    assert str(caught.value) == f"sharding a dimension: {OVER_EMPTY}"


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (TensorSharding("m"), "<@m, []>"),
        (TensorSharding("a b", [DimSharding()]), '<@"a b", [{}]>'),
        (FULL, '<@m, [{"x"}p1, {"y", ?}p0, {?}], replicated={"z":(1)2}, unreduced=max{"z":(2)3}>'),
        (TensorSharding("m", (), ["x"]), '<@m, [], replicated={"x"}>'),
        (TensorSharding("m", (), (), ["x", "y"]), '<@m, [], unreduced={"x", "y"}>'),
        (TensorSharding("m", (), (), ["x"], ReductionKind.MIN), '<@m, [], unreduced=min{"x"}>'),
        (TensorSharding("m", (), (), (), ReductionKind.MAX), "<@m, []>"),
        (TensorSharding(Mesh([("x", 2)], [1, 0])), '<mesh<["x"=2], device_ids=[1, 0]>, []>'),
        (TensorSharding(Mesh([])), "<mesh<[]>, []>"),
        (TensorSharding(Mesh([], [7])), "<mesh<[], device_ids=[7]>, []>"),
    ],
    ids=str,
)
def test_sharding_text(given: TensorSharding, printed: str) -> None:
    assert str(given) == printed
    assert repr(given) == f"TensorSharding({printed})"


def test_the_reduction_kind_counts_even_without_unreduced_axes() -> None:
    assert TensorSharding("m") is not TensorSharding("m", reduction=ReductionKind.MAX)


def test_a_mesh_name_is_not_the_mesh() -> None:
    assert TensorSharding("m") is not TensorSharding(MESH)


def test_queries() -> None:
    assert FULL.rank == 3
    assert FULL.dim_axes == (refs("x"), refs("y"), ())
    assert FULL.all_axes() == list(refs("x y z:(1)2 z:(2)3"))
    assert shard_counts(FULL, MESH) == (8, 2, 1)
    assert shard_counts(sharding('[{"z":(2)3, "x"}]'), MESH) == (24,)


@pytest.mark.parametrize(
    ("text", "closed", "replicated"),
    [
        ("[]", True, True),
        ("[{}, {}]", True, True),
        ("[{}, {?}]", False, True),
        ('[{"x"}]', True, False),
        ('[{}], replicated={"x"}, unreduced={"y"}', True, True),
    ],
)
def test_fully_closed_and_fully_replicated(text: str, closed: bool, replicated: bool) -> None:
    assert sharding(text).is_fully_closed is closed
    assert sharding(text).is_fully_replicated is replicated


def test_fully_replicated_shardings() -> None:
    assert TensorSharding.fully_replicated("m", 2) is sharding("[{}, {}]")
    assert TensorSharding.fully_replicated("m", 2, is_open=True) is sharding("[{?}, {?}]")
    assert TensorSharding.fully_replicated(MESH, 0) is TensorSharding(MESH)


def test_closing_drops_replicated_axes_alone() -> None:
    given = sharding('[{"x", ?}p1, {?}], replicated={"z":(1)2}, unreduced=max{"z":(2)3}')
    assert given.closed() is sharding('[{"x"}p1, {}], unreduced=max{"z":(2)3}')


def test_opening_keeps_everything() -> None:
    assert FULL.opened() is sharding('[{"x", ?}p1, {"y", ?}p0, {?}], replicated={"z":(1)2}, unreduced=max{"z":(2)3}')


def test_changing_one_field() -> None:
    assert FULL.with_mesh("n") is sharding(str(FULL)[len("<@m, ") : -1], "@n")
    assert FULL.with_dims([DimSharding()]) is sharding('[{}], replicated={"z":(1)2}, unreduced=max{"z":(2)3}')
    assert FULL.map_dims(DimSharding.without_priority).dims == tuple(map(parse_dim, ['{"x"}', '{"y", ?}', "{?}"]))
    assert FULL.with_replicated(()).replicated == ()
    assert FULL.with_replicated(()).unreduced == FULL.unreduced
    assert FULL.with_unreduced(refs("z:(6)4")) is sharding(
        '[{"x"}p1, {"y", ?}p0, {?}], replicated={"z":(1)2}, unreduced=max{"z":(6)4}'
    )
    assert FULL.with_unreduced((), ReductionKind.MIN).reduction is ReductionKind.MIN


def test_axes_from_names() -> None:
    assert as_axes(["x", AxisRef("y", 1, 2)]) == refs("x y:(1)2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([DimSharding(["x"]), DimSharding(["x"])],), 'got axis "x" twice, needed every axis at most once'),
        (([DimSharding(["x"])], ["x"]), 'got axis "x" twice, needed every axis at most once'),
        (([], ["y"], ["y"]), 'got axis "y" twice, needed every axis at most once'),
        (
            ([DimSharding([AxisRef("x", 1, 2)])], (), ["x"]),
            'got "x":(1)2 and "x", needed no reference together with the full axis',
        ),
        (
            ([DimSharding([AxisRef("x", 1, 4)])], [AxisRef("x", 2, 2)]),
            'got "x":(1)4 and "x":(2)2, needed no reference together with an overlapping part',
        ),
    ],
)
def test_sharding_refusals(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        TensorSharding("m", *arguments)
    assert str(caught.value) == f"sharding a tensor: {message}"


def test_disjoint_and_merged_lists_pass() -> None:
    check_disjoint(refs("x:(4)2 y x:(1)2 x:(2)2"), "checking")
    check_merged(refs("x:(4)2 x:(1)2 y x:(2)2"), "checking")


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("[]", 0),
        ("[{}, {?}p1]", 2),
        ('[{"x"}, {"y", "z":(1)2}], replicated={"z":(2)3}, unreduced={"z":(6)4}', 2),
        ('[], replicated={"x", "y", "z"}', 0),
        ('[], unreduced={"x":(1)2, "x":(4)2, "y"}', 0),
        ('[{"z":(1)2, "z":(3)4}]', 1),
    ],
)
def test_shardings_that_fit(text: str, rank: int) -> None:
    check_sharding(sharding(text), MESH, rank)


def test_nothing_but_no_axes_fits_the_empty_mesh() -> None:
    check_sharding(sharding("[{?}, {}]"), Mesh([]), 2)
    with pytest.raises(InvalidShardingError, match='got unknown axis name "x", needed a mesh that has axes'):
        check_sharding(sharding('[{"x"}]'), Mesh([]), 1)


def test_a_single_device_takes_a_tensor_of_any_rank() -> None:
    for rank in range(3):
        check_sharding(sharding("[]"), Mesh([], [7]), rank)


DIVIDES_8 = 'needed an end that divides 8, the size of axis "x"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{}]", "got 1 dimensions, needed 2, the rank of the tensor"),
        ("[]", "got 0 dimensions, needed 2, the rank of the tensor"),
        ('[{}, {"w"}]', "got unknown axis name \"w\", needed one of 'x', 'y', 'z'"),
        ('[{}, {}], replicated={"w"}', "got unknown axis name \"w\", needed one of 'x', 'y', 'z'"),
        ('[{}, {"x":(1)3}]', f'got sub-axis "x":(1)3, {DIVIDES_8}'),
        ('[{}, {}], unreduced={"x":(4)4}', f'got sub-axis "x":(4)4, {DIVIDES_8}'),
        ('[{"x":(1)8}, {}]', 'got sub-axis "x":(1)8 of the full size 8, needed the full axis "x"'),
        ('[{}, {}], replicated={"y", "x"}', 'got replicated axes "y", "x", needed the order of the mesh: "x", "y"'),
        (
            '[{}, {}], unreduced={"z":(6)4, "z":(1)2}',
            'got unreduced axes "z":(6)4, "z":(1)2, needed the order of the mesh: "z":(1)2, "z":(6)4',
        ),
        (
            '[{}, {}], replicated={"z":(1)2, "z":(2)3}',
            'got the consecutive sub-axes "z":(1)2 and "z":(2)3, needed the one sub-axis they make',
        ),
        (
            '[{}, {}], unreduced={"z":(1)2, "z":(2)3}',
            'got the consecutive sub-axes "z":(1)2 and "z":(2)3, needed the one sub-axis they make',
        ),
    ],
)
def test_shardings_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        check_sharding(sharding(text), MESH, 2)
    assert str(caught.value) == f"checking the sharding <@m, {text}>: {message}"


@pytest.mark.parametrize("text", ["[{}]", '[{"x"}]', '[], replicated={"x"}', '[], unreduced={"x"}'])
def test_what_does_not_fit_a_single_device(text: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        check_sharding(sharding(text), Mesh([], [7]), 1)
    assert str(caught.value) == (
        f"checking the sharding <@m, {text}>: got dimensions or axes on a single-device mesh, needed rank 0 and no axes"
    )


NATURAL = mesh("a=2 b=2")
SWAPPED = Mesh([("a", 2), ("b", 2)], [3, 2, 1, 0])
TURNED = Mesh([("a", 2), ("b", 2)], [1, 0, 3, 2])
MESHES = {
    "m": NATURAL,
    "n": NATURAL,
    "swapped": SWAPPED,
    "turned": TURNED,
    "other": mesh("a=4"),
    "empty": Mesh([]),
    "empty2": Mesh([]),
    "device": Mesh([], [1]),
    "device2": Mesh([], [2]),
}


def test_the_mesh_of_a_sharding() -> None:
    assert mesh_of(TensorSharding("m"), MESHES) is NATURAL
    assert mesh_of(TensorSharding(SWAPPED), {}) is SWAPPED


@pytest.mark.parametrize(
    ("meshes", "needed"),
    [({"m": NATURAL, "a b": NATURAL}, '@m, @"a b"'), ({}, "a mesh; the module has none")],
)
def test_unknown_meshes_are_refused(meshes: dict[str, Mesh], needed: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        mesh_of(sharding("[{}]", "@nope"), meshes)
    assert str(caught.value) == f"looking up the mesh of <@nope, [{{}}]>: got unknown mesh @nope, needed {needed}"


@pytest.mark.parametrize(
    ("names", "expected", "ignoring_order"),
    [
        ("", None, None),
        ("-", None, None),
        ("m", "m", "m"),
        ("- m -", "m", "m"),
        ("m n", "m", "m"),
        ("n m", "n", "n"),
        ("m other", None, None),
        ("empty", "empty", "empty"),
        ("empty empty2", "empty2", "empty2"),
        ("empty m empty2", "m", "m"),
        ("m swapped", None, "m"),
        ("swapped m", None, "m"),
        ("swapped turned", None, "swapped"),
        ("swapped turned m", None, "m"),
        ("empty swapped empty2 m", None, "m"),
        ("m device", None, None),
        ("device empty", "device", "device"),
        ("device device2", None, "device"),
    ],
)
def test_the_common_mesh(names: str, expected: str | None, ignoring_order: str | None) -> None:
    shardings = [None if name == "-" else TensorSharding(name) for name in names.split()]
    for wanted, ignore in ((expected, False), (ignoring_order, True)):
        found = common_mesh(shardings, MESHES, ignore)
        assert found == (None if wanted is None else (wanted, MESHES[wanted]))


def test_the_common_mesh_of_inlined_meshes() -> None:
    inlined = TensorSharding(NATURAL)
    assert common_mesh([inlined, TensorSharding("m")], MESHES) == (NATURAL, NATURAL)
    assert common_mesh([TensorSharding("m"), inlined], MESHES) == ("m", NATURAL)
    assert common_mesh([inlined, inlined], {}) == (NATURAL, NATURAL)
    assert common_mesh([TensorSharding(Mesh([])), inlined], {}) == (NATURAL, NATURAL)
    assert common_mesh([TensorSharding(SWAPPED), inlined], {}) is None
    assert common_mesh([TensorSharding(SWAPPED), inlined], {}, ignore_device_order=True) == (NATURAL, NATURAL)


def test_the_common_mesh_needs_known_meshes() -> None:
    with pytest.raises(InvalidShardingError, match="got unknown mesh @nope"):
        common_mesh([TensorSharding("nope")], MESHES)


@pytest.mark.parametrize(
    ("text", "plain", "plain_but_for_unreduced"),
    [
        ("[{}, {?}p1]", True, True),
        ('[{}], replicated={"x"}', True, True),
        ('[{}], unreduced={"x"}', False, True),
        ('[{"x"}]', False, False),
    ],
)
def test_plain_shardings(text: str, plain: bool, plain_but_for_unreduced: bool) -> None:
    assert is_unsharded(sharding(text)) is plain
    assert is_unsharded(sharding(text), ignore_unreduced=True) is plain_but_for_unreduced
    assert is_unsharded(None)


@pytest.mark.parametrize(
    ("first", "second", "equivalent", "ignoring_unreduced"),
    [
        ('[{"x"}]', '[{"x"}]', True, True),
        ('[{"x"}]', '[{"x", ?}p1], replicated={"y"}', True, True),
        ('[{"x"}]', '[{"y"}]', False, False),
        ('[{"x"}, {}]', '[{}, {"x"}]', False, False),
        ('[{"x"}]', '[{"x"}, {}]', False, False),
        ('[{"x"}]', '[{"x"}], unreduced={"y"}', False, True),
        ('[{"x"}], unreduced=max{"y"}', '[{"x"}], unreduced={"y"}', True, True),
        ('[{}], unreduced={"y"}', "[{}]", False, True),
        ('[{}], unreduced={"y"}', '[{}], unreduced={"x"}', False, True),
        ("[{}]", '[{?}, {?}], replicated={"x"}', True, True),
        ("[{}]", '[{"x"}]', False, False),
    ],
)
def test_equivalence(first: str, second: str, equivalent: bool, ignoring_unreduced: bool) -> None:
    one, other = sharding(first), sharding(second)
    assert is_equivalent(one, other) is is_equivalent(other, one) is equivalent
    assert is_equivalent(one, other, True) is is_equivalent(other, one, True) is ignoring_unreduced


def test_equivalence_with_no_sharding() -> None:
    assert is_equivalent(sharding("[{?}, {}]"), None)
    assert not is_equivalent(sharding('[{"x"}]'), None)
    assert not is_equivalent(sharding('[{}], unreduced={"x"}'), None)
    assert is_equivalent(sharding('[{}], unreduced={"x"}'), None, ignore_unreduced=True)


def test_the_mesh_counts_for_equivalence_unless_nothing_is_split() -> None:
    split = sharding('[{"x"}]')
    assert not is_equivalent(split, split.with_mesh("n"))
    assert not is_equivalent(split, split.with_mesh(MESH))
    assert is_equivalent(sharding("[{}]"), sharding("[]", "mesh<[], device_ids=[7]>"))


def test_a_bare_string_is_no_list_of_axes() -> None:
    with pytest.raises(InvalidShardingError, match=r"got the string 'xy', needed a list of axes\n  try: \['xy'\]"):
        DimSharding("xy")
