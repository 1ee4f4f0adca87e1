"""Weights with a dimension that an axis does not divide, padded."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pyshardy
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.families import Family
from pyshardy.checkup.padding import UnevenWeight, _sites, padding_cures
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.shardings import module_meshes
from pyshardy.source.meanings import mark


def program(body: str) -> pyshardy.Module:
    """A step that updates a table and another weight."""
    table, weight = "tensor<1001x64xf32>", "tensor<64x64xf32>"
    return pyshardy.load(f"""
    sdy.mesh @mesh = <["data"=4, "model"=8]>
    func.func @main(
        %0: {table} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>, tf.aliasing_output = 0 : i32}} loc("params['table']"),
        %1: {weight} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"model"}}]>, tf.aliasing_output = 1 : i32}} loc("params['up']"))
        -> ({table} {{jax.result_info = "result['table']"}}, {weight} {{jax.result_info = "result['up']"}}) {{
      {body}
      %9 = stablehlo.add %1, %1 : {weight}
      return %8, %9 : {table}, {weight}
    }}""")


SLICED = """
      %2 = stablehlo.slice %0 [0:1001, 0:32] : (tensor<1001x64xf32>) -> tensor<1001x32xf32>
      %3 = stablehlo.concatenate %2, %2, dim = 1 : (tensor<1001x32xf32>, tensor<1001x32xf32>) -> tensor<1001x64xf32>
      %8 = stablehlo.add %3, %3 : tensor<1001x64xf32>"""


def cures(module: pyshardy.Module) -> list[Cure]:
    mesh: Mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    return list(padding_cures(module, "mesh", mesh))


def test_the_dimension_has_its_new_size_everywhere() -> None:
    module = program(SLICED)
    (cure,) = cures(module)
    assert "`params['table']` is whole along 'model'" in cure.what and "dimension 0 of 1001" in cure.what
    assert cure.text == "pad the dimension to 1008, and split it along 'model'" and not cure.is_exact
    found = cure.apply(module)
    table, up = input_tensors(found.root)
    assert table.shape == (1008, 64) and up.shape == (64, 64) and "1001" not in found.text()
    assert table.sharding is not None and [axis.name for axis in table.sharding.dim_axes[0]] == ["model"]
    assert [one.shape for one in input_tensors(module.root)] == [(1001, 64), (64, 64)]


def test_a_size_that_is_part_of_another_is_not_padded() -> None:
    flat = "%2 = stablehlo.reshape %0 : (tensor<1001x64xf32>) -> tensor<64064xf32>"
    back = "%8 = stablehlo.reshape %2 : (tensor<64064xf32>) -> tensor<1001x64xf32>"
    module = program(f"{flat}\n{back}")
    (cure,) = cures(module)
    with pytest.raises(InvalidModuleError):
        cure.apply(module)


@pytest.mark.parametrize(("size", "shards", "padded"), [(50257, 8, 50304), (1001, 8, 1008), (151_669, 48, 151_680)])
def test_a_large_dimension_fits_the_tiles_of_a_chip_too(size: int, shards: int, padded: int) -> None:
    table = InterfaceTensor("table", 0, (size, 64), "f32", None)
    assert UnevenWeight(Family("table", (table,), (), 0.0), 0, "model", shards).padded == padded


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("VOCABULARY = 1001", ["1001"]),
        ("class Config:\n    size: int = 1000 + 1", ["1000 + 1"]),
        ("WORDS = 1000\nSIZE = WORDS + 1", ["WORDS + 1"]),
        ("config = make(size=7 * 143)", ["7 * 143"]),
        ("first, second = 1001, 1001", ["1001", "1001"]),
        ("SIZE = 1001.0 + size", []),
        ("x = '1001'", []),
    ],
)
def test_where_a_size_is_written(code: str, texts: list[str]) -> None:
    assert [ast.unparse(node) for node in _sites(mark(ast.parse(code), {}), 1001)] == texts


def test_a_file_that_cannot_be_read_writes_no_size(tmp_path: Path) -> None:
    assert list(_sites(None, 1001)) == []
