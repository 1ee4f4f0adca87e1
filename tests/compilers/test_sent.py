"""What devices send on TPUs: equal collectives are one, and what products alone read is sent as bf16."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.compilers.plugins import is_installed

CHIP = "tpu:v5e:2x4"
MESH = 'sdy.mesh @mesh = <["data"=8]>'
ROWS, WHOLE = '[{"data"}, {}]', "[{}, {}]"


@pytest.fixture(autouse=True)
def compiler() -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")


def twice(kind: str, between: int) -> str:
    """A value that is gathered or permuted twice, the second time behind a chain of ops."""
    part, whole = "tensor<128x1024xf32>", "tensor<1024x1024xf32>" if kind == "gather" else "tensor<128x1024xf32>"
    groups = "[[0, 1, 2, 3, 4, 5, 6, 7]]"
    ring = ", ".join(f"[{at}, {(at + 1) % 8}]" for at in range(8))

    def sent(name: str, channel: int) -> str:
        handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 0>"
        if kind == "gather":
            return f'%{name} = "stablehlo.all_gather"(%p) <{{all_gather_dim = 0 : i64, {handle}, replica_groups = dense<{groups}> : tensor<1x8xi64>, use_global_device_ids}}> : ({part}) -> {whole}'
        return f'%{name} = "stablehlo.collective_permute"(%p) <{{{handle}, source_target_pairs = dense<[{ring}]> : tensor<8x2xi64>}}> : ({part}) -> {whole}'

    names = ["a", *(f"n{at}" for at in range(between))]
    chain = "\n".join(f"%{new} = stablehlo.tanh %{old} : {whole}" for old, new in zip(names, names[1:]))
    given = "tensor<1024x1024xf32>"
    result = "tensor<8192x1024xf32>" if kind == "gather" else given
    return f"""{MESH}
    func.func @main(%x: {given} {{sdy.sharding = #sdy.sharding<@mesh, {ROWS}>}}) -> {result} {{
      %r = sdy.manual_computation(%x) in_shardings=[<@mesh, {ROWS}>] out_shardings=[<@mesh, {ROWS}>] manual_axes={{"data"}} (%p: {part}) {{
        {sent("a", 1)}
        {chain}
        {sent("b", 2)}
        %s = stablehlo.multiply %{names[-1]}, %b : {whole}
        sdy.return %s : {whole}
      }} : ({given}) -> {result}
      return %r : {result}
    }}"""


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (twice("gather", 100), 1),
        (twice("gather", 104), 2),
        (twice("permute", 104), 1),
    ],
    ids=["gathers near one another", "gathers far from one another", "permutations"],
)
def test_equal_collectives_are_one(given: str, count: int) -> None:
    (row,) = pyshardy.confirm(given, CHIP).rows
    assert row.compiled is not None and row.compiled.count == count
    assert row.estimated == row.compiled


def gathered(precision: str, more: str = "", types: str = "") -> str:
    matrix, rows = "tensor<1024x1024xf32>", "tensor<4096x1024xf32>"
    sharded = f"{{sdy.sharding = #sdy.sharding<@mesh, {ROWS}>}}"
    results = "%d, %n" if more else "%d"
    return f"""{MESH}
    func.func @main(%x: {rows} {sharded}, %w: {matrix} {sharded}) -> ({rows}{types}) {{
      %g = sdy.sharding_constraint %w <@mesh, {WHOLE}> : {matrix}
      %d = stablehlo.dot_general %x, %g, contracting_dims = [1] x [0], precision = [{precision}, {precision}] : ({rows}, {matrix}) -> {rows}
      {more}
      return {results} : {rows}{types}
    }}"""


NEGATED = "%n = stablehlo.negate %g : tensor<1024x1024xf32>"


@pytest.mark.parametrize(
    ("given", "width"),
    [
        (gathered("DEFAULT"), 2),
        (gathered("HIGHEST"), 4),
        (gathered("DEFAULT", NEGATED, ", tensor<1024x1024xf32>"), 4),
    ],
    ids=["a product reads it", "a precise product reads it", "something else reads it too"],
)
def test_what_products_alone_read_is_sent_as_bf16(given: str, width: int) -> None:
    (row,) = pyshardy.confirm(given, CHIP).rows
    assert row.compiled is not None and row.compiled.sent_bytes_per_device == width * 1024 * 1024 * 7 // 8
    assert row.estimated == row.compiled
