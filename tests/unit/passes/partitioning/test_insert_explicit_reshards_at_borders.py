from __future__ import annotations

import pytest

from support.after_pass import ABC, after, on, refusal, tensor_args
from support.programs_8x8 import FULL, MINIMAL, T, both_versions, main, op, two_results

# Data flow and calls


def test_loop() -> None:
    text = f"""{ABC}
        func.func @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"a"}}, {{}}]>}}, %n: tensor<i32>)
            -> (tensor<8x4xf32>, tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"c"}}, {{}}]>}}) {{
          %0:2 = stablehlo.while(%i = %n, %s = %x) : tensor<i32>, tensor<8x4xf32> attributes {on("[]", '[{}, {"b"}]')}
            cond {{
              %p = stablehlo.constant dense<true> : tensor<i1>
              stablehlo.return %p : tensor<i1>
            }} do {{
              %t = stablehlo.abs %s {on('[{"a"}, {}]')} : tensor<8x4xf32>
              %u = stablehlo.negate %t {on('[{"a"}, {}]')} : tensor<8x4xf32>
              stablehlo.return %i, %t : tensor<i32>, tensor<8x4xf32>
            }}
          return %0#1, %x : tensor<8x4xf32>, tensor<8x4xf32>
        }}"""
    found = after(text, FULL)
    assert found[0] == '%0 = sdy.reshard %arg0 <@m, [{}, {"b"}]>'
    assert found[found.index("} do {") + 1 : -4] == [
        '%4 = stablehlo.abs %iterArg_0 {sharding<[<@m, [{}, {"b"}]>]>}',
        '%5 = sdy.reshard %4 <@m, [{"a"}, {}]>',
        '%6 = sdy.reshard %5 <@m, [{}, {"b"}]>',
        '%7 = stablehlo.negate %5 {sharding<[<@m, [{"a"}, {}]>]>}',
        "stablehlo.return %iterArg, %6",
    ]
    assert found[-3:] == [
        "%2 = sdy.reshard %1#1 <@m, [{}, {}]>", '%3 = sdy.reshard %arg0 <@m, [{"c"}, {}]>', "return %2, %3"
    ]  # fmt: skip
    assert not any("reshard" in line for line in after(text, MINIMAL))


@both_versions
def test_calls_are_always_resharded(version: str) -> None:
    args = tensor_args(p='[{"a"}, {}]', q=None)
    callee = f"func.func private @f({args}) -> {T} {{\n  return %p : {T}\n}}"
    call = f"%0 = func.call @f(%x, %y) : ({T}, {T}) -> {T}"
    text = main(tensor_args(x='[{"b"}, {}]', y='[{}, {"b"}]'), call) + callee
    assert after(text, version)[:3] == [
        "%0 = sdy.reshard %arg1 <@m, [{?}, {?}]>", '%1 = sdy.reshard %arg0 <@m, [{"a"}, {}]>', "%2 = call @f(%1, %0)"
    ]  # fmt: skip


def test_operands_of_a_callee_without_shardings_become_replicated() -> None:
    callee = f"func.func private @f(%p: {T}) -> {T} {{\n  return %p : {T}\n}}"
    text = main(tensor_args(x='[{"b"}, {}]'), f"%0 = func.call @f(%x) : ({T}) -> {T}") + callee
    assert after(text, MINIMAL)[0] == "%0 = sdy.reshard %arg0 <@m, [{}, {}]>"


def test_callees_without_a_body_are_taken_as_unsharded() -> None:
    text = main(tensor_args(x='[{"b"}, {}]'), f"%0 = func.call @f(%x) : ({T}) -> {T}")
    assert after(text + f"func.func private @f({T}) -> {T}", MINIMAL)[0] == "%0 = sdy.reshard %arg0 <@m, [{}, {}]>"


def test_manual_computation_is_met_in_both_views() -> None:
    manual = (
        '%0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a", "b"}, {}]>] out_shardings=[<@m, [{"a"}, {"c"}]>] '
        f'manual_axes={{"a"}} (%p: tensor<4x8xf32>) {{\n sdy.return %p : tensor<4x8xf32>\n}} : ({T}) -> {T}'
    )
    assert after(main(tensor_args(x='[{"c"}, {}]'), manual, result='[{"a"}, {"c"}]'), FULL) == [
        '%0 = sdy.reshard %arg0 <@m, [{"a", "b"}, {}]>',
        '%1 = sdy.manual_computation(%0) in_shardings=[<@m, [{"a", "b"}, {}]>] out_shardings=[<@m, [{"a"}, {"c"}]>] '
        'manual_axes={"a"} (%arg1: tensor<4x8xf32>) {',
        '%2 = sdy.reshard %arg1 <@m, [{}, {"c"}]>',
        "sdy.return %2",
        "}",
        "return %1",
    ]


# Single devices


@both_versions
def test_op_on_one_device(version: str) -> None:
    text = f"""
        sdy.mesh @g = <["p"=4]>
        sdy.mesh @d2 = <[], device_ids=[2]>
        func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@g, [{{"p"}}, {{}}]>}}, %b: {T}, %t: !stablehlo.token) {{
          %0:3 = stablehlo.custom_call @f(%a, %b, %t) {on("<@d2, []>", '<@g, [{"p"}]>', "<@g, []>")}
              : ({T}, {T}, !stablehlo.token) -> ({T}, tensor<8xf32>, !stablehlo.token)
          return
        }}"""
    assert after(text, version) == [
        "%0 = sdy.reshard %arg0 <@g, [{}, {}]>",
        "%1 = sdy.reshard %0 <@d2, []>",
        "%2 = sdy.reshard %arg1 <@d2, []>",
        "%3:3 = stablehlo.custom_call @f(%1, %2, %arg2) {sharding<[<@d2, []>, <@d2, []>, <@g, []>]>}",
        "%4 = sdy.reshard %3#0 <@g, [{}, {}]>",
        "%5 = sdy.reshard %3#1 <@g, [{}]>",
        '%6 = sdy.reshard %5 <@g, [{"p"}]>',
        "return",
    ]


# Refusals

UNREDUCED = '[{"a"}, {}], unreduced={"b"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            main(tensor_args(x="<@d0, []>"), returned="%x"),
            "'func.func' op has argument 0 on a single device; only ops inside may be",
        ),
        (
            main(tensor_args(x=None), returned="%x", result="<@d0, []>"),
            "'func.func' op has result 0 on a single device; only ops inside may be",
        ),
        (
            main(tensor_args(x=UNREDUCED), returned="%x", result='<@n, [{"a"}, {}]>'),
            "'func.return' op needs operand 0, which is sharded <@m, [{\"a\"}, {}], unreduced={\"b\"}>, as "
            '<@n, [{"a"}, {}]>; with unreduced axes both must be on the same mesh',
        ),
        (
            main(tensor_args(x=UNREDUCED), 'stablehlo.custom_call @f(%x) {has_side_effect = true} : (' + T + ") -> ()",
                 returned="%x"),
            "'stablehlo.custom_call' op has operand 0 with unreduced axes but no results",
        ),
        (
            main(
                tensor_args(x=UNREDUCED),
                two_results("[{}, {}]", '[{}, {}], unreduced={"a"}'),
                returned="%0#0",
            ),
            "'stablehlo.custom_call' op has results with different unreduced axes",
        ),
        (
            main(tensor_args(x=UNREDUCED), f'%0 = sdy.reshard %x <@m, [{{"a"}}, {{}}], unreduced={{"c"}}> : {T}'),
            "'sdy.reshard' op drops and adds unreduced axes at once, \"b\" and \"c\"",
        ),
        (
            main(
                tensor_args(x=None),
                two_results("<@d0, []>", "<@d1, []>"),
                returned="%0#0",
            ),
            "'stablehlo.custom_call' op has results on different single devices",
        ),
    ],
    ids=["argument", "result", "meshes", "no results", "results differ", "both ways", "two devices"],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    assert refusal(text, MINIMAL) == message


def test_refuses_operands_that_disagree_under_an_unreduced_result() -> None:
    text = main(
        tensor_args(l='[{}, {"b"}]', r="[{}, {}]"),
        op("%0", "stablehlo.dot", "%l, %r", '[{}, {}], unreduced={"b"}'),
    )
    assert refusal(text, MINIMAL).startswith(
        "'stablehlo.dot' op finding the axes along which stablehlo.dot gives partial results: got {\"b\"} and {}"
    )


def test_refuses_a_sharding_that_would_use_an_axis_twice() -> None:
    args = tensor_args(x='[{"a"}, {}]', y='[{"a"}, {}]')
    text = main(args, op("%0", "stablehlo.add", "%x, %y", '[{}, {}], replicated={"a"}'))
    assert refusal(text, FULL) == (
        "'stablehlo.add' op sharding a tensor: got axis \"a\" twice, needed every axis at most once"
    )
