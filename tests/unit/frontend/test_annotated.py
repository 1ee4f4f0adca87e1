from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.frontend.annotated import import_annotations, may_be_annotated, mesh_text
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.module import Module

from .hlo_texts import GSPMD

TILED = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""  # noqa: E501
PLAIN = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"


def test_annotations_are_imported_when_a_module_is_loaded() -> None:
    result = pyshardy.propagate(pyshardy.load(TILED))
    assert str(result.outputs[0].sharding) == '<@mesh, [{"axis_0"}, {}]>'


@pytest.mark.parametrize("mesh", [{"data": 4, "model": 2}, "data=4,model=2"])
@pytest.mark.parametrize("text", [TILED, GSPMD], ids=["MLIR", "HLO"])
def test_the_user_names_the_axes(text: str, mesh: dict[str, int] | str) -> None:
    result = pyshardy.propagate(pyshardy.load(text, mesh=mesh))
    assert str(result.outputs[0].sharding) == '<@mesh, [{"data"}, {}]>'


def test_what_is_not_annotated_stays_the_module_it_is() -> None:
    module = Module.parse(PLAIN)
    assert import_annotations(module) is module
    assert not may_be_annotated(PLAIN.encode())
    assert may_be_annotated(Module.parse(TILED).bytecode())
    assert may_be_annotated(TILED.encode())


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("data=4", "and give the mesh where you annotate: module.annotate(..., mesh=...)"),
        ("data", "reading the axes of a mesh: got 'data', needed axes with their sizes, like data=4,model=2"),
        ("data=0", "got 'data=0', needed axes with their sizes"),
        ("data=2,data=4", "got 'data=2,data=4', needed every axis once"),
        ({}, "reading the axes of a mesh: got none, needed axes with their sizes"),
    ],
)
def test_axes_that_make_no_sense(mesh: dict[str, int] | str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        pyshardy.load(PLAIN, mesh=mesh)
    assert message in str(caught.value)


def test_a_mesh_of_another_size_names_the_op() -> None:
    with pytest.raises(PassError, match=r"'func.func' op has mhlo.sharding = .*got a tiling over 8 devices, needed 4"):
        pyshardy.load(TILED, mesh="data=4")


def test_axes_as_text() -> None:
    assert mesh_text(None) == ""
    assert mesh_text("a=2, b=3") == "a=2, b=3"


def lowered(is_for_shardy: bool) -> jax.stages.Lowered:
    """A program with `shard_map`, nested and partial, constraints and dimensions left open."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.psum(jax.numpy.tanh(x @ w), "model")

    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jax.shard_map(
            local, mesh=mesh, axis_names={"model"}, in_specs=(PartitionSpec(None, "model"), PartitionSpec("model")),
            out_specs=PartitionSpec(),
        )(x, w)  # fmt: skip
        unspecified = PartitionSpec(PartitionSpec.UNCONSTRAINED, "model")
        return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, unspecified)) * 2

    before = jax.config.jax_use_shardy_partitioner
    try:
        jax.config.update("jax_use_shardy_partitioner", is_for_shardy)
        jax.clear_caches()
        args = jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 32), "float32")
        return jax.jit(f, in_shardings=(NamedSharding(mesh, PartitionSpec("data")), None)).lower(*args)
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
        jax.clear_caches()


def test_a_program_lowered_for_gspmd_is_sharded_like_one_for_shardy() -> None:
    for_gspmd, for_shardy = (pyshardy.propagate(pyshardy.load(lowered(flag))) for flag in (False, True))
    assert "@SPMDFullToShardShape" in lowered(False).as_text()
    shapes = [array.shape for array in for_shardy.summary.inputs]
    assert [row.local_shape for row in for_gspmd.summary.inputs] == [
        row.local_shape for row in for_shardy.summary.inputs
    ]
    assert [row.local_shape for row in for_gspmd.summary.outputs] == [(2, 16)]
    assert shapes == [(8, 16), (16, 32)]
    for_gspmd.module.verify()


def test_what_mlir_says_of_a_frontend_attribute_is_in_one_line() -> None:
    text = 'module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{x = \\22"}} {' + PLAIN + "}"
    with pytest.raises(PassError, match="which cannot be read: ") as caught:
        pyshardy.load(text)
    assert "error:" not in str(caught.value)
    text = text.replace('"{x = \\22"', '"xxx"')
    with pytest.raises(PassError, match="has xla.sdy.meshes = xxx, which cannot be read: expected attribute value"):
        pyshardy.load(text)
