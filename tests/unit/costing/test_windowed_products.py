"""Products that are cut into parts, as XLA's partitioner for TPUs makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.program import CostProgram, walk_ops
from pyshardy.costing.windowed_products import with_windowed_products
from pyshardy.costing.work import is_product, work_of

from .build import described

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
    return described(pyshardy.partition(text, compiler="none").module.text())


def permutes(found: CostProgram) -> int:
    """The number of permutes that run."""
    count = 0
    for op in found.body.ops:
        times = op.rounds if op.is_loop else 1
        assert times is not None
        inside = list(walk_ops(op.regions[1])) if op.is_loop else [op]
        count += times * sum(one.traffic is not None and one.traffic.kind == "collective_permute" for one in inside)
    return count


def flops(found: CostProgram) -> float:
    count = 0.0
    for op in found.body.ops:
        inside = list(walk_ops(op.regions[1])) if op.is_loop else [op]
        count += (op.rounds or 1) * sum(work_of(one.kind).flops for one in inside if is_product(one.kind))
    return count


CASES = pytest.mark.parametrize(
    ("x", "w", "kind"),
    [(ROWS, COLUMNS, "all_gather"), (ROWS, ROWS, "all_gather"), (COLUMNS, ROWS, "reduce_scatter")],
    ids=["free", "contracted", "sum"],
)


@CASES
@pytest.mark.parametrize("devices", [8, 16])
def test_a_part_more_than_there_are_devices_is_sent(x: str, w: str, kind: str, devices: int) -> None:
    depth = 8448 if kind == "reduce_scatter" else 256
    given = partitioned(program(x, w, 4224, devices, depth=depth))
    (whole,) = (op for op in given.body.ops if op.traffic is not None)
    assert whole.traffic is not None and whole.traffic.kind == kind
    part = min(whole.traffic.bytes_before, whole.traffic.bytes_after)
    found = with_windowed_products(given, LIMIT)
    sent = [op for op in walk_ops(found.body) if op.traffic is not None]
    assert {op.traffic.sent_bytes for op in sent if op.traffic is not None} == {part}
    assert permutes(found) == devices + 1
    assert flops(found) == flops(given)
    assert found.body.results == given.body.results
    assert {op.place.cause for op in sent if op.place is not None} == {f"windowed {kind} of dot_general"}


@CASES
def test_values_are_made_before_they_are_read(x: str, w: str, kind: str) -> None:
    found = with_windowed_products(partitioned(program(x, w, 8448, depth=8448)), LIMIT)
    blocks = [found.body, *(region for op in found.body.ops for region in op.regions)]
    assert len(blocks) == 3
    for block in blocks:
        made = set(block.arguments)
        for op in block.ops:
            assert made.issuperset(op.operands) and made.isdisjoint(op.results)
            assert [found.tensors[value] for value in op.operands] == list(op.kind.operands)
            assert [found.tensors[value] for value in op.results] == list(op.kind.results)
            made.update(op.results)
        assert made.issuperset(block.results)


@pytest.mark.parametrize(
    ("given", "is_cut"),
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
def test_when_a_product_is_cut(given: str, is_cut: bool) -> None:
    before = partitioned(given)
    found = with_windowed_products(before, LIMIT)
    assert (permutes(found) > 0) == is_cut and (found is before) == (not is_cut)


def test_a_gather_over_some_devices_stays() -> None:
    text = program(ROWS, ROWS, 65536).replace('"d"=8', '"d"=8, "e"=2')
    before = partitioned(text)
    assert with_windowed_products(before, LIMIT) is before


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
    assert with_windowed_products(few, LIMIT) is few
    found = with_windowed_products(many, LIMIT)
    assert permutes(found) == 9
    assert flops(found) == flops(many)


def test_only_pyshardys_program_for_chips_that_say_so() -> None:
    text = program(ROWS, ROWS, 8448)
    causes = {row.cause for row in pyshardy.cost(text, "v5e").estimate.collectives}
    assert causes == {"windowed all_gather of dot_general"}
    without = replace(find_hardware("v5e"), part_flops_per_byte=None)
    for chip in (without, "h100", "v4"):
        assert [row.kind for row in pyshardy.cost(text, chip).estimate.collectives] == ["all_gather"]


def test_what_is_gathered_is_never_whole() -> None:
    """On 32 devices: the loop holds a few parts of 2 MiB; before, a device held all of a matrix of 64 MiB."""
    text = program(ROWS, COLUMNS, 4224, devices=32, depth=16384).replace("512x", "2048x")
    cut, whole = (
        pyshardy.cost(text, replace(find_hardware("v5e"), part_flops_per_byte=limit)).estimate.memory.bytes
        for limit in (LIMIT, None)
    )
    assert cut + 40 * 2**20 < whole
