"""One whole step: agreeing on a mesh, and writing shardings.

Source: docs/semantics/propagation.md#the-mesh-of-a-step
Source: docs/semantics/propagation.md#writing-back
Source: docs/semantics/propagation.md#conservative-propagation
"""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.program import Direction
from pyshardy.propagation.step import AddedAxes, Strategy, explain_step, propagate_step

from ..core.short import mesh, refs
from .short import BINARY, MATMUL, after, given, step_of

PQ = Mesh([("p", 2), ("q", 2)])
MESHES = {
    "m1": PQ,
    "m2": PQ,
    "m3": Mesh([("p", 2), ("q", 2)], [3, 2, 1, 0]),
    "other": Mesh([("p", 2), ("q", 4)]),
    "empty": Mesh([]),
    "one": Mesh([], [5]),
}
STRATEGIES = pytest.mark.parametrize("strategy", Strategy)


def on_meshes(texts: list[str | None], strategy: Strategy) -> list[str | None]:
    shardings = [None if text is None else parse_sharding(text) for text in texts]
    for tensor, new in propagate_step(step_of(BINARY, strategy), shardings, MESHES):
        shardings[tensor] = new
    return [None if found is None else str(found) for found in shardings]


@STRATEGIES
def test_the_first_of_equal_meshes_gives_the_name(strategy: Strategy) -> None:
    before = ['<@m2, [{"p", ?}, {?}]>', '<@m1, [{?}, {"q", ?}]>', None]
    assert on_meshes(before, strategy) == ['<@m2, [{"p", ?}, {"q", ?}]>'] * 3


@STRATEGIES
@pytest.mark.parametrize(
    "before",
    [
        ['<@m2, [{"p", ?}, {?}]>', '<@m3, [{?}, {"q", ?}]>', None],  # another order of the devices
        ['<@m2, [{"p", ?}, {?}]>', '<@other, [{?}, {"q", ?}]>', None],
        ['<@m2, [{"p", ?}, {?}]>', None, "<@m3, [{?}, {?}]>"],
        [None, None, None],
        ["<@one, []>", "<@one, []>", None],
        ["<@empty, [{?}, {?}]>", None, None],
    ],
)
def test_meshes_that_do_not_agree(strategy: Strategy, before: list[str | None]) -> None:
    assert on_meshes(before, strategy) == before
    shardings = [None if text is None else parse_sharding(text) for text in before]
    assert explain_step(step_of(BINARY, strategy), shardings, MESHES) == ()


@STRATEGIES
def test_empty_meshes_agree_with_any(strategy: Strategy) -> None:
    before = ["<@empty, [{?}, {?}]>", '<@m1, [{"p", ?}, {?}]>', "<@empty, [{}, {?}]>"]
    found = on_meshes(before, strategy)
    assert found == before if strategy is Strategy.BASIC else ['<@m1, [{"p", ?}, {?}]>', *before[1:]]
    before[2] = "<@empty, [{?}, {}]>"
    assert on_meshes(before, strategy) == [before[1], before[1], '<@m1, [{"p", ?}, {}]>']


def test_an_unknown_mesh() -> None:
    shardings = given(['[{"p", ?}, {?}]', None, None])
    with pytest.raises(InvalidShardingError, match=r"looking up the mesh of .*unknown mesh @m, needed @m1, @m2"):
        propagate_step(step_of(BINARY, Strategy.BASIC), shardings, MESHES)


def test_an_inlined_mesh() -> None:
    text = '<mesh<["p"=2]>, [{"p", ?}, {?}]>'
    assert on_meshes([text, None, None], Strategy.BASIC) == [text] * 3


@STRATEGIES
@pytest.mark.parametrize(
    ("rule", "axes", "before", "found"),
    [
        # without a sharding, or with an axis: dimensions that are all open
        (BINARY, "p=2 q=2", ['[{"p"}, {}]', None, None], ['[{"p"}, {}]', '[{"p", ?}, {?}]', '[{"p", ?}, {?}]']),
        # no axis to give: nothing appears, and what is there stays
        (BINARY, "p=2 q=2", ["[{}, {}]", None, "[{?}, {?}]"], ["[{}, {}]", None, "[{?}, {?}]"]),
        # priorities go where a tensor is updated, and there alone
        (BINARY, "p=2 q=2", ['[{"p"}p1, {?}p2]', "[{?}p3, {}]", None],
         ['[{"p"}p1, {?}p2]', '[{"p", ?}, {}]', '[{"p", ?}, {?}]']),
        # replicated and unreduced axes and the reduction kind stay, and go nowhere
        (BINARY, "p=2 q=2 r=2", ['[{"p"}, {}], unreduced={"q"}', '[{?}, {?}], replicated={"q"}, unreduced=max{"r"}', None],
         ['[{"p"}, {}], unreduced={"q"}', '[{"p", ?}, {?}], replicated={"q"}, unreduced=max{"r"}', '[{"p", ?}, {?}]']),
        # rank 0
        ("<([], [i])->([i]) {i=8}>", "p=2 q=2", [None, '[{"p"}]', None], [None, '[{"p"}]', '[{"p", ?}]']),
        ("<([], [i])->([i]) {i=8}>", "p=2 q=2", ["[]", '[{"p"}]', None], ["[]", '[{"p"}]', '[{"p", ?}]']),
        # 4x8 -> 32
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=2 q=2", ['[{"p"}, {"q"}]', None], ['[{"p"}, {"q"}]', '[{"p", ?}]']),
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=4 q=2", ['[{"p"}, {"q"}]', None], ['[{"p"}, {"q"}]', '[{"p", "q", ?}]']),
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=2 q=2", ["[{?}, {}]", '[{"p", "q"}]'],
         ['[{"p", "q", ?}, {}]', '[{"p", "q"}]']),
        # 24x4 -> 4x6x4
        ("<([ij, k])->([i, j, k]) {i=4, j=6, k=4}>", "p=12 q=2", ['[{"p"}, {"q"}]', None],
         ['[{"p"}, {"q"}]', '[{"p":(1)4, ?}, {"p":(4)3, ?}, {"q", ?}]']),
        # a dimension with overflow comes back as it was when another one changes
        ("<([ij, k])->([i, j, k]) {i=4, j=6, k=4}>", "p=3 q=2", ['[{"p", ?}, {?}]', '[{?}, {?}, {"q"}]'],
         ['[{"p", ?}, {"q", ?}]', '[{?}, {?}, {"q"}]']),
        # nothing can be written because it would be strided: no update
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=2 q=2", ['[{?}, {"q"}]', None], ['[{?}, {"q"}]', None]),
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=2 q=2", ['[{"p"}, {"q"}]', '[{"p", ?}]'], ['[{"p"}, {"q"}]', '[{"p", ?}]']),
    ],
)  # fmt: skip
def test_writing(strategy: Strategy, rule: str, axes: str, before: list[str | None], found: list[str | None]) -> None:
    assert after(step_of(rule, strategy), before, mesh(axes)) == found


@STRATEGIES
def test_writes_are_operands_first_and_read_the_start(strategy: Strategy) -> None:
    updates = propagate_step(step_of(MATMUL, strategy), given([None, None, '[{"p", ?}, {"q", ?}]']), {"m": PQ})
    assert [tensor for tensor, _ in updates] == [0, 1]


def test_conservative_propagation_gives_no_sub_axes() -> None:
    rule, before = "<([i, j])->([ij]) {i=8, j=4}>", ['[{"p", "q"}, {}]', None]
    step = step_of(rule, Strategy.BASIC, is_conservative=True)
    assert after(step, before, mesh("p=4 q=4"))[1] == '[{"p", ?}]'


def test_directions_reach_the_strategy() -> None:
    for strategy in Strategy:
        step = step_of(BINARY, strategy, [Direction.FORWARD, Direction.BACKWARD])
        assert after(step, ['[{"p"}, {?}]', None, '[{?}, {"q"}]'], PQ) == [
            '[{"p"}, {"q", ?}]', '[{"p", ?}, {"q", ?}]', '[{"p", ?}, {"q"}]'
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "axes", "before", "moves"),
    [
        (MATMUL, "p=2 q=2", ['[{"p"}, {}]', '[{}, {"q"}]', None], [(2, 0, "p", 0), (2, 1, "q", 1)]),
        (MATMUL, "p=2 q=2", [None, None, '[{"p", "q"}, {}]'], [(0, 0, "p q", 2)]),
        (MATMUL, "p=2 q=2", ['[{"p"}, {}]', "[{}, {}]", '[{"p", "q"}, {}]'], []),
        (MATMUL, "p=2 q=2", ['[{"p", ?}, {}]', "[{}, {}]", '[{"p", "q"}, {}]'], [(0, 0, "q", 2)]),
        # the first operand that has it is the source, before the results
        (BINARY, "p=2 q=2", [None, '[{"p"}, {}]', '[{"p"}, {}]'], [(0, 0, "p", 1)]),
        # a sub-axis that grew: the element at its place
        (BINARY, "p=4 q=2", ['[{"p"}, {}]', '[{"p":(1)2, ?}, {?}]', '[{"p"}, {}]'], [(1, 0, "p", 0)]),
        # what is dropped when it is written was moved all the same
        ("<([i, j])->([ij]) {i=4, j=8}>", "p=2 q=2", ['[{"p"}, {"q"}]', None], [(1, 0, "p", 0), (1, 1, "q", 0)]),
    ],
)
def test_explaining(rule: str, axes: str, before: list[str | None], moves: list[tuple[int, int, str, int]]) -> None:
    found = explain_step(step_of(rule, Strategy.BASIC), given(before), {"m": mesh(axes)})
    assert [(move.target, move.factor, move.axes, move.source) for move in found] == [
        (target, factor, refs(names), source) for target, factor, names, source in moves
    ]


def test_moves_name_their_dimension_and_whether_they_are_kept() -> None:
    shardings = given(['[{"p"}, {"q"}]', None])
    moves = explain_step(step_of("<([i, j])->([ij]) {i=4, j=8}>", Strategy.BASIC), shardings, {"m": mesh("p=4 q=2")})
    assert moves == (AddedAxes(1, 0, 0, refs("p"), 0, True), AddedAxes(1, 0, 1, refs("q"), 0, True))
    (move,) = explain_step(
        step_of("<([i, j])->([k, ij]) {i=4, j=8, k=2}>", Strategy.BASIC),
        given(['[{?}, {"q"}]', '[{"p", ?}, {?}]']),
        {"m": mesh("p=2 q=2")},
    )
    assert move == AddedAxes(1, 1, 1, refs("q"), 0, False)  # it would be strided
