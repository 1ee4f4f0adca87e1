"""Estimated step times of published, measured training runs.

From `tests/`: `python -m cost.published [ROW ...]` prints the table, `python -m cost.published --write` puts it into
docs/cost.md.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp

import pyshardy
from pyshardy.costing.chips import find_hardware

from .published_model import Model, Run, program_of
from .published_pipeline import Pipeline, program_of_pipeline

LLAMA_2_7B = Model(32, 4096, 32, 32, 128, 11008, 32000)
LLAMA_2_70B = Model(80, 8192, 64, 8, 128, 28672, 32000)
LLAMA_8B = Model(32, 4096, 32, 8, 128, 14336, 128256)
LLAMA_70B = Model(80, 8192, 64, 8, 128, 28672, 128256)
LLAMA_405B = Model(126, 16384, 128, 8, 128, 53248, 128256)
MISTRAL_7B = Model(32, 4096, 32, 8, 128, 14336, 32000)
GPT_175B = Model(96, 12288, 96, 96, 128, 49152, 50304, 2)
GPT_5B = Model(24, 4096, 32, 32, 128, 16384, 50304, 2)
MIXTRAL_8X7B = Model(32, 4096, 32, 8, 128, 14336, 32000, experts=8)
MIXTRAL_8X22B = Model(56, 6144, 48, 8, 128, 16384, 32768, experts=8)
V5P = {
    "32B": Model(32, 8192, 64, 64, 128, 28672, 32000),
    "64B": Model(64, 8192, 64, 64, 128, 28672, 32000),
    "128B": Model(64, 8192, 128, 128, 128, 57344, 32000),
    "256B": Model(64, 16384, 128, 128, 128, 57344, 32000),
    "512B": Model(128, 16384, 128, 128, 128, 57344, 32000),
    "1024B": Model(128, 16384, 256, 256, 128, 114688, 32000),
}
V5E = {
    "16B": Model(32, 5120, 32, 32, 256, 32768, 32768, 2),
    "32B": Model(32, 10240, 32, 32, 256, 32768, 32768, 2),
    "64B": Model(64, 10240, 32, 32, 256, 32768, 32768, 2),
    "128B": Model(64, 10240, 64, 64, 256, 65536, 32768, 2),
}


@dataclass(frozen=True)
class Row:
    """A published run.

    Attributes:
        name: Its name in the table of published runs.
        what: The model and the devices, in words.
        chip: The chip.
        run: What ran.
        seconds: The measured time of a step.
        overlaps: Whether it overlapped products with sums over the tensor axis, where the chip's compiler does not.
    """

    name: str
    what: str
    chip: str
    run: Run | Pipeline
    seconds: float
    overlaps: bool = False


def _fsdp(count: int, **others: int) -> tuple[tuple[str, int], ...]:
    outer = tuple((name, size) for name, size in others.items() if name == "data")
    return (*outer, ("fsdp", count), *((name, size) for name, size in others.items() if name != "data"))


def _v6e(
    name: str, what: str, model: Model, sequence: int, batch: int, chips: int, seconds: float, **more: object
) -> Row:
    remat = str(more.get("remat", "custom"))
    return Row(
        name, what, "v6e", Run(model, sequence, batch, _fsdp(chips), remat, more.get("weights", jnp.float32)), seconds
    )


def _v5p(name: str, size: str, chips: int, per_chip: int, tensor: int, remat: str, seconds: float) -> Row:
    run = Run(V5P[size], 2048, per_chip * chips, _fsdp(chips // tensor, tensor=tensor), remat)
    return Row(name, f"MaxText {size}, {chips} chips, FSDP {chips // tensor} x tensor {tensor}", "v5p", run, seconds)


def _v5e(size: str, per_chip: int, slices: int, tflops: float, one: tuple[float, float], tensor: int = 1) -> Row:
    """A row whose time follows from that of one slice, as work per chip is the same."""
    mesh = _fsdp(
        256 // tensor, **({"data": slices} if slices > 1 else {}), **({"tensor": tensor} if tensor > 1 else {})
    )
    run = Run(V5E[size], 2048, per_chip * 256 * slices, mesh)
    what = f"MaxText {size}, {slices} x 256 chips"
    return Row(f"v5e {size} x{slices}", what, "v5e", run, one[0] * one[1] / tflops)


def _megatron(name: str, layers: int, hidden: int, heads: int, tensor: int, seconds: float) -> Row:
    """A row of the table of 2024: 48 replicas, four sequences each; nothing is computed again.

    Sums over the tensor axis overlap with products, as published.
    """
    model = Model(layers, hidden, heads, heads, hidden // heads, 4 * hidden, 131072, 2)
    run = Run(model, 4096, 192, (("data", 48), ("tensor", tensor)), "none")
    return Row(name, f"Megatron 2024, {48 * tensor} GPUs, data 48 x tensor {tensor}", "h100", run, seconds, True)


def _stages(
    name: str, sizes: tuple[int, int, int], stages: int, micro: int, count: int, virtual: int, seconds: float
) -> Row:
    """A row of the table of 2021, of which one replica is estimated."""
    layers, hidden, heads = sizes
    model = Model(layers, hidden, heads, heads, hidden // heads, 4 * hidden, 51200, 2)
    what = f"Megatron 2021, {stages} stages x tensor 8, one replica"
    return Row(name, what, "a100", Pipeline(model, 2048, stages, 8, micro, count, virtual), seconds)


BF16 = jnp.bfloat16
PAGE = Path(__file__).parents[2] / "docs/cost.md"
START, END = "<!-- written by python -m cost.published --write -->", "<!-- end -->"
ROWS: tuple[Row, ...] = (
    _v6e("T1", "Llama-3.1-8B, 8 chips, FSDP", LLAMA_8B, 8192, 24, 8, 3.443),
    _v6e("T2", "Llama-3.1-8B, 16 chips, FSDP", LLAMA_8B, 8192, 48, 16, 3.393),
    _v6e("T3", "Llama-3.1-8B, 64 chips, FSDP", LLAMA_8B, 8192, 320, 64, 5.652),
    _v6e("T4", "Llama-3.1-8B, 256 chips, FSDP", LLAMA_8B, 8192, 1024, 256, 4.546),
    _v6e("T5", "Llama-3.1-70B, 32 chips, FSDP, bf16 weights", LLAMA_70B, 8192, 64, 32, 17.790, weights=BF16),
    _v6e("T6", "Llama-3.1-70B, 64 chips, FSDP, bf16 weights", LLAMA_70B, 8192, 128, 64, 18.688, weights=BF16),
    _v6e("T7", "Llama-3.1-70B, 128 chips, FSDP, bf16 weights", LLAMA_70B, 8192, 512, 128, 34.786, weights=BF16),
    _v6e("T8", "Llama-3.1-70B, 256 chips, FSDP, bf16 weights", LLAMA_70B, 8192, 1280, 256, 42.656, weights=BF16),
    _v6e("T9", "Llama-2-70B, 256 chips, FSDP, 2 sequences per chip", LLAMA_2_70B, 4096, 512, 256, 9.052),
    _v6e("T11", "GPT-3-175B, 256 chips, FSDP", GPT_175B, 2048, 768, 256, 17.182, remat="full"),
    _v6e("T13", "Mistral-7B, 8 chips, FSDP", MISTRAL_7B, 8192, 48, 8, 6.320),
    _v6e("T14", "Mixtral-8x7B, 256 chips, FSDP", MIXTRAL_8X7B, 4096, 3072, 256, 13.484),
    Row("T15", "Mixtral-8x22B, 256 chips, FSDP 64 x expert 4", "v6e",
        Run(MIXTRAL_8X22B, 4096, 2048, (("fsdp", 64), ("expert", 4)), "custom", BF16), 24.706),
    Row("T10", "Llama-3.1-405B, 2 x 256 chips", "v6e",
        Run(LLAMA_405B, 8192, 512, (("data", 2), ("fsdp", 256)), "full"), 54.803),
    Row("P1", "Llama-3.1-405B, 512 chips, FSDP", "v5p", Run(LLAMA_405B, 8192, 1024, _fsdp(512), "full"), 131.474),
    _v5p("P6", "32B", 64, 6, 4, "dots", 7.30),
    _v5p("P7", "64B", 64, 3, 4, "dots", 7.38),
    _v5p("P8", "128B", 128, 1, 8, "dots", 5.04),
    _v5p("P9", "128B", 256, 1, 8, "dots", 5.02),
    _v5p("P10", "256B", 512, 1, 8, "dots", 10.13),
    _v5p("P11", "512B", 512, 2, 8, "full", 42.4),
    _v5p("P12", "1024B", 1024, 2, 16, "full", 98.1),
    _v5p("P13", "1024B", 2048, 2, 16, "full", 83.9),
    *(_v5e("16B", 6, count, rate, (10.7, 120)) for count, rate in ((1, 120), (4, 117), (32, 108))),
    *(_v5e("32B", 4, count, rate, (12.5, 132)) for count, rate in ((1, 132), (4, 126), (32, 119))),
    *(_v5e("64B", 2, count, rate, (13.9, 118)) for count, rate in ((1, 118), (4, 110), (32, 99))),
    *(_v5e("128B", 1, count, rate, (14.9, 110), 16) for count, rate in ((1, 110), (4, 108), (32, 91))),
    Row("G1", "Llama-2-7B, 8 GPUs, FSDP", "h100", Run(LLAMA_2_7B, 4096, 16, _fsdp(8), "dots"), 0.721),
    *(Row(f"G2 x{nodes}", f"Llama-2-7B, {nodes} nodes, FSDP 8 x data {nodes}", "h100",
          Run(LLAMA_2_7B, 4096, 32 * nodes, _fsdp(8, **({"data": nodes} if nodes > 1 else {})), "dots"), 1.53 * 492 / rate)
      for nodes, rate in ((1, 492), (2, 422), (4, 407), (8, 409), (16, 375))),
    Row("G3", "Llama-3.1-70B, 256 GPUs, data 2 x FSDP 128", "h200",
        Run(LLAMA_70B, 8192, 512, _fsdp(128, data=2), "custom"), 15.516),
    Row("G6", "GPT 5B, 256 GPUs, FSDP", "a100", Run(GPT_5B, 2048, 2048, _fsdp(256), "dots"), 2.85),
    Row("G7", "GPT 5B, 256 GPUs, FSDP", "h100", Run(GPT_5B, 2048, 2048, _fsdp(256), "dots"), 1.24),
    Row("G8", "GPT 175B, 256 GPUs, FSDP", "a100", Run(GPT_175B, 2048, 1536, _fsdp(256), "full"), 75.1),
    Row("G9", "GPT 175B, 256 GPUs, FSDP", "h100", Run(GPT_175B, 2048, 1536, _fsdp(256), "full"), 30.1),
    Row("H6", "Llama-3.1-70B, 256 GPUs, FSDP 32 x tensor 8", "h100",
        Run(LLAMA_70B, 8192, 512, _fsdp(32, tensor=8), "full"), 27.4),
    Row("H6 async", "the same, products and sums over tensor overlap", "h100",
        Run(LLAMA_70B, 8192, 512, _fsdp(32, tensor=8), "full"), 25.1, True),
    Row("H7", "Llama-3.1-8B, 64 GPUs, FSDP 8 x tensor 8", "h100",
        Run(LLAMA_8B, 8192, 96, _fsdp(8, tensor=8), "dots"), 2.81),
    _megatron("M1", 24, 2048, 16, 1, 0.45),
    _megatron("M2", 30, 4096, 32, 2, 0.80),
    _megatron("M3", 32, 6144, 48, 4, 0.85),
    _megatron("M4", 48, 7168, 56, 8, 0.89),
    _stages("A4", (48, 8192, 64), 2, 4, 12, 1, 14.5),
    _stages("A5", (60, 10240, 80), 4, 2, 28, 3, 16.1),
    _stages("A6", (80, 12288, 96), 8, 2, 48, 2, 24.8),
    _stages("A7", (96, 16384, 128), 16, 1, 144, 2, 37.6),
    _stages("A8", (105, 20480, 128), 35, 1, 280, 3, 54.1),
    _stages("A9", (128, 25600, 160), 64, 1, 512, 1, 103),
)  # fmt: skip
"""Rows whose model, mesh and recomputation are public; where they are not quite, the note in docs/cost.md says so."""
RATIOS = (
    ("T2", "T1"), ("T4", "T3"), ("T6", "T5"), ("T8", "T7"), ("P9", "P8"), ("P10", "P8"), ("P13", "P12"), ("P7", "P6"),
    ("v5e 16B x32", "v5e 16B x1"), ("v5e 64B x32", "v5e 64B x1"), ("v5e 128B x32", "v5e 128B x1"),
    ("G2 x16", "G2 x1"), ("G2 x2", "G2 x1"), ("G7", "G6"), ("G9", "G8"),
    ("T15", "T14"), ("M4", "M2"), ("A5", "A4"), ("A9", "A4"), ("A9", "A8"),
    ("H6 async", "H6"),
)  # fmt: skip


def estimates(names: Sequence[str] = ()) -> Iterator[tuple[Row, float]]:
    """The rows with their estimated times."""
    for row in ROWS:
        if not names or row.name in names:
            yield row, _estimate(row).step_seconds


def _estimate(row: Row) -> pyshardy.Cost:
    if isinstance(row.run, Pipeline):
        return pyshardy.cost(program_of_pipeline(row.run), row.chip)
    networks = {"data": "dcn"} if row.chip.startswith("v") and "data" in dict(row.run.mesh) else None
    chip = find_hardware(row.chip)
    chip = replace(chip, overlaps_products=chip.overlaps_products or row.overlaps)
    return pyshardy.cost(program_of(row.run), chip, networks=networks)


def line(row: Row, seconds: float) -> str:
    """A run as a row of the table."""
    error = seconds / row.seconds - 1
    return f"| {row.name} | {row.what} | {row.chip} | {row.seconds:.3g} | {seconds:.3g} | {error:+.0%} |"


def write(found: Sequence[tuple[Row, float]]) -> None:
    """Put the table into the page between its marks."""
    head, _, rest = PAGE.read_text().partition(START)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{START}\n{table(found)}\n{END}{tail}")


def table(found: Sequence[tuple[Row, float]]) -> str:
    """A table in Markdown of all rows and ratios, good or bad."""
    lines = ["| run | what | chip | measured s | estimated s | error |", "|---|---|---|---|---|---|"]
    lines += [line(row, seconds) for row, seconds in found]
    lines += ["", "| ratio | measured | estimated | error |", "|---|---|---|---|"]
    times = {row.name: (row.seconds, seconds) for row, seconds in found}
    for first, second in RATIOS:
        if first in times and second in times:
            measured, estimated = (times[first][place] / times[second][place] for place in (0, 1))
            lines.append(f"| {first} / {second} | {measured:.2f} | {estimated:.2f} | {estimated / measured - 1:+.0%} |")
    errors = [abs(seconds / row.seconds - 1) for row, seconds in found]
    within = sum(error <= 0.3 for error in errors)
    lines += [
        "",
        f"{within} of {len(errors)} step times are within 30 %; the median error is {statistics.median(errors):.0%}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write([*estimates()])
    else:
        print(table([*estimates(sys.argv[1:])]))
