"""Timelines in Chrome's format."""

from __future__ import annotations

import json

import pyshardy

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                %w: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<512x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
    loc("jit(f)/transpose(jvp(mlp))/dot_general"("f.py":3:4))
  return %0 : tensor<512x256xf32>
}
"""


def test_tracks_events_and_memory() -> None:
    found = pyshardy.cost(PROGRAM, "h100")
    trace = json.loads(json.dumps(found.trace()))
    events = trace["traceEvents"]
    tracks = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert tracks == {0: "kernels", 1: "nvlink"}
    (title,) = (one["args"]["name"] for one in events if one["name"] == "process_name")
    assert title == "one of 8 x NVIDIA H100 SXM (estimated)"
    product, sums = (one for one in events if one["ph"] == "X")
    assert (product["name"], product["tid"], product["cat"]) == ("mlp/dot_general", 0, "kernel")
    assert product["args"]["line"] == "f.py:3" and product["args"]["direction"] == "backward"
    assert (sums["name"], sums["tid"], sums["cat"]) == ("mlp/all_reduce over model", 1, "collective")
    assert sums["args"]["because of"] and sums["ts"] == product["ts"] + product["dur"]
    assert max(one["args"]["bytes"] for one in events if one["ph"] == "C") == found.peak_bytes
    assert trace["otherData"]["assumption"] == found.estimate.assumption


def test_the_same_program_gives_the_same_bytes() -> None:
    first, second = (json.dumps(pyshardy.cost(PROGRAM, "v5e").trace()) for _ in range(2))
    assert first == second
