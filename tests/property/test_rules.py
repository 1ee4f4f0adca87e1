"""Laws of rules: notation and its inverse, drafts, and what the rules of some ops have to do with one another."""

from __future__ import annotations

import copy
import pickle
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.rules.dimension_numbers import DotNumbers
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder, identity_rule
from pyshardy.rules.table import rule_of

sizes = st.sampled_from((0, 1, 1, 2, 3, 4, 6, 8, 12))
shapes = st.lists(sizes, max_size=4).map(tuple)
Declaration = tuple[int, list[tuple[int, int]], FactorKind, bool]


@st.composite
def drafts(draw: st.DrawFn) -> tuple[RuleBuilder, list[Declaration]]:
    """A draft with some factors declared, each at most once per value and somewhere, and the declarations."""
    operands = draw(st.lists(st.none() | shapes, min_size=1, max_size=3))
    results = draw(st.lists(st.none() | shapes, min_size=1, max_size=2))
    draft = RuleBuilder(operands, results)
    declared: list[Declaration] = []
    for _ in range(draw(st.integers(0, 22))):
        kind = draw(st.sampled_from(FactorKind))
        values = draft.operands if kind is FactorKind.REDUCTION else range(len(draft.shapes))
        size = draw(sizes)
        free = [value for value in values if any(_accepts(slot, size, draft) for slot in draft.slots[value])]
        if not free:
            continue
        places = []
        for value in draw(st.lists(st.sampled_from(free), min_size=1, unique=True)):
            dims = [dim for dim, slot in enumerate(draft.slots[value]) if _accepts(slot, size, draft)]
            places.append((value, draw(st.sampled_from(dims))))
        declared.append((size, places, kind, draw(st.booleans())))
        draft.factor(*declared[-1])
    return draft, declared


def _accepts(slot: list[int], size: int, draft: RuleBuilder) -> bool:
    """Whether the dimension stays valid, and the factor used, if a factor of this size is declared there."""
    return not slot or (size != 1 and all(draft.sizes[factor] != 1 for factor in slot))


rules = drafts().map(lambda drawn: drawn[0].finish())


@given(rules)
def test_reading_what_was_printed_gives_the_same_rule(rule: Rule) -> None:
    assert parse_rule(str(rule)) is rule
    custom = Rule(rule.factor_sizes, rule.operands, rule.results, rule.kinds, rule.blocked, is_custom=True)
    assert parse_rule(str(custom)) is custom


@given(rules)
def test_copies_of_a_rule_are_the_rule(rule: Rule) -> None:
    assert pickle.loads(pickle.dumps(rule)) is copy.deepcopy(rule) is rule


@given(drafts())
def test_factors_are_numbered_in_the_order_of_declaration(drawn: tuple[RuleBuilder, list[Declaration]]) -> None:
    draft, declared = drawn
    rule = draft.finish()
    for factor, (size, places, kind, blocked) in enumerate(declared):
        assert rule.factor_sizes[factor] == size
        assert rule.kinds[factor] is kind
        assert (factor in rule.blocked) is blocked
        for value, dim in places:
            assert factor in rule.tensors[value][dim]


@given(drafts())
def test_what_was_not_declared_is_a_filler_of_its_own(drawn: tuple[RuleBuilder, list[Declaration]]) -> None:
    draft, declared = drawn
    rule = draft.finish()
    places: dict[int, int] = {}
    for tensor in rule.tensors:
        for dim in tensor:
            for factor in dim:
                places[factor] = places.get(factor, 0) + 1
    for factor in range(len(declared), len(rule.factor_sizes)):
        assert rule.factor_sizes[factor] == 1
        assert rule.kinds[factor] is FactorKind.PASS_THROUGH
        assert factor not in rule.blocked
        assert places[factor] == 1


@given(drafts())
def test_every_dimension_has_a_factor(drawn: tuple[RuleBuilder, list[Declaration]]) -> None:
    draft, _ = drawn
    rule = draft.finish()
    assert [len(tensor) for tensor in rule.tensors] == [len(shape or ()) for shape in draft.shapes]
    assert all(dim for tensor in rule.tensors for dim in tensor)


@given(drafts())
def test_finishing_twice_changes_nothing(drawn: tuple[RuleBuilder, list[Declaration]]) -> None:
    draft, _ = drawn
    assert draft.finish() is draft.finish()


@given(shapes, st.integers(1, 3), st.integers(1, 3))
def test_pointwise_ops_have_the_identity(shape: tuple[int, ...], operands: int, results: int) -> None:
    spec = OpSpec("stablehlo.add", [shape] * operands, [shape] * results)
    assert rule_of(spec) is rule_of(spec, conservative=True) is identity_rule(shape, operands, results)


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes with as many elements, at least one."""
    primes = draw(st.lists(st.sampled_from((2, 2, 2, 3, 3, 5, 7)), max_size=6))
    found = []
    for order in (primes, draw(st.permutations(primes))):
        dims = [1] * draw(st.integers(1 if primes else 0, 4))
        for prime in order:
            dims[draw(st.integers(0, len(dims) - 1))] *= prime
        found.append(tuple(dims))
    return found[0], found[1]


def _reshape(source: tuple[int, ...], target: tuple[int, ...]) -> Rule:
    rule = rule_of(OpSpec("stablehlo.reshape", [source], [target]))
    assert rule is not None
    return rule


@given(reshapes())
def test_reshape_factors_multiply_to_the_sizes_of_the_operand(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rule = _reshape(*pair)
    (dims,) = rule.operands
    assert [prod(rule.factor_sizes[factor] for factor in dim) for dim in dims] == list(pair[0])


@given(reshapes())
def test_reshape_without_permutation_goes_both_ways(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rule, back = _reshape(*pair), _reshape(*reversed(pair))
    if FactorKind.PERMUTATION in rule.kinds:
        return
    (dims,) = rule.results
    assert [prod(rule.factor_sizes[factor] for factor in dim) for dim in dims] == list(pair[1])
    assert _linked(rule) == _linked(back)


def _linked(rule: Rule) -> list[int]:
    """Sizes of the factors of both sides, in the order of the operand."""
    results = {factor for dim in rule.results[0] for factor in dim}
    return [rule.factor_sizes[factor] for dim in rule.operands[0] for factor in dim if factor in results]


@given(shapes)
def test_reshape_to_the_same_shape_passes_everything_through(shape: tuple[int, ...]) -> None:
    shape = tuple(size for size in shape if size > 1)
    assert _reshape(shape, shape) is identity_rule(shape)


@given(shapes.flatmap(lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))))
def test_transpose_is_a_relabelled_identity(drawn: tuple[tuple[int, ...], list[int]]) -> None:
    shape, order = drawn
    result = tuple(shape[dim] for dim in order)
    rule = rule_of(OpSpec("stablehlo.transpose", [shape], [result], {"permutation": tuple(order)}))
    assert rule is not None
    assert rule.factor_sizes == result
    assert rule.results == (tuple((dim,) for dim in range(len(shape))),)
    assert tuple(rule.operands[0][dim] for dim in order) == rule.results[0]


@given(shapes, shapes, shapes, shapes)
def test_dot_general_has_one_factor_per_loop(
    batch: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...], inner: tuple[int, ...]
) -> None:
    batching, b, n = tuple(range(len(batch))), len(batch), len(inner)
    left, right = tuple(range(b, b + n)), tuple(range(b, b + n))
    numbers = DotNumbers(batching, batching, left, right)
    spec = OpSpec(
        "stablehlo.dot_general",
        [batch + inner + lhs, batch + inner + rhs],
        [batch + lhs + rhs],
        {"dot_dimension_numbers": numbers},
    )
    rule = rule_of(spec)
    assert rule is not None
    assert rule.factor_sizes == batch + lhs + rhs + inner
    assert rule.factors_of(FactorKind.REDUCTION) == tuple(range(len(batch + lhs + rhs), len(rule.factor_sizes)))
    assert set(rule.batching_factors) >= set(range(b))


@given(shapes.filter(len), st.data())
def test_conservative_slices_are_blocked_where_they_cut(shape: tuple[int, ...], data: st.DataObject) -> None:
    cut = tuple(data.draw(st.integers(0, size)) for size in shape)
    spec = OpSpec("stablehlo.slice", [shape], [cut])
    normal, conservative = rule_of(spec), rule_of(spec, conservative=True)
    assert normal is not None and conservative is not None
    assert normal.blocked == ()
    assert conservative.blocked == normal.factors_of(FactorKind.PERMUTATION)
    assert (normal.kinds, normal.tensors) == (conservative.kinds, conservative.tensors)
