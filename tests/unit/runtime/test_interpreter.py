"""Per-device programs in StableHLO's interpreter."""

from __future__ import annotations

import os

import numpy as np
import pytest

import pyshardy
from pyshardy.errors import ShardyError, UnsupportedVersionError
from pyshardy.runtime import interpreter
from pyshardy.runtime.arrays import jax_dtype
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the interpreter needs a thread of the machine for every device"
)
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
A = np.arange(32, dtype=np.float32).reshape(8, 4)
ELEMENTS = [
    "f32", "f64", "bf16", "f16", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64",
    "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E3M4", "f8E4M3", "f8E8M0FNU",
    "complex<f32>", "complex<f64>",
]  # fmt: skip


def partitioned(
    body: str, type: str, result: str = "", sharding: str = '[{"x"}, {"y"}]', out: str = ""
) -> pyshardy.Partition:
    on = "{{sdy.sharding = #sdy.sharding<@mesh, {}>}}"
    head = f"func.func @main(%a: {type} {on.format(sharding)}) -> ({result or type} {on.format(out or sharding)})"
    return pyshardy.partition(pyshardy.load(f"{MESH}{head} {{ {body} }}"))


def moved(element: str) -> pyshardy.Partition:
    """Every row goes to where its column was: data moves, and nothing is computed."""
    type = f"tensor<8x4x{element}>"
    body = f"%0 = stablehlo.transpose %a, dims = [1, 0] : ({type}) -> tensor<4x8x{element}>\nreturn %0 : tensor<4x8x{element}>"
    return partitioned(body, type, f"tensor<4x8x{element}>")


@pytest.mark.slow
@needs_newest
@pytest.mark.parametrize("element", ELEMENTS)
def test_numbers_of_all_types_move(element: str) -> None:
    dtype = jax_dtype(element)
    array = (A % 5 if element != "f8E8M0FNU" else 2.0 ** (A % 5)).astype(dtype)
    if dtype.kind == "c":
        array = array + 1j * array[::-1]
    (found,) = pyshardy.run(moved(element), array, engine="interpreter")
    assert found.dtype == dtype
    assert found.tobytes() == np.ascontiguousarray(array.T).tobytes()


@needs_newest
@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "ui64", "complex<f32>", "f8E4M3FN"])
def test_numbers_of_all_kinds_are_computed(element: str) -> None:
    type = f"tensor<8x4x{element}>"
    partition = partitioned(f"%0 = stablehlo.add %a, %a : {type}\nreturn %0 : {type}", type)
    array = (A % 3).astype(jax_dtype(element))
    (found,) = pyshardy.run(partition, array, engine="interpreter")
    np.testing.assert_array_equal(found.astype(complex), 2 * array.astype(complex))


@needs_newest
@pytest.mark.parametrize("shape", ["", "0x4x", "8x0x", "1x", "7x3x"])
def test_shapes(shape: str) -> None:
    sizes = tuple(int(size) for size in shape.split("x") if size)
    type = f"tensor<{shape}f32>"
    sharding = "[{}]" if sizes == (1,) else "[]" if not sizes else "[{}, {}]" if 7 in sizes else '[{"x"}, {}]'
    partition = partitioned(f"%0 = stablehlo.negate %a : {type}\nreturn %0 : {type}", type, sharding=sharding)
    array = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    (found,) = pyshardy.run(partition, array, engine="interpreter")
    assert found.shape == sizes
    np.testing.assert_array_equal(found, -array)


@needs_newest
def test_collectives() -> None:
    body = """%z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>"""
    partition = partitioned(body, "tensor<8x4xf32>", "tensor<4xf32>", out='[{"x"}]')
    (found,) = pyshardy.run(partition, A, engine="interpreter")
    np.testing.assert_array_equal(found, A.sum(0))


@needs_newest
def test_a_product_in_its_short_form() -> None:
    body = (
        "%0 = stablehlo.dot %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>"
    )
    square = np.arange(64, dtype=np.float32).reshape(8, 8) % 5
    (found,) = pyshardy.run(partitioned(body, "tensor<8x8xf32>"), square, engine="interpreter")
    np.testing.assert_array_equal(found, square @ square)


IN_A_LOOP = """
      %n = stablehlo.constant dense<9> : tensor<i32>
      %q:2 = stablehlo.while(%i = %n, %v = %a) : tensor<i32>, tensor<8xi32> cond {
        %c = stablehlo.constant dense<0> : tensor<i32>
        %p = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %c = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.subtract %i, %c : tensor<i32>
        %w = stablehlo.reverse %v, dims = [0] : tensor<8xi32>
        stablehlo.return %j, %w : tensor<i32>, tensor<8xi32>
      }
      return %q#1 : tensor<8xi32>"""
CALLED_TWICE = """
      %0 = func.call @turned(%a) : (tensor<8xi32>) -> tensor<8xi32>
      %1 = func.call @turned(%0) : (tensor<8xi32>) -> tensor<8xi32>
      return %1 : tensor<8xi32> }
    func.func private @turned(%a: tensor<8xi32>) -> tensor<8xi32> {
      %0 = stablehlo.reverse %a, dims = [0] : tensor<8xi32>
      return %0 : tensor<8xi32>"""


CALLED_IN_A_LOOP = (
    IN_A_LOOP.replace(
        "%w = stablehlo.reverse %v, dims = [0] : tensor<8xi32>",
        "%w = func.call @outer(%v) : (tensor<8xi32>) -> tensor<8xi32>",
    )
    + """ }
    func.func private @outer(%a: tensor<8xi32>) -> tensor<8xi32> {
      %0 = func.call @turned(%a) : (tensor<8xi32>) -> tensor<8xi32>
      return %0 : tensor<8xi32> }
    func.func private @turned(%a: tensor<8xi32>) -> tensor<8xi32> {
      %0 = stablehlo.reverse %a, dims = [0] : tensor<8xi32>
      return %0 : tensor<8xi32>"""
)


@needs_newest
def test_a_function_with_a_collective_that_is_called_twice() -> None:
    """The interpreter keeps what a channel has carried, so that every call needs a channel of its own."""
    partition = partitioned(CALLED_TWICE, "tensor<8xi32>", sharding='[{"x"}]')
    assert partition.traffic.collectives
    given = np.arange(8, dtype=np.int32)
    (found,) = pyshardy.run(partition, given, engine="interpreter")
    np.testing.assert_array_equal(found, given)


@needs_newest
@pytest.mark.parametrize("body", [IN_A_LOOP, CALLED_IN_A_LOOP])
def test_a_collective_that_runs_again_is_refused(body: str) -> None:
    """The interpreter gives wrong numbers there."""
    partition = partitioned(body, "tensor<8xi32>", sharding='[{"x"}]')
    assert partition.traffic.collectives
    with pytest.raises(ShardyError) as caught:
        pyshardy.run(partition, np.arange(8, dtype=np.int32), engine="interpreter")
    assert "that runs several times, needed collectives outside of loops" in str(caught.value)


@needs_newest
def test_groups_as_axes_of_a_mesh() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[7, 3, 0, 4, 1, 5, 6, 2]>
    func.func @main(%a: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2, "x"}, {"y":(1)2}]>})
        -> (tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y":(1)2}]>}) { return %a : tensor<8x8xi32> }"""
    partition = pyshardy.partition(pyshardy.load(text), pyshardy.PartitionOptions(mesh_axes_groups=True))
    assert "replica_group_mesh_axes" in partition.module.text()
    given = np.arange(64, dtype=np.int32).reshape(8, 8)
    (found,) = pyshardy.run(partition, given, engine="interpreter")
    np.testing.assert_array_equal(found, given)


@needs_newest
def test_more_devices_than_the_machine_has() -> None:
    text = """sdy.mesh @mesh = <["x"=32]>
    func.func @main(%a: tensor<64xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
        -> (tensor<64xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) { return %a : tensor<64xi32> }"""
    (found,) = pyshardy.run(
        pyshardy.partition(pyshardy.load(text)), np.arange(64, dtype=np.int32), engine="interpreter"
    )
    np.testing.assert_array_equal(found, np.arange(64))


@needs_newest
def test_an_op_that_the_interpreter_does_not_know_is_one_error() -> None:
    body = """%0 = stablehlo.custom_call @nobody(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>"""
    partition = partitioned(body, "tensor<8x4xf32>", sharding="[{}, {}]")
    with pytest.raises(ShardyError) as caught:
        pyshardy.run(partition, A, engine="interpreter")
    text = str(caught.value)
    assert text.startswith("running a program in the interpreter: got ")
    assert text.endswith(", needed ops that the interpreter supports")
    assert "nobody" in text or "Unsupported custom call" in text


@needs_newest
@pytest.mark.parametrize("element", ["i4", "ui2", "f4E2M1FN"])
def test_small_numbers_are_refused(element: str) -> None:
    array = (A % 2).astype(jax_dtype(element))
    with pytest.raises(ShardyError) as caught:
        pyshardy.run(moved(element), array, engine="interpreter")
    assert str(caught.value) == (
        f"running a program in the interpreter: got element type {element}, needed numbers of at least eight bits"
    )


def test_an_older_interpreter_needs_a_processor_for_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter.version, "__version_info__", (0, 10, 2))
    monkeypatch.setattr(interpreter.version, "__version__", "0.10.2")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(UnsupportedVersionError) as caught:
        pyshardy.run(moved("f32"), A, engine="interpreter")
    assert str(caught.value) == (
        "running a program in the interpreter: got 8 devices on 2 processors with jaxlib 0.10.2, "
        "needed jaxlib 0.12, or as many processors as devices\n"
        "  try: pip install --upgrade jax jaxlib, or another engine"
    )


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_context_stays_as_it_was(allowed: bool, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the program cannot be written in the middle of it."""
    partition = pyshardy.partition(
        pyshardy.load(
            "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }",
            allow_unregistered_dialects=allowed,
        )
    )
    context = partition.module.context
    seen = []

    def write(module: pyshardy.Module) -> bytes:
        seen.append(context.allow_unregistered_dialects)
        raise ValueError("no bytes")

    if fails:
        monkeypatch.setattr(pyshardy.Module, "bytecode", write)
        with pytest.raises(ValueError, match="no bytes"):
            partition.run(np.ones(2, np.float32), engine="interpreter")
        assert seen == [True]  # it was another one in between
    else:
        (found,) = partition.run(np.ones(2, np.float32), engine="interpreter")
        np.testing.assert_array_equal(found, np.ones(2))
    assert context.allow_unregistered_dialects is allowed
