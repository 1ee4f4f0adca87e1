"""Products that XLA for TPUs cuts into parts which travel: they are named as what they are, and priced without it."""

from __future__ import annotations

import pytest
from cost.windowed import BATCHED

import pyshardy
from pyshardy.compilers.plugins import is_installed

ROWS, COLUMNS = '[{"data"}, {}]', '[{}, {"data"}]'


def program(x: str, w: str, kind: str = "tensor<8192x8192xbf16>") -> str:
    def given(sharding: str) -> str:
        return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"

    return f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%x: {kind} {given(x)} loc("x"), %w: {kind} {given(w)} loc("w")) -> ({kind} {given(ROWS)}) {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind} loc("jit(f)/dot_general"("m.py":3:4))
      return %0 : {kind}
    }}"""


@pytest.mark.parametrize(("x", "w", "windowed"), [(ROWS, COLUMNS, "all_gather"), (COLUMNS, ROWS, "reduce_scatter")])
def test_a_windowed_product(x: str, w: str, windowed: str) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    found = pyshardy.partition(program(x, w), compiler="tpu:v5e")
    rows = found.traffic.collectives
    assert {(row.kind, row.windowed) for row in rows} == {("collective_permute", windowed)}
    (story,) = found.collectives
    assert story.windowed == windowed
    whole = windowed.replace("_", "-")
    assert f"in a windowed product (its {whole} travels in parts during the product): `" in str(story)
    (cost,) = pyshardy.cost(found).estimate.collectives
    assert (cost.cause, cost.count) == (f"windowed {windowed} of dot_general", sum(row.times for row in rows))


def test_a_small_product_is_not_windowed() -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    rows = pyshardy.partition(program(ROWS, COLUMNS, "tensor<64x64xbf16>"), compiler="tpu:v5e").traffic.collectives
    assert [(row.kind, row.windowed, row.cause) for row in rows] == [("all_gather", None, "dot_general")]


def test_the_rounds_of_windowed_products_are_counted_in_the_compiled_program() -> None:
    """The text of the compiled program does not say how often its loops run."""
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    found = pyshardy.confirm(program(ROWS, COLUMNS), "tpu:v5e")
    (row,) = found.rows
    assert row.compiled == row.estimated and (row.kind, row.axes, row.holds) == ("collective_permute", "data", True)
    assert row.compiled is not None and not row.compiled.is_lower_bound


def sent(text: str, compiler: str) -> tuple[dict[str, int], int]:
    """The collectives of an estimate by kind, and the bytes that they send."""
    rows = pyshardy.cost(pyshardy.propagate(text, compiler=compiler), "v5e").estimate.collectives
    return {row.kind: row.count for row in rows}, sum(row.sent_bytes_per_device for row in rows)


def other(x: str, w: str, sizes: tuple[int, int, int], type: str = "bf16") -> str:
    """A product of other sizes: rows, the dimension that is summed, columns."""
    rows, depth, columns = sizes
    left, right, result = f"{rows}x{depth}x{type}", f"{depth}x{columns}x{type}", f"{rows}x{columns}x{type}"
    text = program(x, w, "KIND").replace("%x: KIND", f"%x: tensor<{left}>").replace("%w: KIND", f"%w: tensor<{right}>")
    return text.replace("(KIND, KIND)", f"(tensor<{left}>, tensor<{right}>)").replace("KIND", f"tensor<{result}>")


@pytest.mark.parametrize(
    ("text", "is_windowed"),
    [
        (other(ROWS, COLUMNS, (4224, 1024, 512)), True),
        (other(ROWS, COLUMNS, (4216, 1024, 512)), False),
        (other(ROWS, ROWS, (4224, 512, 2048)), True),
        (other(ROWS, ROWS, (4216, 512, 2048)), False),
        (other(ROWS, ROWS, (8448, 512, 1024), "f32"), True),
        (other(ROWS, ROWS, (8440, 512, 1024), "f32"), False),
        (other(COLUMNS, ROWS, (1024, 4224, 512)), True),
        (other(ROWS, ROWS, (4224, 64, 64)), True),
    ],
)
def test_an_estimate_finds_the_permutes_itself(text: str, is_windowed: bool) -> None:
    """The shortest product that is cut, and one that is shorter by a row for each device."""
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    compiled = sent(text, "tpu:v5e:2x4")
    assert sent(text, "none") == compiled
    assert compiled[0] == ({"collective_permute": 9} if is_windowed else {"all_gather": 1})


@pytest.mark.parametrize(
    ("chip", "devices", "rows"),
    [("v5e:4x4", 16, 4224), ("v5e:4x8", 32, 4224), ("v5p:2x2x2", 8, 4224), ("v6e:2x4", 8, 9840)],
)
def test_other_numbers_of_devices_and_chips(chip: str, devices: int, rows: int) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    name = chip.partition(":")[0]
    for given, kind in ((rows, "collective_permute"), (rows - 2 * devices, "all_gather")):
        text = other(ROWS, ROWS, (given, 512, 512)).replace('"data"=8', f'"data"={devices}')
        for compiler in (f"tpu:{chip}", "none"):
            (row,) = pyshardy.cost(pyshardy.propagate(text, compiler=compiler), name).estimate.collectives
            assert (row.kind, row.count) == (kind, devices + 1 if kind == "collective_permute" else 1)


def test_64_devices_are_too_many() -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    text = other(ROWS, ROWS, (1 << 16, 512, 512)).replace('"data"=8', '"data"=64')
    for compiler in ("tpu:v5e:8x8", "none"):
        (row,) = pyshardy.cost(pyshardy.propagate(text, compiler=compiler), "v5e").estimate.collectives
        assert (row.kind, row.count) == ("all_gather", 1)


@pytest.mark.parametrize(("text", "is_windowed"), BATCHED)
def test_a_sum_of_batched_products_is_cut_along_free_dimensions(text: str, is_windowed: bool) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    for compiler in ("tpu:v5e:2x4", "none"):
        kinds, _ = sent(text, compiler)
        assert ("collective_permute" in kinds) == is_windowed
