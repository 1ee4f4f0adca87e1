from __future__ import annotations

import pytest

from support.after_pass import ABC, after, on, tensor_args
from support.programs_8x8 import FULL, MARK, MINIMAL, T, both_versions, main, needs_kinds, op
from support.reference import jaxlib_version

# Ops with a rule. Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule


def test_product_is_resharded_and_completed() -> None:
    text = f"""{ABC}
        func.func @main(%l: tensor<64x16xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{"b"}}]>}},
                        %r: tensor<16x32xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{}}]>}})
            -> (tensor<64x32xf32> {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{"a"}}]>}}) {{
          %0 = stablehlo.dot %l, %r {on('[{}, {"a"}]')} : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
          return %0 : tensor<64x32xf32>
        }}"""
    assert after(text, FULL) == [
        '%0 = sdy.reshard %arg0 <@m, [{}, {"b"}]>',
        '%1 = sdy.reshard %arg1 <@m, [{"b"}, {"a"}]>',
        '%2 = stablehlo.dot %0, %1 {sharding<[<@m, [{}, {"a"}]>]>}',
        '%3 = sdy.all_reduce {"b"} %2 out_sharding=<@m, [{}, {"a"}]>',
        "return %3",
    ]
    assert len(after(text, MINIMAL)) == 2


def test_most_frequent_mesh_wins() -> None:
    args = tensor_args(x='<@n, [{"a"}, {}]>', y='<@n, [{"a"}, {}]>')
    text = main(args, op("%0", "stablehlo.add", "%x, %y", '[{"a"}, {}]'), result='[{"a"}, {}]')
    assert after(text, FULL) == [
        '%0 = stablehlo.add %arg0, %arg1 {sharding<[<@n, [{"a"}, {}]>]>}',
        '%1 = sdy.reshard %0 <@m, [{"a"}, {}]>',
        "return %1",
    ]


def test_operand_used_twice_is_resharded_twice() -> None:
    text = main(tensor_args(x='[{"a"}, {}]'), op("%0", "stablehlo.add", "%x, %x", '[{"a", "b"}, {"c"}]'))
    assert after(text, FULL)[:3] == [
        '%0 = sdy.reshard %arg0 <@m, [{"a", "b"}, {"c"}]>',
        '%1 = sdy.reshard %arg0 <@m, [{"a", "b"}, {"c"}]>',
        '%2 = stablehlo.add %0, %1 {sharding<[<@m, [{"a", "b"}, {"c"}]>]>}',
    ]


def test_missing_result_sharding_becomes_replicated_behind() -> None:
    args = tensor_args(x='[{"a"}, {}]', y='[{}, {"a"}]')
    assert after(main(args, op("%0", "stablehlo.add", "%x, %y")), FULL) == [
        '%0 = sdy.reshard %arg0 <@m, [{}, {"a"}]>',
        '%1 = stablehlo.add %0, %arg1 {sharding<[<@m, [{}, {"a"}]>]>}',
        "%2 = sdy.reshard %1 <@m, [{}, {}]>",
        "return %2",
    ]


def test_reshape_that_overflows() -> None:
    text = f"""
        sdy.mesh @m = <["a"=2, "b"=4]>
        func.func @main(%x: tensor<30xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"b"}}]>}})
            -> (tensor<2x3x5xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{}}, {{"b"}}]>}}) {{
          %0 = stablehlo.reshape %x {on('[{"a"}, {}, {"b"}]')} : (tensor<30xf32>) -> tensor<2x3x5xf32>
          return %0 : tensor<2x3x5xf32>
        }}"""
    assert after(text, FULL) == [
        '%0 = sdy.reshard %arg0 <@m, [{"a"}]>',
        '%1 = stablehlo.reshape %0 {sharding<[<@m, [{"a"}, {}, {}]>]>}',
        '%2 = sdy.reshard %1 <@m, [{"a"}, {}, {"b"}]>',
        "return %2",
    ]


def test_dynamic_dimensions() -> None:
    text = main(tensor_args(x='[{"a"}, {}]'), op("%0", "stablehlo.abs", "%x", '[{}, {"b"}]'), result='[{}, {"b"}]')
    assert after(text.replace("tensor<8x8xf32>", "tensor<?x8xf32>"), FULL) == [
        '%0 = stablehlo.abs %arg0 {sharding<[<@m, [{"a"}, {}]>]>}',
        '%1 = sdy.reshard %0 <@m, [{}, {"b"}]>',
        "return %1",
    ]


def test_the_rule_on_an_op_counts() -> None:
    rule = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}CUSTOM>"
    call = op("%0", "stablehlo.custom_call", "%x", "[{}, {}]", 'call_target_name = "f", ' + rule)
    text = main(tensor_args(x='[{"a"}, {}]'), call)
    assert after(text.replace("CUSTOM", ""), FULL)[1] == "%1 = sdy.reshard %0 <@m, [{}, {}]>"
    assert len(after(text.replace("CUSTOM", ", custom"), FULL)) == 2


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        (
            '[{"b"}, {}]',
            [
                '%0 = stablehlo.dot %arg0, %arg1 {sharding<[<@m, [{"a"}, {}]>]>}',
                '%1 = sdy.reshard %0 <@m, [{"b"}, {}]>',
            ],
        ),
        ('[{"c"}, {}]', ['%0 = stablehlo.dot %arg0, %arg1 {sharding<[<@m, [{"c"}, {}]>]>}']),
    ],
    ids=["axes of the contraction", "other axes"],
)
def test_minimal_keeps_a_better_product(sharding: str, expected: list[str]) -> None:
    args = tensor_args(l='[{"a"}, {"b"}]', r='[{"b"}, {}]')
    assert after(main(args, op("%0", "stablehlo.dot", "%l, %r", sharding)), MINIMAL)[:-1] == expected


def test_minimal_reshards_around_a_concatenation_of_different_tensors() -> None:
    concatenate = op("%0", "stablehlo.concatenate", "%x, %y", '[{}, {"a"}]', "dimension = 1 : i64", "tensor<8x16xf32>")
    text = main(tensor_args(x='[{}, {"a"}]', y=None), concatenate, type="tensor<8x16xf32>")
    assert after(text, MINIMAL) == [
        '%0 = sdy.reshard %arg0 <@m, [{"a"}, {}]>',
        '%1 = sdy.reshard %arg1 <@m, [{"a"}, {}]>',
        '%2 = stablehlo.concatenate %0, %1, dim = 1 {sharding<[<@m, [{"a"}, {}]>]>}',
        '%3 = sdy.reshard %2 <@m, [{}, {"a"}]>',
        "return %3",
    ]
    same = main(tensor_args(x='[{}, {"a"}]', y='[{}, {"a"}]'), concatenate, type="tensor<8x16xf32>")
    assert len(after(same, MINIMAL)) == 2


# Partial results


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        ("add", "sdy.all_reduce"),
        pytest.param("maximum", "sdy.all_reduce max", marks=needs_kinds),
        pytest.param("minimum", "sdy.all_reduce min", marks=needs_kinds),
        ("multiply", "sdy.all_reduce"),
    ],
)
def test_reductions_are_completed_as_they_combine(combiner: str, expected: str) -> None:
    reduce = f"%0 = stablehlo.reduce(%x init: %c) applies stablehlo.{combiner} across dimensions = [1]"
    body = f"{reduce} " + on('[{"a"}]') + f" : ({T}, tensor<f32>) -> tensor<8xf32>"
    constant = "%c = stablehlo.constant dense<0.0> : tensor<f32>"
    text = main(tensor_args(x='[{"a"}, {"b"}]'), constant, body, result='[{"a"}]', type="tensor<8xf32>")
    assert after(text, FULL)[2] == f'%1 = {expected} {{"b"}} %0 out_sharding=<@m, [{{"a"}}]>'


@pytest.mark.skipif(jaxlib_version() >= (0, 12), reason="the dialect knows how an all-reduce combines")
def test_older_dialects_keep_what_combines_beside_the_op() -> None:
    reduce = "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1]"
    constant = "%c = stablehlo.constant dense<0.0> : tensor<f32>"
    text = main(
        tensor_args(x='[{}, {"b"}]'), constant, f"{reduce} : ({T}, tensor<f32>) -> tensor<8xf32>", type="tensor<8xf32>"
    )
    assert after(text, FULL)[2] == '%1 = sdy.all_reduce {"b"} %0 out_sharding=<@m, [{}]> {reduction_op = 1 : i32}'


PARTIAL = main(
    tensor_args(l='[{"a"}, {"b", "c"}]', r='[{"b", "c"}, {}]'),
    op("%0", "stablehlo.dot", "%l, %r", '[{"a"}, {}], unreduced={"c"}'),
    result='[{"a"}, {}], unreduced={"c"}',
)


@both_versions
def test_what_may_stay_unreduced_is_not_reduced(version: str) -> None:
    assert after(PARTIAL, version)[1:] == [
        '%1 = sdy.all_reduce {"b"} %0 out_sharding=<@m, [{"a"}, {}], unreduced={"c"}>', "return %1"
    ]  # fmt: skip


def test_partial_results_are_marked_on_demand() -> None:
    dot, all_reduce, _ = after(PARTIAL, MARK)
    assert dot.endswith('{sharding<[<@m, [{"a"}, {}], unreduced={"b", "c"}>]>}')
    assert all_reduce.endswith('out_sharding=<@m, [{"a"}, {}], unreduced={"c"}>')


def test_minimal_leaves_partial_results_of_reduced_tensors() -> None:
    text = main(tensor_args(l='[{"a"}, {"b"}]', r='[{"b"}, {}]'), op("%0", "stablehlo.dot", "%l, %r", '[{"a"}, {}]'))
    assert len(after(text, MINIMAL)) == 2


# Unreduced axes


@needs_kinds
@both_versions
def test_unreduced_operands_are_reduced_use_by_use(version: str) -> None:
    text = main(tensor_args(x='[{"a"}, {}], unreduced=max{"b"}'), op("%0", "stablehlo.add", "%x, %x", '[{"a"}, {}]'))
    assert after(text, version)[:3] == [
        '%0 = sdy.all_reduce max {"b"} %arg0 out_sharding=<@m, [{"a"}, {}]>',
        '%1 = sdy.all_reduce max {"b"} %arg0 out_sharding=<@m, [{"a"}, {}]>',
        '%2 = stablehlo.add %0, %1 {sharding<[<@m, [{"a"}, {}]>]>}',
    ]


@both_versions
def test_becoming_unreduced_on_return(version: str) -> None:
    text = main(
        tensor_args(x='[{"a", "c"}, {"b":(1)2}]'), returned="%x", result='[{"a"}, {}], unreduced={"b", "c"}'
    ).replace('"b"=2, "c"=2]>', '"b"=4, "c"=2]>', 1)
    assert after(text, version) == [
        '%0 = sdy.replicated_to_unreduced {"b":(2)2} %arg0 '
        'out_sharding=<@m, [{"a", "c"}, {"b":(1)2}], unreduced={"b":(2)2}>',
        '%1 = sdy.sharded_to_unreduced [{"c"}, {"b":(1)2}] %0 out_sharding=<@m, [{"a"}, {}], unreduced={"b", "c"}>',
        "return %1",
    ]


@both_versions
def test_reshard_to_unreduced_is_replaced(version: str) -> None:
    target = '<@m, [{}, {"a"}], unreduced={"b"}>'
    text = main(tensor_args(x='[{"a"}, {"b"}]'), f"%0 = sdy.reshard %x {target} : {T}", result=target)
    assert after(text, version) == [
        '%0 = sdy.reshard %arg0 <@m, [{}, {"a"}]>',
        '%1 = sdy.replicated_to_unreduced {"b"} %0 out_sharding=<@m, [{}, {"a"}], unreduced={"b"}>',
        "return %1",
    ]


def test_unsharded_value_is_not_made_unreduced() -> None:
    text = main(f"%x: {T}", returned="%x", result='[{}, {}], unreduced={"b"}')
    assert after(text, FULL) == ["return %arg0"]
    text = main(f"%x: {T}", returned="%x", result='[{"a"}, {}], unreduced={"b"}')
    assert after(text, FULL)[0] == '%0 = sdy.reshard %arg0 <@m, [{"a"}, {}], unreduced={"b"}>'


def test_barriers_are_seen_through() -> None:
    barrier = f"%b = sdy.propagation_barrier %x allowed_direction=NONE {on('[{}, {}]')} : {T}"
    abs_ = op("%0", "stablehlo.abs", "%b", '[{"a"}, {}]')
    assert len(after(main(tensor_args(x='[{"a"}, {}]'), barrier, abs_, result='[{"a"}, {}]'), FULL)) == 3
