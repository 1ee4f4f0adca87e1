"""When kernels and collectives start, and the memory in use."""

from __future__ import annotations

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.costing.timeline import Timeline, timeline

from .build import LOOP

CONDITION = """func.func @main(%b: tensor<i1>, %x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = "stablehlo.if"(%b) ({
    %1 = stablehlo.negate %x : tensor<4096x4096xf32>
    stablehlo.return %1 : tensor<4096x4096xf32>
  }, {
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    stablehlo.return %1 : tensor<4096x4096xf32>
  }) : (tensor<i1>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""


def priced(program: object, chip: str = "h100") -> tuple[pyshardy.Cost, Timeline]:
    found = pyshardy.cost(program, chip)
    assert found.launches is not None
    return found, timeline(found.launches)


@pytest.mark.parametrize("name", ["mlp_training", "transformer_scan_remat", "decode_step", "sequence_parallel"])
@pytest.mark.parametrize("chip", ["h100", "v5e"])
def test_the_timeline_is_that_of_the_estimate(name: str, chip: str) -> None:
    found, line = priced(pyshardy.load(PROGRAMS[name].lower()), chip)
    end = max(span.start + span.seconds for span in line.spans)
    assert end == pytest.approx(found.estimate.step_seconds - found.estimate.waiting_seconds)
    assert max(one.bytes for one in line.moments) == found.peak_bytes
    assert [one.start for one in line.moments] == sorted({one.start for one in line.moments})


def test_kernels_do_not_overlap() -> None:
    _, line = priced(pyshardy.load(PROGRAMS["mlp_training"].lower()))
    kernels = sorted((span.start, span.start + span.seconds) for span in line.spans if span.stream == -1)
    assert len(kernels) > 2
    assert all(first[1] <= second[0] * (1 + 1e-9) for first, second in zip(kernels, kernels[1:]))


def test_the_first_round_of_a_loop_is_within_it() -> None:
    _, line = priced(LOOP)
    (loop,) = (span for span in line.spans if span.rounds)
    assert loop.stream is None and loop.rounds == 5 and loop.op == "while"
    inside = [span for span in line.spans if span is not loop and span.start >= loop.start]
    assert [span.op for span in inside][-1] != "constant" and all(
        loop.start <= span.start and span.start + span.seconds < loop.start + loop.seconds for span in inside
    )


def test_of_a_conditional_the_slowest_branch_is_shown() -> None:
    _, line = priced(CONDITION)
    assert [span.op for span in line.spans] == ["if", "dot_general"]
    assert line.spans[1].bound == "products" and line.spans[1].flops == 2 * 4096**3
