"""The data of the cards that show one run."""

from __future__ import annotations

import json

import pyshardy
from pyshardy.report.page.run import run_data
from pyshardy.results.pages import describe_result

TEXT = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<1024x1024xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> loc("jit(f)/mlp/dot"("/a/f.py":3:4))
  %1 = stablehlo.tanh %0 : tensor<1024x1024xbf16> loc("jit(f)/mlp/tanh"("/a/f.py":4:4))
  return %1 : tensor<1024x1024xbf16>
}"""


def test_spans_memory_and_kernels_of_a_run() -> None:
    found = pyshardy.cost(TEXT, "h100")
    assert found.launches is not None
    data = run_data(found.launches, found.estimate)
    assert data["tracks"] == ["kernels", "nvlink", "network", "host"]
    assert [(track, name, line) for track, _, _, name, line, _, _ in data["spans"]] == [
        (0, "mlp/dot_general", "f.py:3"), (1, "mlp/all_reduce", "f.py:3"), (0, "mlp/tanh", "f.py:4"),
    ]  # fmt: skip
    assert data["seconds"] == max(start + seconds for _, start, seconds, *_ in data["spans"]) == found.step_seconds
    assert max(held for _, held in data["memory"]) == found.peak_bytes
    kernels = {row[0]: row for row in data["kernels"]}
    name, line, flops, moved, seconds, count, bound = kernels["mlp/dot_general"]
    assert (flops, count, data["bounds"][bound]) == (2 * 1024 * 128 * 1024, 1, "launching kernels")
    assert moved == 2 * (2 * 1024 * 128 + 1024 * 1024) and seconds == 7e-6
    assert (data["flops"], data["bandwidth"]) == (990e12, 3.35e12)
    json.dumps(data)


def test_like_kernels_are_one_row_with_their_count() -> None:
    lines = [f"%{at} = stablehlo.dot_general %{at - 1 if at else 'b'}, %a, contracting_dims = [1] x [0]"
             ' : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("f.py":3:4)' for at in range(5)]  # fmt: skip
    body = "\n".join(lines)
    text = f"func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {{\n{body}\nreturn %4 : tensor<64x64xf32>\n}}"
    found = pyshardy.cost(text, "h100")
    assert found.launches is not None
    (row,) = run_data(found.launches, found.estimate)["kernels"]
    assert row[5] == 5 and row[4] == 5 * 7e-6


def test_a_page_has_a_run_where_a_cost_is_given() -> None:
    part = pyshardy.partition(pyshardy.load(TEXT))
    assert describe_result(part)["run"] is None
    found = pyshardy.cost(part, "h100")
    assert found.launches is not None
    data = describe_result(part, run=(found.launches, found.estimate))
    assert data["run"]["hardware"] == "NVIDIA H100 SXM"
    assert any("a run on NVIDIA H100 SXM" in name for name, _ in data["overview"]["cost"])
