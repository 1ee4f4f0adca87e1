from __future__ import annotations

import time
from typing import Any

import pytest
from jax.sharding import PartitionSpec as JaxSpec

import pyshardy
from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import UsageError
from pyshardy.searching.autopartition import explore
from pyshardy.searching.autopartition.explore import Explorer, Limits, RoughEstimates
from pyshardy.searching.autopartition.moves import all_moves, batch_class, put, store, take
from pyshardy.searching.autopartition.registry import (
    SearchTask,
    answer_of,
    our_partitioner,
    register_partitioner,
    registered_partitioner,
    run_partitioner,
    task_of,
)
from pyshardy.searching.autopartition.roles import megatron
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.autopartition.tactics import tactics

from .problems import layered, problem_from, space_from


def task(layers: int = 2, most: int = 400, seed: int = 0) -> SearchTask:
    return task_of(problem_from(layered(layers)), Limits(time.monotonic() + 60, most, seed), 60.0)


def test_batch_is_the_class_of_the_first_input() -> None:
    space = space_from(layered(2))
    assert space.classes[batch_class(space) or 0].places == ((0, 0),)


def test_megatron_splits_hidden() -> None:
    space = space_from(layered(2))
    assert megatron(space, space.empty, "model") == (((), ()), ((), ("model",)), (("model",), ()))


def test_steps_change_what_they_say() -> None:
    space = space_from(layered(2))
    one = put(space, space.empty, "data", [(0, 0)])
    assert one == ((("data",), ()), ((), ()), ((), ()))
    assert take(space, one, "data", [0]) == space.empty
    assert store(space, one, "data", [0, 1]) == ((("data",), ()), ((), ("data",)), ((), ()))


def test_tactics_are_distinct() -> None:
    found = tactics(space_from(layered(2)))
    assert len(set(found.values())) == len(found)
    assert any(name.startswith("Megatron") for name in found)


@pytest.mark.slow
def test_search_is_no_worse_than_its_seeds_and_depends_on_nothing_but_them() -> None:
    first, second = task(), task()
    found = run_partitioner(first).assignment
    assert found == run_partitioner(second).assignment
    assert list(first.explorer.found) == list(second.explorer.found)
    score = first.explorer.score
    best = first.explorer.found[found]
    assert best is not None
    for tactic in first.explorer.tactics.values():
        rough = first.explorer.found[tactic]
        assert rough is not None and score(best) <= score(rough)


def test_climbing_ends_where_no_step_is_better() -> None:
    found = task()
    limits = Limits(time.monotonic() + 60, 400, 0)
    checker = Explorer(found.space, limits, None, found.explorer.price)
    checker.look_at("what is there", [found.space.empty])
    first = checker.best
    checker.climb({})
    assert first is not None and checker.best is not None and not checker.ended_by
    best = checker.score(checker.best.cost)
    assert best < checker.score(first.cost)
    for step in all_moves(found.space, checker.best.assignment):
        cost = found.explorer.price(step)
        assert cost is None or checker.score(cost)[0] > best[0] * 0.998


def test_steps_that_seem_bad_are_not_taken() -> None:
    found = task()
    limits = Limits(time.monotonic() + 60, 400, 0)
    checker = Explorer(found.space, limits, None, found.explorer.price)
    checker.look_at("what is there", [found.space.empty])
    steps = dict.fromkeys(all_moves(found.space, found.space.empty))
    slow = {step: StepCost(1e9, 0.0) for step in steps} | {found.space.empty: StepCost(1.0, 0.0)}
    assert checker._promising(found.space.empty, slow) == []
    assert set(checker._promising(found.space.empty, {})) == set(steps) - {found.space.empty}


def test_quick_estimates_are_made_once_and_up_to_a_number() -> None:
    asked = []

    def price(assignment: Assignment) -> StepCost:
        asked.append(assignment)
        return StepCost(float(len(asked)), 1.0)

    one, other, third, known = (((("x",),) * number,) for number in range(1, 5))
    found = RoughEstimates(price, 2, {known: StepCost(9.0, 1.0)})
    assert [found.get(step) for step in (known, one, one, other, third)] == [
        StepCost(9.0, 1.0), StepCost(1.0, 1.0), StepCost(1.0, 1.0), StepCost(2.0, 1.0), None
    ]  # fmt: skip
    assert asked == [one, other] and len(found) == 3


@pytest.mark.parametrize(("share", "count"), [(0.5, 6), (1.0, 11)])
def test_a_phase_may_end_after_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch, share: float, count: int) -> None:
    now = 0.0
    monkeypatch.setattr(explore.time, "monotonic", lambda: now)

    def price(assignment: Assignment) -> StepCost:
        nonlocal now
        now += 1.0
        return StepCost(1.0, 1.0)

    space = task().space
    checker = Explorer(space, Limits(10.0, 400, 0), None, price)
    steps = list(dict.fromkeys(all_moves(space, space.empty)))
    assert len(steps) > count
    assert checker.look_at("the first", steps, share=share) and len(checker.found) == count
    rough = RoughEstimates(price, 400, until=now - 1.0)
    assert rough.get(space.empty) is None


def test_only_the_most_promising_neighbours_are_priced_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "_PATIENCE", 8)
    found = task()
    start = found.space.empty
    steps = [step for step in dict.fromkeys(all_moves(found.space, start)) if step != start]
    assert len(steps) > 8
    rough = {step: StepCost(1.0 + place / 1e4, 1.0) for place, step in enumerate(steps)} | {start: StepCost(1.0, 1.0)}
    asked: list[Assignment] = []

    def exact(assignment: Assignment) -> StepCost:
        asked.append(assignment)
        return StepCost(2.0, 1.0)

    checker = Explorer(found.space, Limits(time.monotonic() + 60, 400, 0), None, exact)
    checker.evaluate(start)
    checker.climb(rough)
    assert asked == [start, *steps[:8]]


def test_candidates_end_a_search() -> None:
    few = task(most=3)
    run_partitioner(few)
    assert len(few.explorer.found) == 3
    assert few.explorer.ended_by == "candidates"


def test_a_registered_partitioner_takes_our_place() -> None:
    def mine(task: SearchTask) -> dict[str, tuple[tuple[str, ...], ...]]:
        assert [fact.name for fact in task.inputs][0] == "x"
        assert task.mesh.axis_size("data") == 4
        split, whole = task.cost({"x": [["data"], []]}), task.cost({})
        assert split is not None and whole is not None and split.seconds < whole.seconds
        return {"x": (("data",), ())}

    register_partitioner(mine)
    try:
        assert run_partitioner(task()).assignment == ((("data",), ()), ((), ()), ((), ()))
    finally:
        register_partitioner(None)
    with pytest.raises(UsageError, match="a function"):
        register_partitioner(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "axes",
    [
        [[], ["data", "model"]],
        [None, ("data", "model")],
        pyshardy.PartitionSpec(None, ("data", "model")),
        JaxSpec(None, ("data", "model")),
    ],
)
def test_axes_may_be_written_as_in_jax(axes: Any) -> None:
    space = space_from(layered(1))
    assert answer_of(space, {"x": axes}).assignment[0] == ((), ("data", "model"))
    assert (
        answer_of(space, {"x": ["data"]}).assignment[0]
        == answer_of(space, {"x": JaxSpec("data")}).assignment[0]
        == (("data",), ())
    )


@pytest.mark.parametrize(
    "annotations, message",
    [
        ({"z": [["data"]]}, "'z'"),
        ({"x": [["nothing"]]}, "nothing"),
        ({"x": [["data"], ["data"]]}, "each once"),
        ({"x": 3}, "got 3 for x"),
        ({"x": "data"}, "got 'data' for x"),
        ({"x": [3]}, r"got \[3\] for x"),
        ({"x": JaxSpec(JaxSpec.UNCONSTRAINED)}, "PartitionSpec"),
        ({"x": pyshardy.PartitionSpec("data", pyshardy.PartitionSpec.UNCONSTRAINED)}, r"try: \[\["),
        ({"x": pyshardy.PartitionSpec("data", priorities=(1,))}, r"try: \[\["),
        ({"x": pyshardy.PartitionSpec("data:(1)2")}, r"data:\(1\)2"),
    ],
)
def test_wrong_annotations_are_refused(annotations: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        answer_of(space_from(layered(1)), annotations)


def test_the_function_is_no_folder() -> None:
    """A folder that is called like a function of the package would hide it once it is imported."""
    import pyshardy

    assert callable(pyshardy.search)


@pytest.mark.slow
def test_a_partitioner_can_be_given_to_one_search() -> None:
    asked = []

    def mine(task: SearchTask) -> dict[str, tuple[tuple[str, ...], ...]]:
        asked.append(task.mesh)
        return {"x": (("data",), ())}

    text = layered(2)
    plan = pyshardy.search(text, hardware="h100", partitioner=mine, candidates=5)
    assert len(asked) == 1
    assert "what the registered partitioner found" in {row.name for row in plan.summary.rows}
    assert registered_partitioner() is our_partitioner
    with pytest.raises(UsageError, match="choosing a partitioner: got an int, needed a function"):
        pyshardy.search(text, partitioner=3)  # type: ignore[arg-type]


def test_a_plan_is_propagated_once() -> None:
    plan = pyshardy.search(layered(2), hardware="h100", candidates=5)
    assert plan.propagated is plan.propagated
