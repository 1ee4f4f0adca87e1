from __future__ import annotations

import pytest

from support.after_pass import ABC, after, refusal, tensor_args, whole

PASS = "sdy-reshard-to-collectives"
MESHES = ABC + (
    'sdy.mesh @same = <["a"=2, "b"=2, "c"=2]>\n'
    'sdy.mesh @back = <["a"=2, "b"=2, "c"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n'
    'sdy.mesh @z = <["z"=8]>\n'
    "sdy.mesh @one = <[], device_ids=[0]>\n"
)
T = "tensor<8x8xf32>"


def chain(given: str | None, *ops: str) -> str:
    """A function of `%x`; every line is a sharding to reshard to, or `barrier`."""
    lines, value = [], "%x"
    for number, op in enumerate(ops):
        made = (
            f"propagation_barrier {value} allowed_direction=NONE" if op == "barrier" else f"reshard {value} {whole(op)}"
        )
        lines.append(f"%{number} = sdy.{made} : {T}")
        value = f"%{number}"
    body = "\n  ".join([*lines, f"return {value} : {T}"])
    return f"{MESHES}func.func @main({tensor_args(x=given)}) -> {T} {{\n  {body}\n}}"


def test_a_reshard_becomes_collectives_at_its_place() -> None:
    assert after(chain('[{"a", "b"}, {}]', '[{}, {"a"}]', '[{}, {"a", "c"}]'), PASS) == [
        '%0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"b", "a"}, {}]>',
        '%1 = sdy.all_to_all [{"a"}: 0->1] %0 out_sharding=<@m, [{"b"}, {"a"}]>',
        '%2 = sdy.all_gather [{"b"}, {}] %1 out_sharding=<@m, [{}, {"a"}]>',
        '%3 = sdy.all_slice [{}, {"c"}] %2 out_sharding=<@m, [{}, {"a", "c"}]>',
        "return %3",
    ]


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ('[{"a"}, {}]', '<@z, [{"z"}, {}]>'),
        ('[{"a"}, {}]', "<@one, []>"),
        ("<@one, []>", '[{"a"}, {}]'),
    ],
)
def test_reshards_that_collectives_cannot_do_stay(given: str, target: str) -> None:
    assert after(chain(given, target), PASS) == [f"%0 = sdy.reshard %arg0 {whole(target)}", "return %0"]


def test_redundant_reshards_go_unless_they_are_kept() -> None:
    text = chain('[{"a", ?}, {}]', '[{"a"}, {}]')
    assert after(text, PASS) == ["return %arg0"]
    assert after(text, f"{PASS}{{keep-redundant-reshards=true}}") == [
        '%0 = sdy.reshard %arg0 <@m, [{"a"}, {}]>',
        "return %0",
    ]


def test_barriers_are_passed_over_unless_nothing_is_sharded() -> None:
    assert after(chain('[{"a"}, {}]', "barrier", "[{}, {}]"), PASS)[1:] == [
        '%1 = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@m, [{}, {}]>',
        "return %1",
    ]
    assert after(chain('[{"a"}, {}]', "barrier", '[{"a"}, {}]'), PASS)[1:] == ["return %arg0"]
    assert after(chain("[{}, {}]", "barrier", "[{}, {}]"), PASS)[1:] == ["return %0"]


def test_a_value_without_a_sharding_is_replicated() -> None:
    assert (
        after(chain(None, '[{"a"}, {}]'), PASS)[0]
        == '%0 = sdy.all_slice [{"a"}, {}] %arg0 out_sharding=<@m, [{"a"}, {}]>'
    )
    assert after(chain(None, "<@z, [{}, {}]>"), PASS) == ["return %arg0"]


def test_a_mesh_under_another_name_is_the_same_mesh() -> None:
    assert after(chain('[{"a"}, {}]', '<@same, [{"a"}, {"b"}]>', '<@same, [{"a"}, {}]>'), PASS) == [
        '%0 = sdy.all_slice [{}, {"b"}] %arg0 out_sharding=<@m, [{"a"}, {"b"}]>',
        '%1 = sdy.all_gather [{}, {"b"}] %0 out_sharding=<@m, [{"a"}, {}]>',
        "return %1",
    ]


def test_what_is_replicated_on_the_way_stays_on_its_mesh() -> None:
    assert after(chain('[{"a"}, {}]', "<@back, [{}, {}]>", '<@back, [{"b"}, {}]>'), PASS) == [
        '%0 = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@m, [{}, {}]>',
        '%1 = sdy.all_slice [{"b"}, {}] %0 out_sharding=<@m, [{"b"}, {}]>',
        '%2 = sdy.collective_permute %1 out_sharding=<@back, [{"b"}, {}]>',
        "return %2",
    ]
    by_way_of_other_axes = chain('[{"a"}, {}]', "<@z, [{}, {}]>", '[{"b"}, {}]')
    assert after(by_way_of_other_axes, PASS)[1:] == ['%1 = sdy.reshard %0 <@m, [{"b"}, {}]>', "return %1"]
    assert after(chain('[{"a"}, {}]', "<@z, [{}, {}]>", '<@z, [{"z"}, {}]>'), PASS)[1:] == [
        '%1 = sdy.reshard %0 <@z, [{"z"}, {}]>',
        "return %1",
    ]


def test_axes_of_a_dimension_that_are_to_be_unreduced() -> None:
    text = (
        chain('[{"b"}, {}]', '[{"a"}, {"c"}], unreduced={"b"}')
        .replace('"a"=2', '"a"=4')
        .replace("[7", "[15, 14, 13, 12, 11, 10, 9, 8, 7")
    )
    message = refusal(text, PASS)
    assert 'axis "b", which shards a dimension before and must become unreduced' in message
    assert "sdy-insert-explicit-reshards" in message


def test_regions() -> None:
    text = f"""{ABC}func.func @main(%i: tensor<i32>, {tensor_args(x='[{"a"}, {}]')}) -> {T} {{
      %0 = "stablehlo.case"(%i) ({{
        %1 = sdy.reshard %x <@m, [{{}}, {{}}]> : {T}
        stablehlo.return %1 : {T}
      }}) : (tensor<i32>) -> {T}
      return %0 : {T}
    }}"""
    assert '%1 = sdy.all_gather [{"a"}, {}] %arg1 out_sharding=<@m, [{}, {}]>' in after(text, PASS)
