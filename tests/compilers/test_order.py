"""The order in which XLA for GPUs runs kernels beside collectives, and the memory that a step between nodes needs for it."""

from __future__ import annotations

import pytest
from cost import steps

import pyshardy
from pyshardy.compilers.ask import ask
from pyshardy.compilers.plugins import is_installed
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.compilers import XLA_ON_GPU
from pyshardy.report.confirmation import memory_peak

SIDE, UPDATES = 8192, 30
MATRIX = f"tensor<{SIDE}x{SIDE}xf32>"


def step(devices: int) -> str:
    """Weights that are updated with sums over all devices, and one number that is summed too."""
    rows = '{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}'
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    part = f"tensor<{8 * devices}x{SIDE}xf32>"
    inputs, body = [], []
    for at in range(UPDATES):
        inputs += [f"%w{at}: {MATRIX} {whole} ", f"%x{at}: {part} {rows}"]
        body += [
            f"%d{at} = stablehlo.dot_general %x{at}, %x{at}, contracting_dims = [0] x [0] : ({part}, {part}) -> {MATRIX}",
            f"%u{at} = stablehlo.subtract %w{at}, %d{at} : {MATRIX}",
        ]
    results = ", ".join(["%loss", *(f"%u{at}" for at in range(UPDATES))])
    types = ", ".join(["tensor<f32>", *[MATRIX] * UPDATES])
    outputs = ", ".join(["tensor<f32>", *[f"{MATRIX} {whole}"] * UPDATES])
    lines = "\n".join(body)
    return f"""
    sdy.mesh @mesh = <["data"={devices}]>
    func.func @main({", ".join(inputs)}) -> ({outputs}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%x0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : ({part}, tensor<f32>) -> tensor<f32>
      {lines}
      return {results} : {types}
    }}"""


def updates_beside(hlo: str) -> list[int]:
    """How many updates run while each all-reduce does, by the order of a scheduled program."""
    found: list[int] = []
    is_open = False
    for line in hlo[hlo.index("\nENTRY") :].splitlines():
        if "all-reduce-start(" in line:
            is_open = True
            found.append(0)
        elif "all-reduce-done(" in line:
            is_open = False
        elif is_open and " fusion(" in line and "subtract" in line:
            found[-1] += 1
    return found


def test_updates_are_counted_between_start_and_end() -> None:
    update = "  %u = f32[] fusion(%w, %d), calls=%fused_subtract"
    start, end = "  %s = f32[] all-reduce-start(%d)", "  %e = f32[] all-reduce-done(%s)"
    lines = ["", "ENTRY %main {", update, start, update, update, end, update, start, end, "}"]
    assert updates_beside("\n".join(lines)) == [2, 0]


def test_a_collective_between_nodes_lasts_as_long_whatever_it_sends() -> None:
    if not is_installed("cuda"):
        pytest.skip("the compiler for GPUs is not installed beside this Python")
    compiled = ask(pyshardy.load(step(16)), "cuda:h100:16", to_the_end=True).compiled
    assert compiled is not None and "f32[] all-reduce-done" in compiled
    seconds = 3 * 4 * SIDE**2 / find_hardware("h100").memory_bytes_per_s
    full = [count for count in updates_beside(compiled) if count]
    assert any((count - 1) * seconds < XLA_ON_GPU.far_seconds <= count * seconds for count in full), full
    assert max(full) * seconds < XLA_ON_GPU.far_seconds + seconds


def test_a_collective_within_a_node_lasts_as_long_as_it_takes() -> None:
    if not is_installed("cuda"):
        pytest.skip("the compiler for GPUs is not installed beside this Python")
    compiled = ask(pyshardy.load(step(8)), "cuda:h100:8", to_the_end=True).compiled
    assert compiled is not None
    seconds = 3 * 4 * SIDE**2 / find_hardware("h100").memory_bytes_per_s
    assert 0 < max(updates_beside(compiled)) * seconds < XLA_ON_GPU.far_seconds / 2


@pytest.mark.parametrize("name", ["decoder, scan, checkpoint, both", "decoder, unrolled, checkpoint, FSDP"])
def test_memory_of_steps_on_four_nodes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if not is_installed("cuda"):
        pytest.skip("the compiler for GPUs is not installed beside this Python")
    monkeypatch.setattr(steps, "MESH", {"data": 16, "model": 2})
    (found,) = (one for one in steps.AT_HAND if one.name == name)
    module = pyshardy.load(found.load("cuda").text())
    compiled = memory_peak(ask(module, "cuda:h100:32", to_the_end=True).memory or {})
    estimated = pyshardy.cost(pyshardy.propagate(module, compiler="cuda:h100:32"), "h100").peak_bytes
    assert abs(estimated / compiled - 1) < 0.12
