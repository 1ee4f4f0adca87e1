from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError
from pyshardy.reshard.plan import OpInput, OpPlan, element_count, op_mesh, plan_op
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule

from .setting import ABC, ADD, DOT

MESHES = {
    "m": ABC,
    "n": Mesh(ABC.axes, range(8)[::-1]),
    "other": Mesh([("z", 8)]),
    "device": Mesh((), [3]),
    "empty": Mesh(()),
}


def plan(rule: Rule, *texts: str | None, name: str = "op", is_full: bool = True) -> OpPlan | None:
    shapes = tuple(tuple(_size(rule, dim) for dim in tensor) for tensor in rule.tensors)
    found = tuple(None if text is None else parse_sharding(text) for text in texts)
    return plan_op(OpInput(name, rule, shapes, found, is_full), MESHES)


def _size(rule: Rule, dim: tuple[int, ...]) -> int:
    size = 1
    for factor in dim:
        size *= rule.factor_sizes[factor]
    return size


def targets(found: OpPlan | None) -> list[str | None]:
    assert found is not None
    return [None if target is None else str(target) for target in found.targets]


@pytest.mark.parametrize(
    "texts",
    [
        (None, None, None),
        ('<@m, [{"a"}, {}]>', '<@other, [{"z"}, {}]>', None),
        ("<@device, []>", None, None),
        ("<@device, []>", "<@m, [{}, {}]>", None),
    ],
    ids=["no sharding", "different axes", "single device", "device and axes"],
)
def test_left_alone(texts: tuple[str | None, ...]) -> None:
    assert plan(ADD, *texts) is None


def test_only_what_changes_is_resharded() -> None:
    found = plan(ADD, '<@m, [{"a"}, {}]>', '<@m, [{}, {"a"}]>', None)
    assert targets(found) == ['<@m, [{}, {"a"}]>', None, '<@m, [{}, {"a"}]>']


def test_partial_results_are_told() -> None:
    found = plan(DOT, '<@m, [{}, {"a", "b"}]>', '<@m, [{"a", "b"}, {}]>', "<@m, [{}, {}]>")
    assert found is not None and targets(found) == [None, None, None]
    assert " ".join(map(str, found.reduced)) == '"a" "b"'


def test_another_device_order_is_resharded_to_the_most_frequent_mesh() -> None:
    found = plan(ADD, '<@n, [{"a"}, {}]>', '<@n, [{"a"}, {}]>', '<@m, [{"a"}, {}]>')
    assert targets(found) == [None, None, '<@n, [{"a"}, {}]>']


def test_replicated_tensors_with_another_device_order_stay() -> None:
    found = plan(ADD, '<@n, [{"a"}, {}]>', '<@n, [{"a"}, {}]>', "<@m, [{}, {}]>")
    assert targets(found)[2] == '<@n, [{"a"}, {}]>'
    assert targets(plan(ADD, "<@n, [{}, {}]>", "<@m, [{}, {}]>", None)) == [None] * 3


def test_natural_device_order_is_preferred_without_axes() -> None:
    found = plan(ADD, "<@n, [{}, {}]>", "<@m, [{}, {}]>", None)
    assert found is not None and found.mesh == "m"


def test_an_empty_mesh_agrees_with_all() -> None:
    found = plan(ADD, "<@empty, [{}, {}]>", '<@m, [{"a"}, {}]>', None)
    assert targets(found) == ['<@m, [{"a"}, {}]>', None, '<@m, [{"a"}, {}]>']


def test_first_mesh_to_be_most_frequent() -> None:
    texts = ['<@m, [{"a"}]>', '<@n, [{"a"}]>', '<@n, [{"a"}]>', '<@m, [{"a"}]>', "<@m, [{}]>", "<@m, [{}]>"]
    assert op_mesh(tuple(map(parse_sharding, texts))) == "n"


def test_overflow_is_resharded_away() -> None:
    rule = parse_rule("<([ij])->([i, j]) {i=3, j=4}>")
    assert targets(plan(rule, '<@m, [{"a"}]>', "<@m, [{}, {}]>")) == ["<@m, [{}]>", None]


def test_reshape_of_the_same_layout_stays_in_spite_of_overflow() -> None:
    rule = parse_rule("<([ij])->([i, j]) {i=3, j=4}>")
    texts = ('<@m, [{"a"}]>', '<@m, [{"a"}, {}]>')
    assert targets(plan(rule, *texts, name="stablehlo.reshape")) == [None, None]


def test_minimal_changes_only_products() -> None:
    texts = ('<@m, [{"a"}, {"b"}]>', '<@m, [{"b"}, {}]>', '<@m, [{"b"}, {}]>')
    assert targets(plan(DOT, *texts, is_full=False)) == [None] * 3
    assert targets(plan(DOT, *texts, name="stablehlo.dot", is_full=False)) == [None, None, '<@m, [{"a"}, {}]>']


def test_minimal_tells_partial_results_under_unreduced_ones() -> None:
    operands = ('<@m, [{"a"}, {"b", "c"}]>', '<@m, [{"b", "c"}, {}]>')
    found = plan(DOT, *operands, '<@m, [{"a"}, {}], unreduced={"c"}>', is_full=False)
    assert found is not None and " ".join(map(str, found.reduced)) == '"b" "c"'
    found = plan(DOT, *operands, '<@m, [{"a"}, {}]>', is_full=False)
    assert found is not None and found.reduced == ()


def test_refuses_disagreement_under_an_unreduced_result() -> None:
    with pytest.raises(InvalidShardingError) as caught:
        plan(DOT, '<@m, [{}, {"b"}]>', "<@m, [{}, {}]>", '<@m, [{}, {}], unreduced={"b"}>', is_full=False)
    assert str(caught.value) == (
        'finding the axes along which op gives partial results: got {"b"} and {} for factor k, '
        "needed operands that are sharded alike in the factors that are reduced"
    )


@pytest.mark.parametrize(("shape", "count"), [((2, 3), 6), ((), 1), ((0, 3), 0), ((-1, 3), 0), (None, 0)])
def test_element_count(shape: tuple[int, ...] | None, count: int) -> None:
    assert element_count(shape) == count
