"""Why a plan has its rules: the best other sharding of each, and collectives beside whole arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import jax
import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.report.reasons import PlanReason, RuleCollective
from pyshardy.searching.autopartition.moves import put_all, take
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.planning.reasons import better_sharding, other_shardings, reasons_of, rule_groups
from pyshardy.searching.planning.search import Search
from pyshardy.searching.planning.settling import best_answer

MESH = {"data": 4, "model": 2}
OPTIONS = SearchOptions(find_hardware("v5e"), None, None, CollectiveModel.FORMULA, Objective(1e12), 600.0, 60, 0)
LAYER = {"up": jax.ShapeDtypeStruct((512, 2048), "float32"), "down": jax.ShapeDtypeStruct((2048, 512), "float32")}
ARGUMENTS = [LAYER] * 2, jax.ShapeDtypeStruct((4096, 512), "float32")


def predict(params, x):
    for layer in params:
        hidden = jax.nn.relu(x @ layer["up"])
        x = x + hidden @ layer["down"]
    return x


@pytest.fixture(scope="module")
def search() -> Search:
    found = Search(pyshardy.load(predict, *ARGUMENTS, mesh=MESH), OPTIONS, True, lambda text: None)
    found.run()
    return found


@pytest.fixture(scope="module")
def plan(search: Search) -> Answer:
    found = best_answer(search)
    assert found is not None
    return found


@pytest.mark.slow
def test_every_rule_has_a_reason_and_none_names_a_better_plan(search: Search, plan: Answer) -> None:
    rules, reasons = rule_groups(search, plan.assignment), reasons_of(search, plan)
    assert len(reasons) == len(rules) and {group for rule in rules for group in rule.groups} == {
        number for number, group in enumerate(search.space.groups) if group.is_free and group.shape
    }
    assert all(reason.seconds >= -1e-9 and reason.instead and reason.is_exact for reason in reasons)


@pytest.mark.slow
def test_the_cost_of_the_other_sharding_is_that_of_the_program_with_it(search: Search, plan: Answer) -> None:
    own = search.options.row("", search.annotated(plan.assignment))
    assert own is not None
    rules = {f"for {rule.pattern}": rule for rule in rule_groups(search, plan.assignment)}
    reason = next(one for one in reasons_of(search, plan) if one.decision.split(") ")[-1] in rules)
    rule = rules[reason.decision.split(") ")[-1]]
    rows = [
        search.options.row("", search.annotated(one))
        for one in other_shardings(search.space, plan.assignment, rule.groups)
    ]
    losses = [row.seconds - own.seconds for row in rows if row is not None]
    assert any(loss == pytest.approx(reason.seconds, abs=1e-12) for loss in losses)
    assert all(loss >= -1e-9 for loss in losses)


@pytest.mark.slow
def test_collectives_are_those_of_the_program_less_those_with_whole_arrays(search: Search, plan: Answer) -> None:
    def counted(answer: Answer) -> Counter[tuple[str, str]]:
        rows = pyshardy.partition(search.annotated(answer.assignment)).traffic.collectives
        found: Counter[tuple[str, str]] = Counter()
        for row in rows:
            found[row.kind, "+".join(axis.strip('"') for axis in row.axes)] += row.times
        return found

    for rule in rule_groups(search, plan.assignment):
        if rule.axes:
            whole = plan.assignment
            for axis in MESH:
                whole = take(search.space, whole, axis, rule.groups)
            expected = counted(plan)
            expected.subtract(counted(Answer(whole, {})))
            reason = next(one for one in reasons_of(search, plan) if one.decision.endswith(f"for {rule.pattern}"))
            assert {(one.kind, one.axes): one.count for one in reason.collectives if one.count} == {
                key: count for key, count in expected.items() if count
            }


@pytest.mark.slow
def test_a_plan_that_is_made_worse_has_a_better_neighbour(search: Search, plan: Answer) -> None:
    assert better_sharding(search, plan) is None
    rules = rule_groups(search, plan.assignment)
    rule = next(rule for rule in rules if sum(bool(axes) for axes in rule.axes) == 1)  # one step away
    worse = plan.assignment
    for axis in MESH:
        worse = take(search.space, worse, axis, rule.groups)
    found = better_sharding(search, Answer(worse, {}))
    assert found is not None
    better, before = search.plain(found), search.plain(worse)
    assert better is not None and before is not None and search.checker.score(better) < search.checker.score(before)


def test_sentences() -> None:
    made, spared = RuleCollective("all_gather", "data", 2, 2048), RuleCollective("all_reduce", "model", 0, -1024)
    reason = PlanReason("P('data') for *['w']", 0.001, 2048.0, "P()", True, (made, spared))
    assert reason.sentences == [
        "P('data') for *['w']: with P() 1.0 ms longer, 2.0 KiB more",
        "  makes 2 all_gather over data (2.0 KiB)",
        "  spares larger all_reduce over model (1.0 KiB)",
    ]
    assert replace(reason, instead="", collectives=()).sentences == [
        "P('data') for *['w']: no other sharding was priced"
    ]
    many = replace(reason, collectives=tuple(replace(made, axes=f"a{number}") for number in range(5)))
    assert many.sentences[1].endswith("and 2 more")
    assert "the same time, 2.0 KiB more" in replace(reason, seconds=0.0).sentences[0]


@pytest.mark.slow
def test_without_time_reasons_are_quick(plan: Answer) -> None:
    module = pyshardy.load(predict, *ARGUMENTS, mesh=MESH)
    late = Search(module, replace(OPTIONS, budget_s=1e-9), True, lambda text: None)
    reasons = [reason for reason in reasons_of(late, plan) if reason.instead]
    assert reasons and not any(reason.is_exact or reason.collectives for reason in reasons)
    assert all("about" in reason.sentences[0] for reason in reasons)


@pytest.mark.slow
def test_a_rule_of_whole_arrays_has_its_own_name() -> None:
    def step(params, mean, square, x):
        return jax.numpy.tanh(x @ params["w"]) @ (mean["w"] + square["w"]) @ params["v"]

    weight = jax.ShapeDtypeStruct((512, 512), "float32")
    weights = {"w": weight, "v": weight}
    found = Search(pyshardy.load(step, weights, weights, weights, weight, mesh=MESH), OPTIONS, True, lambda _: None)
    found.run()
    names = {group: found.inputs[one.members[0]].name for group, one in enumerate(found.space.groups)}
    rows = [group for group, name in names.items() if name in ("mean['w']", "square['w']")]
    assignment = put_all(found.space, found.space.empty, rows, 0)
    said = [one.decision for one in reasons_of(found, Answer(assignment, {}))]
    assert "P() for params['w']" in said and "P() for other inputs, which stay whole" in said
