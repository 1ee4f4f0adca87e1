"""A plan as logical axis rules: what is said of the inputs that no rules fit."""

from __future__ import annotations

import json

from pyshardy.report.logical_fit import LogicalArrays
from pyshardy.report.logical_rules import LogicalMisfit, logical_rules

MESH = (("data", 4), ("model", 2))
DATA, MODEL, BOTH = ("data",), ("model",), ("data", "model")
UP = LogicalArrays(("params['up']",), ("embed", "mlp"), (DATA, MODEL), 4, 4 << 20)
DOWN = LogicalArrays(("params['down']",), ("mlp", "embed"), (BOTH,), 4, 2 << 20)
BIAS = LogicalArrays(("params['bias']",), (None,), (MODEL,), 4, 1024)
NORM = LogicalArrays(("params['norm']",), ("norm",), (), 1, 64)


def test_rules_that_fit() -> None:
    found = logical_rules([UP, NORM], MESH)
    assert found.fits and found.pairs == (("embed", "data"), ("mlp", "model"), ("norm", None))
    assert found.bytes == found.fitting_bytes == (4 << 20) + 64
    assert str(found).splitlines() == [
        "logical axis rules, in order, a mesh axis once in an array: all inputs as in the plan",
        "logical axis  mesh axes",
        "────────────  ─────────",
        "embed         data",
        "mlp           model",
        "norm          whole",
    ]
    assert repr(found) == "<LogicalRules: 3, all inputs as in the plan>"


def test_what_the_rules_do_not_fit() -> None:
    found = logical_rules([UP, DOWN, BIAS], MESH)
    assert found.misfits == (
        LogicalMisfit(DOWN, (MODEL, DATA), ("mlp", "embed"), ("params['up']",)),
        LogicalMisfit(BIAS, (), (None,), ()),
    )
    assert found.fitting_bytes == 4 << 20 and not found.fits
    said = " ".join(str(found).split())
    assert "4.0 MiB of 6.0 MiB as in the plan" in said and "no rules fit more" in said
    assert (
        "params['down'], 2.0 MiB: P(('data', 'model')) in the plan, P('model', 'data') by the rules; of its logical axes "
        "(mlp, embed), mlp and embed cannot have these mesh axes beside params['up']" in said
    )
    assert "of its logical axes (None), a dimension without one cannot have mesh axes" in said
    assert all(len(line) <= 120 for line in str(found).splitlines())


def test_the_rules_of_a_batch_come_first() -> None:
    batch = LogicalArrays(("x",), ("batch", None), (BOTH,), 1, 1024)
    assert [name for name, _ in logical_rules([UP, batch], MESH).rules] == ["embed", "mlp", "batch"]
    found = logical_rules([UP, batch], MESH, ["batch", "batch"])
    assert found.first == ("batch",) and [name for name, _ in found.rules] == ["batch", "embed", "mlp"]
    assert [name for name, _ in found.one_per_name().rules] == ["batch", "embed", "mlp"]


def test_one_rule_for_every_name() -> None:
    experts = LogicalArrays(("params['experts']",), ("experts", "embed", "mlp"), (MODEL,), 1, 1 << 20)
    dense = LogicalArrays(("params['up']",), ("embed", "mlp"), ((), MODEL), 1, 4 << 20)
    found = logical_rules([dense, experts], MESH)
    assert found.fits and not found.once
    table = found.one_per_name()
    assert table.once and [one.arrays.inputs for one in table.misfits] == [experts.inputs]
    assert table.one_per_name() is table
    assert "every logical axis has one" in str(table) and "beside params['up']" in " ".join(str(table).split())


def test_a_rule_that_would_split_an_array_twice_along_an_axis_is_left_out_and_said() -> None:
    one, other = (LogicalArrays((name,), (name,), (DATA,), 1, size) for name, size in (("a", 5), ("b", 3)))
    both = LogicalArrays(("c",), ("a", "b"), (DATA,), 1, 1)
    table = logical_rules([one, other, both], MESH, once=True)
    assert table.pairs == (("a", "data"), ("b", None))
    assert "b cannot have these mesh axes, as an array would have one twice" in " ".join(str(table).split())


def test_many_misfits_are_cut_off() -> None:
    others = [
        LogicalArrays((f"p{number}",), (None, *("abc"[: number % 3])), (MODEL,), 1, number + 1) for number in range(3)
    ]
    others += [LogicalArrays((f"q{number}",), (f"n{number}", None), ((), MODEL), 1, 1) for number in range(12)]
    assert "\n3 more\n" in str(logical_rules(others, MESH))


def test_data() -> None:
    data = json.loads(json.dumps(logical_rules([UP, DOWN], MESH).to_json()))
    assert data["rules"] == [["embed", ["data"]], ["mlp", ["model"]]] and data["version"] == 1
    assert data["misfits"][0]["causes"] == ["params['up']"]
