"""Collectives that XLA for TPUs cuts into permutes beside a product: which they are, and how they count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cost.windowed import BATCHED

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collective_rows import CollectiveCost
from pyshardy.costing.program import CostProgram, walk_ops
from pyshardy.costing.windowed_products import with_windowed_products
from pyshardy.ir.cost_program import cost_program

LIMIT = 4224.0
ROWS, COLUMNS = '[{"d"}, {}]', '[{}, {"d"}]'
NAME = 'loc("jit(f)/dot_general"("m.py":3:4))'


def program(x: str, w: str, rows: int, devices: int = 8, uses: int = 1, depth: int = 256, type: str = "bf16") -> str:
    """Products of one gathered matrix, or one whose parts are summed."""
    first, second, result = f"{rows}x{depth}x{type}", f"{depth}x512x{type}", f"{rows}x512x{type}"
    names = [f"%{at}" for at in range(uses)]
    products = "\n".join(
        f"{name} = stablehlo.dot_general %x{at}, %w, contracting_dims = [1] x [0] : (tensor<{first}>, tensor<{second}>)"
        f" -> tensor<{result}> {NAME}"
        for at, name in enumerate(names)
    )
    arguments = [f'%x{at}: tensor<{first}> {{sdy.sharding = #sdy.sharding<@mesh, {x}>}} loc("x")' for at in range(uses)]
    out = f"tensor<{result}> {{sdy.sharding = #sdy.sharding<@mesh, {ROWS}>}}"
    return f"""
    sdy.mesh @mesh = <["d"={devices}]>
    func.func @main({", ".join(arguments)}, %w: tensor<{second}> {{sdy.sharding = #sdy.sharding<@mesh, {w}>}} loc("w"))
        -> ({", ".join([out] * uses)}) {{
      {products}
      return {", ".join(names)} : {", ".join([f"tensor<{result}>"] * uses)}
    }}"""


def partitioned(text: str) -> CostProgram:
    part = pyshardy.partition(text, compiler="none")
    return cost_program(part.module.root, part.meshes)


def is_cut(given: CostProgram) -> bool:
    """Whether the partitioner makes permutes of a collective."""
    found = with_windowed_products(given, LIMIT)
    places = [op.place for op in walk_ops(found.body) if op.traffic is not None]
    assert places
    return any(place is not None and place.windowed is not None for place in places)


def priced(text: str, limit: float | None = LIMIT) -> pyshardy.Estimate:
    return pyshardy.cost(text, replace(find_hardware("v5e"), part_flops_per_byte=limit)).estimate


CASES = pytest.mark.parametrize(
    ("x", "w", "kind"),
    [(ROWS, COLUMNS, "all_gather"), (ROWS, ROWS, "all_gather"), (COLUMNS, ROWS, "reduce_scatter")],
    ids=["free", "contracted", "sum"],
)


@CASES
@pytest.mark.parametrize("devices", [8, 16])
def test_a_part_more_than_there_are_devices_is_sent(x: str, w: str, kind: str, devices: int) -> None:
    text = program(x, w, 4224, devices, depth=8448 if kind == "reduce_scatter" else 256)
    (whole,), (cut,) = (priced(text, limit).collectives for limit in (None, LIMIT))
    assert (whole.kind, whole.count, whole.windowed) == (kind, 1, None)
    part = whole.sent_bytes_per_device // (devices - 1)
    assert cut == replace(
        whole,
        kind="collective_permute",
        cause=f"windowed {kind} of dot_general",
        count=devices + 1,
        sent_bytes_per_device=(devices + 1) * part,
        windowed=kind,
    )


@CASES
def test_nothing_else_of_an_estimate_changes(x: str, w: str, kind: str) -> None:
    text = program(x, w, 4224, depth=8448)
    whole, cut = priced(text, None), priced(text)
    assert cut.collectives != whole.collectives and kind in {row.windowed for row in cut.collectives}
    assert replace(cut, collectives=whole.collectives) == whole


def test_rounds_of_a_loop_count() -> None:
    text = program(ROWS, ROWS, 4224)
    body = text[text.index("%0 = ") : text.index("return %0")]
    kind = "tensor<4224x512xbf16>"
    loop = f"""
      %n = stablehlo.constant dense<3> : tensor<i32>
      %i = stablehlo.constant dense<0> : tensor<i32>
      %z = stablehlo.constant dense<0.0> : {kind}
      %r:2 = stablehlo.while(%a = %i, %b = %z) : tensor<i32>, {kind} cond {{
        %c = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        {body}
        %t = stablehlo.add %b, %0 : {kind}
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %a, %one : tensor<i32>
        stablehlo.return %next, %t : tensor<i32>, {kind}
      }}
      """
    (row,) = priced(text.replace(body, loop).replace("return %0 :", "return %r#1 :")).collectives
    assert (row.kind, row.count) == ("collective_permute", 27)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (program(ROWS, ROWS, 4224), True),
        (program(ROWS, ROWS, 4216), False),
        (program(ROWS, ROWS, 4224, type="f32"), False),
        (program(ROWS, ROWS, 8448, type="f32"), True),
        (program(ROWS, ROWS, 8448, devices=4), False),
        (program(ROWS, ROWS, 4224, devices=32), True),
        (program(ROWS, ROWS, 65536, devices=64), False),
        (program(ROWS, ROWS, 4224, uses=2), False),
    ],
    ids=["long enough", "too short", "too short in f32", "f32", "four", "32", "64 devices", "two users"],
)
def test_when_a_product_is_cut(given: str, expected: bool) -> None:
    assert is_cut(partitioned(given)) == expected


def test_a_gather_over_some_devices_stays() -> None:
    text = program(ROWS, ROWS, 65536).replace('"d"=8', '"d"=8, "e"=2')
    before = partitioned(text)
    assert with_windowed_products(before, LIMIT) is before


@pytest.mark.parametrize(("text", "expected"), BATCHED)
def test_a_sum_that_is_scattered_along_a_batch_dimension_stays(text: str, expected: bool) -> None:
    before = partitioned(text)
    assert any(op.kind.name == "stablehlo.reduce_scatter" for op in before.body.ops)
    assert is_cut(before) == expected


CONVOLUTION = """
sdy.mesh @mesh = <["d"=8]>
func.func @main(%x: tensor<{n}x4x4x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}, {{}}, {{}}, {{}}]>}},
                %w: tensor<3x3x64x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}, {w}]>}})
    -> (tensor<{n}x4x4x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}, {{}}, {{}}, {{}}]>}}) {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<{n}x4x4x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<{n}x4x4x64xbf16>
  return %0 : tensor<{n}x4x4x64xbf16>
}}"""


@pytest.mark.parametrize("w", ['{"d"}, {}', '{}, {"d"}'], ids=["contracted", "free"])
def test_convolutions_are_cut_too(w: str) -> None:
    """Places in the padding do not count: 100 of 144 products are made."""
    few, many = (partitioned(CONVOLUTION.format(n=8 * n, w=w)) for n in (47, 48))
    assert not is_cut(few) and is_cut(many)


def rows(text: str, chip: str) -> list[CollectiveCost]:
    return list(pyshardy.cost(text, chip).estimate.collectives)


def test_only_pyshardys_program_for_chips_that_say_so() -> None:
    text = program(ROWS, ROWS, 8448)
    assert [row.windowed for row in rows(text, "v5e")] == ["all_gather"]
    for chip in ("h100", "v4"):
        assert [(row.kind, row.windowed) for row in rows(text, chip)] == [("all_gather", None)]


def test_a_part_of_v6e_takes_a_longer_product() -> None:
    found = [rows(program(ROWS, ROWS, count), "v6e") for count in (9832, 9840)]
    assert [one[0].kind for one in found] == ["all_gather", "collective_permute"]


def test_a_permute_of_a_product_in_the_gradient_says_so() -> None:
    text = program(ROWS, ROWS, 8448).replace("jit(f)/dot_general", "jit(f)/transpose(jvp())/dot_general")
    (row,) = rows(text, "v5e")
    assert row.cause == "windowed all_gather of dot_general in the gradient"
    assert row.ops == ("jit(f)/transpose(jvp())/dot_general",) and row.source == ("m.py", 3, 4)
