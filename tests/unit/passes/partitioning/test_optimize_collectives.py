from __future__ import annotations

import pytest

from support.after_pass import ABC, after, tensor_args

PASS = "sdy-optimize-collectives"
T = "tensor<8x8xf32>"
GIVEN = tensor_args(x='[{"a", "b"}, {}]')
PERMUTE = f'%0 = sdy.collective_permute %x out_sharding=<@m, [{{"b", "a"}}, {{}}]> : {T}'
MOVE = f'%1 = sdy.all_to_all [{{"a"}}: 0->1] %0 out_sharding=<@m, [{{"b"}}, {{"a"}}]> : {T}'
MOVE_B = f'%2 = sdy.all_to_all [{{"b"}}: 0->1] %1 out_sharding=<@m, [{{}}, {{"a", "b"}}]> : {T}'
SPLIT = [
    '%0 = stablehlo.reshape %arg0 {sharding<[<@m, [{"a"}, {"b"}, {}, {}]>]>}',
    '%1 = sdy.all_to_all [{"a"}: 0->3] %0 out_sharding=<@m, [{}, {"b"}, {}, {"a"}]>',
    '%2 = sdy.all_to_all [{"b"}: 1->0] %1 out_sharding=<@m, [{"b"}, {}, {}, {"a"}]>',
    '%3 = stablehlo.reshape %2 {sharding<[<@m, [{"b"}, {"a"}]>]>}',
]


def main(*lines: str, returned: str) -> str:
    values = returned.split(", ")
    types = ", ".join([T] * len(values))
    body = "\n  ".join(lines)
    return f"{ABC}func.func @main({GIVEN}) -> ({types}) {{\n  {body}\n  return {returned} : {types}\n}}"


def ops(text: str) -> list[str]:
    """The names of the ops after the pass."""
    return [line.split(" = ")[-1].split()[0] for line in after(text, PASS)]


def test_a_permutation_goes() -> None:
    assert after(main(PERMUTE, MOVE, returned="%1"), PASS) == [*SPLIT, "return %3"]


def test_the_chain_ends_where_something_else_uses_its_value() -> None:
    found = ops(main(PERMUTE, MOVE, MOVE_B, returned="%1, %2"))
    assert found == ["stablehlo.reshape", *["sdy.all_to_all"] * 2, "stablehlo.reshape", "sdy.all_to_all", "return"]
    assert ops(main(PERMUTE, MOVE, MOVE_B, returned="%2"))[1:4] == [*["sdy.all_to_all"] * 2, "stablehlo.reshape"]


@pytest.mark.parametrize(("lines", "returned"), [([PERMUTE, MOVE], "%0, %1"), ([PERMUTE], "%0")])
def test_a_permutation_that_stays(lines: list[str], returned: str) -> None:
    assert "sdy.collective_permute" in ops(main(*lines, returned=returned))


def test_dead_users_do_not_count() -> None:
    dead = f"%3 = stablehlo.abs %1 : {T}"
    assert ops(main(PERMUTE, MOVE, dead, MOVE_B, returned="%2"))[-2:] == ["stablehlo.reshape", "return"]
