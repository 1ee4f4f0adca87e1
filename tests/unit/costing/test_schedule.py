"""Time: the roofline of kernels, overlap of streams, loops and branches."""

from __future__ import annotations

import dataclasses

import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.counting import count_collectives
from pyshardy.costing.estimate import Estimate, estimate
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.launches import launches_of
from pyshardy.costing.program import CostKind, CostOp, CostTensor, OpTraffic
from pyshardy.costing.roofline import Bound, Roofline
from pyshardy.costing.schedule import COMPUTE, Scheduler, Task, makespan
from pyshardy.costing.topology import make_topology

from .build import CHAIN, LOOP, described

H100 = find_hardware("h100")
NO_FLOOR = dataclasses.replace(H100, kernel_floor_s=0.0)


def chain(*reads: tuple[int, ...]) -> list[Kernel]:
    """Kernels that make the values 0, 1, ... and read others."""
    tensor = CostTensor((4,), "f32", 16)
    kinds = [CostKind("stablehlo.custom_call", (tensor,) * len(values), (tensor,)) for values in reads]
    ops = [CostOp(kind, values, (index,)) for index, (kind, values) in enumerate(zip(kinds, reads))]
    return [Kernel((op,), op.operands, op.results, frozenset()) for op in ops]


def test_a_collective_runs_beside_kernels() -> None:
    kernels = chain((), (0,), (0,), (1, 2))
    tasks = [Task(COMPUTE, 1.0), Task(0, 5.0), Task(COMPUTE, 3.0), Task(COMPUTE, 1.0)]
    assert makespan(kernels, tasks) == 7.0
    assert makespan(kernels, [task._replace(stream=COMPUTE) for task in tasks]) == 10.0


def test_two_collectives_of_one_network_wait_for_each_other_and_those_of_two_do_not() -> None:
    kernels = chain((), ())
    assert makespan(kernels, [Task(0, 2.0), Task(0, 3.0)]) == 5.0
    assert makespan(kernels, [Task(0, 2.0), Task(1, 3.0)]) == 3.0


def test_a_loop_takes_all_streams() -> None:
    kernels = chain((), (), (1,))
    assert makespan(kernels, [Task(0, 4.0), Task(None, 2.0), Task(COMPUTE, 1.0)]) == 7.0


def test_nothing_takes_no_time() -> None:
    assert makespan([], []) == 0.0


def test_a_kernel_takes_what_limits_it() -> None:
    flat = flatten(described(CHAIN))
    first, product, _ = fuse(flat).kernels
    roofline = Roofline(NO_FLOOR, flat.tensors)
    pointwise, matrix = roofline.price(first), roofline.price(product)
    assert pointwise.bytes == 3 * 2**22 and pointwise.bound is Bound.MEMORY
    assert pointwise.seconds == pytest.approx(3 * 2**22 / (3.35e12 * H100.memory_efficiency))
    assert (pointwise.flops, pointwise.transcendentals) == (2**20, 2**20)
    assert matrix.flops == 2 * 2**30 and matrix.bound is Bound.MATRIX
    assert matrix.seconds == pytest.approx(2 * 2**30 / (4.95e14 * H100.matrix_efficiency))
    assert Roofline(H100, flat.tensors).price(first) == pointwise._replace(seconds=7e-6, bound=Bound.FLOOR)


def sorting(length: int) -> str:
    whole = f"tensor<4x{length}xf32>"
    return f"""func.func @main(%x: {whole}) -> {whole} {{
      %0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) : ({whole}) -> {whole}
      return %0 : {whole}
    }}"""


@pytest.mark.parametrize("length, passes", [(1024, 1), (4096, 1), (8192, 3), (16384, 6), (65536, 15)])
def test_long_rows_are_sorted_in_several_passes(length: int, passes: int) -> None:
    """A tile holds 4,096 numbers with their positions; of 2**k rows of tiles, stage k takes k steps and one tile pass."""
    flat = flatten(described(sorting(length)))
    (kernel,) = fuse(flat).kernels
    found = Roofline(NO_FLOOR, flat.tensors).price(kernel)
    moved = 2 * 4 * length * 8
    assert found.seconds == pytest.approx(passes * moved / (3.35e12 * H100.memory_efficiency))


def test_of_a_slice_only_what_it_takes_is_read() -> None:
    program = described("""func.func @main(%x: tensor<1024x64xf32>, %i: tensor<i32>) -> tensor<1x64xf32> {
      %z = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.dynamic_slice %x, %i, %z, sizes = [1, 64]
        : (tensor<1024x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      return %0 : tensor<1x64xf32>
    }""")
    flat = flatten(program)
    assert Roofline(H100, flat.tensors).price(fuse(flat).kernels[-1]).bytes == 2 * 256 + 4


def test_a_loop_counts_as_often_as_it_runs() -> None:
    flat = flatten(described(LOOP))
    scheduler = Scheduler(Roofline(H100, flat.tensors), lambda _: 0.0, lambda _: 0)
    totals = scheduler.block(fuse(flat))
    assert totals.flops == 5 * (64 + 1) + 6
    assert not totals.notes
    unknown = flatten(described(LOOP.replace("%j = stablehlo.add %i, %one", "%j = stablehlo.multiply %i, %one")))
    totals = Scheduler(Roofline(H100, unknown.tensors), lambda _: 0.0, lambda _: 0).block(fuse(unknown))
    assert [note for note in totals.notes if "number of rounds" in note]


REDUCE = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
"""


def test_an_estimate_says_what_it_is() -> None:
    program = described(REDUCE)
    assert program.mesh_axes == (("x", 8),)
    (counted,) = count_collectives(program)
    assert counted.op.traffic == OpTraffic("all_reduce", "mesh", (("x", 8),), 8, 4096, 4096, 7168)
    found = estimate(launches_of(program, make_topology(H100, program.mesh_axes)))
    assert found.step_seconds == found.exposed_seconds == found.communication_seconds > 0
    assert "formula model" in found.assumption
    data = found.to_json()
    assert data["estimated"]["collectives"][0]["sent_bytes_per_device"] == 7168
    assert set(data) == {"hardware", "topology", "devices", "collective_model", "assumption", "notes", "estimated"}
    assert found.fits and not dataclasses.replace(found, memory_limit_bytes=1.0).fits


def test_the_same_program_gives_the_same_estimate() -> None:
    topology = make_topology(H100, (("x", 8),))
    first, second = (estimate(launches_of(described(REDUCE), topology)).to_json() for _ in range(2))
    assert first == second


def test_products_and_collectives_beside_them_overlap_in_pieces() -> None:
    kernels = chain((), (0,), (1,))
    tasks = [Task(COMPUTE, 4.0), Task(0, 2.0), Task(COMPUTE, 1.0)]
    assert makespan(kernels, tasks) == 7.0
    assert makespan(kernels, tasks, {(0, 1): 1.5}) == 5.5


SUM = """
sdy.mesh @mesh = <["data"=4, "model"=8]>
func.func @main(%x: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"AXIS"}]>},
                %y: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"AXIS"}, {}]>})
    -> (tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
"""


def summed(axis: str, **changes: object) -> Estimate:
    program = pyshardy.partition(pyshardy.load(SUM.replace("AXIS", axis)))
    return pyshardy.cost(program, dataclasses.replace(find_hardware("h100"), **changes)).estimate  # type: ignore[arg-type]


def test_a_chip_whose_compiler_cuts_products_hides_sums_behind_them() -> None:
    plain, cut = summed("model"), summed("model", overlaps_products=True)
    assert cut.compute_seconds == plain.compute_seconds
    saved = plain.step_seconds - cut.step_seconds
    assert saved == pytest.approx(min(plain.compute_seconds, plain.communication_seconds) * 7 / 8)


def test_sums_over_nodes_wait_for_the_slowest_and_those_inside_a_node_do_not() -> None:
    inside, across = summed("model"), summed("data")
    assert inside.waiting_seconds == 0.0
    step = across.step_seconds - across.waiting_seconds
    assert across.waiting_seconds == pytest.approx(0.03 * 2 * step)  # four nodes: two doublings
    assert across.serial_seconds == pytest.approx(across.compute_seconds + across.communication_seconds)
