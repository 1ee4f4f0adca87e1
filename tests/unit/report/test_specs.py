"""Shardings for people and as data."""

from __future__ import annotations

import json

import pytest
from jax.sharding import PartitionSpec as P

from pyshardy.core.notation import parse_sharding
from pyshardy.report.specs import Notation, format_axis, format_sharding, sharding_to_json, spec_entries


@pytest.mark.parametrize(
    ("dims", "spec"),
    [
        ('[{"data"}, {}]', "P('data')"),
        ('[{}, {"model"}]', "P(None, 'model')"),
        ('[{"data", "model"}, {}, {"x"}]', "P(('data', 'model'), None, 'x')"),
        ('[{"a b"}]', "P('a b')"),
        ('[{"it\'s"}]', 'P("it\'s")'),
        ('[{"data", ?}, {?}]', "P('data')"),
        ("[{}, {}]", "replicated"),
        ("[]", "replicated"),
        ('[{}], replicated={"x"}', "replicated"),
        ('[{"data":(1)2}]', '[{"data":(1)2}]'),
        ('[{"data"}p1]', '[{"data"}p1]'),
        ('[{}], unreduced={"x", "y"}', '[{}] unreduced "x", "y"'),
        ('[{"data"}], unreduced={"x"}', '[{"data"}] unreduced "x"'),
    ],
)
def test_shardings_are_specs_where_those_can_say_them(dims: str, spec: str) -> None:
    sharding = parse_sharding(f"<@mesh, {dims}>")
    assert format_sharding(sharding) == spec
    assert format_sharding(sharding, Notation.SDY) == (spec if "P(" not in spec else dims)
    if "P(" in spec:  # it is what JAX reads as the same
        entries = spec_entries(sharding)
        assert entries is not None
        assert eval(spec) == P(*(tuple(entry) if isinstance(entry, list) else entry for entry in entries))


def test_no_sharding_is_replicated() -> None:
    assert format_sharding(None) == "replicated"


@pytest.mark.parametrize(
    ("axis", "spec"), [('"model"', "model"), ('"model":(1)2', '"model":(1)2'), ('"a b"', '"a b"'), ('"ü"', "ü")]
)
def test_axes_have_quotes_where_they_need_them(axis: str, spec: str) -> None:
    assert (format_axis(axis), format_axis(axis, Notation.SDY)) == (spec, axis)


def test_as_data_axes_and_specs_are_structured() -> None:
    found = sharding_to_json(parse_sharding('<@mesh, [{"x", "y":(2)4}, {}], unreduced={"z"}>'))
    assert json.loads(json.dumps(found)) == {
        "sharding": '[{"x", "y":(2)4}, {}] unreduced "z"',
        "mesh": "mesh",
        "spec": None,
        "axes": [[{"name": "x", "pre_size": 1, "size": None}, {"name": "y", "pre_size": 2, "size": 4}], []],
        "unreduced": [{"name": "z", "pre_size": 1, "size": None}],
    }
    assert sharding_to_json(parse_sharding('<@mesh, [{}, {"a", "b"}, {}]>'))["spec"] == [None, ["a", "b"]]
    assert sharding_to_json(None) == {"sharding": "replicated", "mesh": None, "spec": [], "axes": [], "unreduced": []}
