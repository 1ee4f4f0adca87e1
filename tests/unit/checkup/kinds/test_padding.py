"""Weights with a dimension that an axis does not divide, padded."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkup.test_doctor import load

import pyshardy
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.padding import UnevenWeight, _sites, _sizes, padding_cures, what_is_whole
from pyshardy.checkup.program.families import Family
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.source.meanings import mark


def program(body: str, rows: int = 64) -> pyshardy.Module:
    """A step that updates a table and another weight."""
    table, weight = "tensor<1001x64xf32>", f"tensor<{rows}x64xf32>"
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
    cure = cures(module)[-1]
    assert "`params['table']` is whole along 'model'" in cure.what and "dimension 0 of 1001" in cure.what
    assert cure.text == "pad the dimension to 1008, and split it along 'model'" and not cure.is_exact
    found = cure.apply(module)
    table, up = input_tensors(found.root)
    assert table.shape == (1008, 64) and up.shape == (64, 64) and "1001" not in found.text()
    assert table.sharding is not None and [axis.name for axis in table.sharding.dim_axes[0]] == ["model"]
    assert [one.shape for one in input_tensors(module.root)] == [(1001, 64), (64, 64)]


def test_an_axis_that_splits_no_weight_is_a_design_unless_it_divides_hardly_any() -> None:
    """All devices may keep the weights by design, as in data parallelism."""
    small, large = cures(program(SLICED)), cures(program(SLICED, rows=16384))
    assert ["which splits other weights" in one.what for one in large] == [False, True]
    assert [one.is_design for one in small] == [False, False] and [one.is_design for one in large] == [True, False]


def test_a_size_that_is_part_of_another_is_not_padded() -> None:
    flat = "%2 = stablehlo.reshape %0 : (tensor<1001x64xf32>) -> tensor<64064xf32>"
    back = "%8 = stablehlo.reshape %2 : (tensor<64064xf32>) -> tensor<1001x64xf32>"
    module = program(f"{flat}\n{back}")
    cure = cures(module)[-1]
    with pytest.raises(InvalidModuleError):
        cure.apply(module)


@pytest.mark.parametrize(("size", "shards", "padded"), [(50257, 8, 50304), (1001, 8, 1008), (151_669, 48, 151_680)])
def test_a_large_dimension_fits_the_tiles_of_a_chip_too(size: int, shards: int, padded: int) -> None:
    table = InterfaceTensor("table", 0, (size, 64), "f32", None)
    assert _sizes([UnevenWeight(Family("table", (table,), (), 0.0), 0, "model", shards)]) == {size: padded}


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


TABLES = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
ROWS = {"user": 100_003, "item": 50_001}


def place(leaf):
    if leaf.shape[0] % mesh.size == 0:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, P("x", None)))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, P()))


def update(tables, ids):
    read = lambda tables: sum(jnp.take(tables[name], ids, axis=0).sum() for name in ROWS)
    return jax.tree.map(lambda a, b: a - b, tables, jax.grad(read)(tables))


step = jax.jit(update, donate_argnums=0)
tables = {name: place(jax.ShapeDtypeStruct((rows, 64), jnp.float32)) for name, rows in ROWS.items()}
arguments = tables, jax.ShapeDtypeStruct((512,), jnp.int32, sharding=NamedSharding(mesh, P("x")))
"""


def test_tables_that_an_axis_all_fails_to_divide_are_padded_at_once(tmp_path: Path) -> None:
    """No weight has the axis, but these are most of the weights; a helper then splits them by itself."""
    module = load(TABLES, tmp_path / "tables.py")
    both, *alone = cures(module)
    assert not both.is_design and len(alone) == 2
    assert both.what.endswith("are whole along 'x': its devices do not divide dimension 0 of 50001 and 100003")
    assert "pad 50001 to 50048 at " in both.text and both.text.endswith("split these dimensions along 'x'")
    assert {one.shape[0] for one in input_tensors(both.apply(module).root)} == {50048, 100096, 512}
    changed = [line for line in both.make_patch().splitlines() if line[:1] in "+-" and line[:2] not in ("++", "--")]
    assert changed == [
        '-ROWS = {"user": 100_003, "item": 50_001}',
        '+ROWS = {"user": 100_096, "item": 50_048}',
    ]
    assert [one.make_patch().count("\n+ROWS") for one in alone] == [1, 1]


def test_a_table_is_told_with_few_sizes() -> None:
    tables = [InterfaceTensor(name, 0, (size, 64), "f32", None) for name, size in zip("abcd", (1001, 1002, 1003, 1001))]
    weights = [UnevenWeight(Family(one.name, (one,), (), 0.0), 0, "x", 8, is_used=False) for one in tables]
    assert what_is_whole(weights).endswith("dimension 0 of 1001, 1002 and 1 other size")


HEAD = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
VOCABULARY = 50_001


def fit(shape, *axes):
    return P(*[axis if axis and size % mesh.shape[axis] == 0 else None for size, axis in zip(shape, axes)])


def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, fit(shape, *axes)))


def keep(x, *axes):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, fit(x.shape, *axes)))


def update(weights, x):
    def loss(weights):
        h = keep(jnp.tanh(x @ weights["up"]), None, "x")
        return keep(h @ weights["head"], None, "x").sum()

    return jax.tree.map(lambda a, b: a - b, weights, jax.grad(loss)(weights))


step = jax.jit(update, donate_argnums=0)
weights = {"up": array((512, 1024), None, "x"), "head": array((1024, VOCABULARY), None, "x")}
arguments = weights, jax.ShapeDtypeStruct((256, 512), jnp.float32)
"""


def test_constraints_from_which_a_helper_leaves_the_axis_out_have_it_then(tmp_path: Path) -> None:
    """As they do where the size is divided: the program is the one that the patch makes."""
    module = load(HEAD, tmp_path / "head.py")
    (cure,) = cures(module)
    found, right = cure.apply(module), load(HEAD.replace("50_001", "50_048"), tmp_path / "padded.py")
    assert "+VOCABULARY = 50_048" in cure.make_patch() and cure.make_patch().count("\n+") == 2

    def constraints(module: pyshardy.Module) -> list[tuple[str, str]]:
        ops = ops_named(module.root, ("sdy.sharding_constraint",))
        return [(str(op.attrs["sharding"]), str(op.result.type.shape)) for op in ops]

    assert constraints(found) == constraints(right) and constraints(found) != constraints(module)
    assert [one.sharding for one in input_tensors(found.root)] == [one.sharding for one in input_tensors(right.root)]
