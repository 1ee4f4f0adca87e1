from __future__ import annotations

from typing import NamedTuple

import pytest

from pyshardy.searching.autopartition.ties import ties_of

from .problems import layered, space_from


def test_layers_make_one_group() -> None:
    space = space_from(layered(6))
    assert [(group.name, len(group.members)) for group in space.groups] == [
        ("x", 1),
        ("params['layers'][*]['up']", 6),
        ("params['layers'][*]['down']", 6),
    ]


def test_classes_are_batch_width_and_hidden() -> None:
    space = space_from(layered(6))
    assert [set(one.places) for one in space.classes] == [{(0, 0)}, {(0, 1), (1, 0), (2, 1)}, {(1, 1), (2, 0)}]


def test_decisions_do_not_grow_with_layers() -> None:
    few, many = space_from(layered(5)), space_from(layered(24))
    assert len(few.groups) == len(many.groups)
    assert len(few.classes) == len(many.classes)
    assert len(few.problem.program.kind_of) == len(many.problem.program.kind_of)


def test_an_axis_fits_once_and_where_it_divides() -> None:
    space = space_from(layered(1, '"a"=4, "b"=3'))
    assert space.fits(0, (("a",), ()))
    assert not space.fits(0, (("a",), ("a",)))
    assert not space.fits(0, (("b",), ()))


def test_a_given_sharding_is_kept() -> None:
    text = layered(1).replace('loc("x")', '{sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("x")')
    space = space_from(text)
    assert not space.groups[0].is_free
    assert space.shards(0, ((), ())) == 2
    assert all(value != space.problem.inputs[0].value for value in space.shardings(space.empty))


def test_a_middle_layer_stands_for_others() -> None:
    problem = space_from(layered(12)).problem
    assert len(problem.inputs) == 25 and sum(fact.value >= 0 for fact in problem.inputs) == 7
    assert {weight for _, weight in problem.layers} == {1, 10}
    assert set(problem.times) == {0, 1, 10}  # 0 are the edges of the function


class Leaf(NamedTuple):
    name: str
    shape: tuple[int, ...] = (8, 4)
    element: str = "f32"


@pytest.mark.parametrize(
    "outputs, ties",
    [
        (["result[0].w", "result[0].b", "result[1]"], {0: 0, 1: 1}),
        (["result[0][0].w", "result[0][0].b", "result[0][1].step"], {0: 0, 1: 1}),  # flax.nnx
        (["result[0]['loss']", "result[1].model.w", "result[1].model.b"], {0: 1, 1: 2}),  # keras
        (["result[0][0].w", "result[1]"], {}),  # not all of the model
        (["result[1]['grads'].w", "result[1]['grads'].b"], {}),  # of the same types, but not in its place
    ],
)
def test_outputs_that_replace_a_model(outputs: list[str], ties: dict[int, int]) -> None:
    assert ties_of([Leaf("model.w"), Leaf("model.b"), Leaf("x")], [*map(Leaf, outputs)], ()) == ties


def test_outputs_of_other_shapes_replace_nothing() -> None:
    outputs = [Leaf("result[0][0].w", (4, 8)), Leaf("result[0][0].b")]
    assert ties_of([Leaf("model.w"), Leaf("model.b")], outputs, ()) == {}
