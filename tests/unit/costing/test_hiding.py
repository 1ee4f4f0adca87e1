"""The order in which collectives hide behind kernels."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_GPU
from pyshardy.costing.flat import Flat, FlatBlock
from pyshardy.costing.hiding import Hidden, hidden
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.memory import Planner
from pyshardy.costing.program import CostKind, CostOp, CostTensor, OpTraffic
from pyshardy.rules.dimension_numbers import DotNumbers

PRODUCT, SUM, ADD, SCATTER, GATHER = "dot_general", "reduce", "add", "reduce_scatter", "all_gather"
COLLECTIVES = (SCATTER, GATHER)


def kernel(name: str, reads: Sequence[int], writes: int) -> Kernel:
    tensor = CostTensor((64, 64), "f32", 64 * 64 * 4)
    facts = (("dot_dimension_numbers", DotNumbers((), (), (1,), (0,))),) if name == PRODUCT else ()
    kind = CostKind(f"stablehlo.{name}", (tensor,) * len(reads), (tensor,), facts)
    traffic = OpTraffic(name, None, None, 2, 8, 8, 8) if name in COLLECTIVES else None
    return Kernel((CostOp(kind, tuple(reads), (writes,), traffic=traffic),), tuple(reads), (writes,), frozenset())


LAYERS = [
    kernel(PRODUCT, (0, 1), 10),  # the gradient that goes on
    kernel(PRODUCT, (0, 2), 11),  # that of a weight
    kernel(GATHER, (10,), 12),
    kernel(PRODUCT, (12, 1), 13),
    kernel(PRODUCT, (12, 2), 14),
    kernel(GATHER, (13,), 15),
    kernel(PRODUCT, (15, 1), 16),
    kernel(SCATTER, (11,), 17),
    kernel(SCATTER, (14,), 18),
]
"""Two layers backwards: each gathers what the one before sends, and the gradients of weights are scattered."""


def run(kernels: Sequence[Kernel], seconds: dict[str, float], sizes: dict[int, int] | None = None) -> Hidden:
    times = [seconds.get(one.root.kind.name.partition(".")[2], 1.0) for one in kernels]
    found = hidden(kernels, times, lambda value: (sizes or {}).get(value, 8), XLA_ON_GPU.hides)
    assert_valid(kernels, found)
    return found


def assert_valid(kernels: Sequence[Kernel], found: Hidden) -> None:
    """All kernels are there once, after what they wait for, and nothing reads a collective before it ends."""
    assert sorted(one.writes for one in found.kernels) == sorted(one.writes for one in kernels)
    made: dict[int, int] = {}
    for at, one in enumerate(found.kernels):
        for value in one.needs:
            assert value < 10 or (value in made and made[value] <= at), "a kernel runs before what it reads"
        made.update((value, found.ends.get(at, at + 1)) for value in one.writes)
    assert {at for at, one in enumerate(found.kernels) if one.root.traffic is not None} == {*found.ends}


def order(found: Hidden) -> list[int]:
    return [one.writes[0] for one in found.kernels]


def test_gradients_of_weights_run_beside_collectives() -> None:
    found = run(LAYERS, {GATHER: 1.0, SCATTER: 1.0})
    places = order(found)
    # The product of the first layer hides the gather after it, or a scatter: it does not run where the program has it.
    assert places.index(11) > places.index(12)
    assert places.index(14) > places.index(15)


def test_a_collective_holds_what_runs_beside_it() -> None:
    found = run(LAYERS, {GATHER: 2.0})
    start = order(found).index(12)
    beside = order(found)[start + 1 : found.ends[start]]
    assert beside == [11]


def test_without_collectives_the_order_stays() -> None:
    kernels = list(LAYERS[:2])
    assert order(run(kernels, {})) == [10, 11]


def test_what_makes_values_smaller_runs_at_once() -> None:
    smaller = [*LAYERS[:1], kernel(ADD, (10,), 30), *LAYERS[1:], kernel(SCATTER, (30,), 31)]
    assert order(run(smaller, {}, {30: 4}))[:2] == [10, 30]
    late = order(run(smaller, {}))
    assert late.index(30) > 1  # of the same size, it waits for the collective that reads it
    sums = [kernel(SUM, (10,), 30) if one.writes == (30,) else one for one in smaller]
    assert order(run(sums, {}, {30: 4})).index(30) > 1  # XLA keeps sums apart from products


def test_a_kind_that_does_not_run_beside_others_takes_its_turn() -> None:
    found = hidden(LAYERS, [1.0] * len(LAYERS), lambda value: 8, ("all_gather",))
    waiting = {found.kernels[at].root.kind.name for at in found.ends}
    assert waiting == {f"stablehlo.{GATHER}"}
    assert not hidden(LAYERS, [1.0] * len(LAYERS), lambda value: 8, ()).ends


def test_of_equal_chains_the_kernel_that_needs_least_memory_runs_last() -> None:
    kernels = [
        kernel(PRODUCT, (0, 1), 10),  # large
        kernel(PRODUCT, (0, 2), 20),
        kernel(PRODUCT, (10, 1), 11),
        kernel(PRODUCT, (20, 1), 12),
        kernel(ADD, (11, 12), 13),
        kernel(SCATTER, (13,), 14),
    ]

    def size(value: int) -> int:
        return {10: 64, 20: 16}.get(value, 8)

    found = [hidden(kernels, [1.0] * 6, size, XLA_ON_GPU.hides, saved) for saved in (None, {10, 11, 12, 13, 20})]
    for one in found:
        assert_valid(kernels, one)
    assert [order(one) for one in found] == [[10, 20, 11, 12, 13, 14], [10, 11, 20, 12, 13, 14]]


def test_the_check_of_the_order_can_fail() -> None:
    found = run(LAYERS, {})
    with pytest.raises(AssertionError, match="before what it reads"):
        assert_valid(LAYERS, Hidden(found.kernels[::-1], found.ends))
    with pytest.raises(AssertionError, match="before what it reads"):
        late = {at: len(found.kernels) for at in found.ends}
        assert_valid(LAYERS, found._replace(ends=late))


def test_late_gradients_need_memory() -> None:
    tensors = [CostTensor((64, 64), "f32", 64 * 64 * 4)] * 20
    block = Kernels((0, 1, 2), tuple(LAYERS), (16, 17, 18))
    flat = Flat(tensors, FlatBlock((0, 1, 2), (), ()), frozenset(), frozenset())
    peaks = [
        Planner(flat, compiler, lambda one: 1.0).main(block, ()).peak for compiler in (ACCELERATOR, XLA_ON_GPU)
    ]  # fmt: skip
    assert peaks[1] > peaks[0]
    assert Planner(flat, XLA_ON_GPU).main(block, ()).peak == peaks[0]  # without times nothing is late
