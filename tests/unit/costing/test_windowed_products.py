"""Products that are cut into parts, as XLA's partitioner for TPUs makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.counting import Counted, count_kernels
from pyshardy.costing.kernels import Kernels
from pyshardy.costing.launches import Launches, launches_of
from pyshardy.costing.program import CostProgram
from pyshardy.costing.timeline import timeline
from pyshardy.costing.topology import make_topology
from pyshardy.costing.windowed_products import with_windowed_products
from pyshardy.costing.work import is_product, work_of
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


def launched(given: CostProgram, limit: float | None = LIMIT) -> Launches:
    chip = replace(find_hardware("v5e"), part_flops_per_byte=limit)
    return launches_of(given, make_topology(chip, given.mesh_axes))


def permutes(found: Launches) -> list[Counted]:
    return [one for one in count_kernels(found.block) if one.op.kind.name == "stablehlo.collective_permute"]


def flops(block: Kernels) -> float:
    """The operations of all products."""
    count = 0.0
    for kernel in block.kernels:
        count += sum(work_of(op.kind).flops for op in kernel.ops if is_product(op.kind))
        count += (kernel.root.rounds or 1) * sum(map(flops, kernel.inner))
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
    found = launched(given)
    sent = permutes(found)
    assert sum(one.times for one in sent) == devices + 1 and len(sent) == 5
    assert {one.op.traffic.sent_bytes for one in sent if one.op.traffic is not None} == {part}
    assert {one.op.place.cause for one in sent if one.op.place is not None} == {f"windowed {kind} of dot_general"}
    assert flops(found.block) == flops(launched(given, None).block)
    assert found.block.results == found.program.body.results


def check(block: Kernels, launches: Launches) -> None:
    """Values are made once, before they are read, and with the types that their readers know."""
    later = {value for kernel in block.kernels for value in kernel.writes}
    assert len(later) == sum(len(kernel.writes) for kernel in block.kernels) and later.isdisjoint(block.arguments)
    for kernel in block.kernels:
        assert later.isdisjoint(kernel.reads)
        for op in kernel.ops:
            assert [launches.flat.tensors[value] for value in op.operands] == [*op.kind.operands]
            assert [launches.flat.tensors[value] for value in op.results] == [*op.kind.results]
        for inner in kernel.inner:
            check(inner, launches)
        later.difference_update(kernel.writes)


@CASES
def test_values_are_made_before_they_are_read(x: str, w: str, kind: str) -> None:
    found = launched(partitioned(program(x, w, 8448, depth=8448)))
    (loop,) = (one for one in found.block.kernels if one.inner)
    assert len(loop.inner) == 2 and loop.root.rounds == 2 and kind
    check(found.block, found)


def test_equal_loops_are_built_once() -> None:
    text = program(ROWS, ROWS, 8448)
    name = "jit(f)/dot_general"
    first, second = (
        text.replace(NAME, f'loc("{one}"("m.py":3:4))') for one in (name, "jit(f)/transpose(jvp())/dot_general")
    )
    both = first.replace(
        "return %0",
        second[second.index("%0 = ") : second.index("return")].replace("%0", "%1").replace("%w", "%v") + "return %0",
    )
    both = both.replace("return %0 :", "%2 = stablehlo.add %0, %1 : tensor<8448x512xbf16>\n return %2 :")
    both = both.replace("%w: ", '%v: tensor<256x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %w: ', 1)
    for given, count in ((both, 2), (both.replace("transpose(jvp())/", ""), 1)):
        loops = [one for one in launched(partitioned(given)).block.kernels if one.inner]
        assert len(loops) == 2 and len({id(one.inner) for one in loops}) == count
        assert loops[0].reads != loops[1].reads


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
    assert (found is not before) == is_cut
    assert bool(permutes(launched(before))) == is_cut


def test_a_gather_over_some_devices_stays() -> None:
    text = program(ROWS, ROWS, 65536).replace('"d"=8', '"d"=8, "e"=2')
    before = partitioned(text)
    assert with_windowed_products(before, LIMIT) is before


BATCHED = """
sdy.mesh @mesh = <["d"=8]>
func.func @main(%x: tensor<8x64x8448xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}, {{"d"}}]>}},
                %w: tensor<8x8448x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"d"}}, {{}}]>}})
    -> (tensor<8x64x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{out}]>}}) {{
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<8x64x8448xbf16>, tensor<8x8448x64xbf16>) -> tensor<8x64x64xbf16>
  return %0 : tensor<8x64x64xbf16>
}}"""


@pytest.mark.parametrize(
    ("out", "is_cut"), [('{"d"}, {}, {}', False), ('{}, {"d"}, {}', True), ('{}, {}, {"d"}', True)]
)
def test_a_sum_that_is_scattered_along_a_batch_dimension_stays(out: str, is_cut: bool) -> None:
    before = partitioned(BATCHED.format(out=out))
    assert any(op.kind.name == "stablehlo.reduce_scatter" for op in before.body.ops)
    assert (with_windowed_products(before, LIMIT) is not before) == is_cut


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
    found = launched(many)
    assert sum(one.times for one in permutes(found)) == 9
    assert 0.9 < flops(found.block) / flops(launched(many, None).block) < 1.1


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


def test_parts_go_both_ways_at_the_same_time() -> None:
    """Half of the permutes of a loop go back, over links of their own; what the compiler expects is not known."""
    found = launched(partitioned(program(ROWS, ROWS, 4224)))
    (loop,) = (one for one in found.block.kernels if one.inner)
    one_way, both_ways = (found.scheduler(both).kernel(loop) for both in (False, True))
    sent = {one.op.traffic for one in permutes(found)}
    (seconds,) = (found.seconds_of(traffic) for traffic in sent if traffic is not None)
    assert one_way > 7.9 * seconds > both_ways > 3.9 * seconds
    assert found.expected_seconds()(loop) == one_way
    assert {span.stream for span in timeline(found).spans if span.op == "collective_permute"} == {0}
