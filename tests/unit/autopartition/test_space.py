from __future__ import annotations

from pyshardy.autopartition.fold_layers import fold_layers
from pyshardy.autopartition.pricing import Pricer
from pyshardy.autopartition.space import Space

from .problems import layered, problem_from, space_from


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
    assert len(few.folded.program.kind_of) == len(many.folded.program.kind_of)


def test_an_axis_fits_once_and_where_it_divides() -> None:
    space = space_from(layered(1, '"a"=4, "b"=3'))
    assert space.fits(0, (("a",), ()))
    assert not space.fits(0, (("a",), ("a",)))
    assert not space.fits(0, (("b",), ()))


def test_a_given_sharding_is_kept() -> None:
    text = layered(1).replace('loc("x")', '{sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("x")')
    space = space_from(text)
    assert not space.is_free(0)
    assert space.shards(0, ((), ())) == 2
    assert all(value != space.folded.inputs[0].value for value in space.shardings(space.empty))


def test_folded_program_costs_what_the_whole_one_does() -> None:
    problem = problem_from(layered(12))
    folded = fold_layers(problem)
    assert len(folded.program.kind_of) < len(problem.program.kind_of) / 2
    whole, short = Space(problem, problem), Space(problem, folded)
    for dims in (
        ((("data",), ()), ((), ()), ((), ())),
        ((("data",), ()), ((), ("model",)), (("model",), ())),
        (((), ("data",)), (("data",), ("model",)), ((), ())),
    ):
        one = Pricer(problem, whole.tied).price(whole.shardings(dims), whole.base_bytes(dims))
        other = Pricer(folded, short.tied).price(short.shardings(dims), short.base_bytes(dims))
        assert abs(other.serial_seconds / one.serial_seconds - 1) < 0.02
        assert abs(other.seconds / one.seconds - 1) < 0.02
        assert abs(other.bytes / one.bytes - 1) < 0.1
