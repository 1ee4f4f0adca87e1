"""The ops that a builder makes, verified by MLIR and looked at as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import main_function, return_op
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Value
from pyshardy.transforms.builder import Builder, zero_text

TEXT = """sdy.mesh @m = <["x"=2, "y"=4]>
func.func @main(%x: tensor<4x6xf32>) { return }"""
MESH = Mesh([("x", 2), ("y", 4)])
Fill = Callable[[Builder, Value], object]


def built(fill: Fill, sharding: TensorSharding | None = None, use_replicas: bool = False) -> str:
    """The body of a function in which `fill` has made ops; MLIR's verifier has accepted them."""
    module = Module.parse(TEXT)
    root = module.copy_root()
    function = main_function(root)
    with module.context:
        builder = Builder(module.attrs, return_op(function), return_op(function).location, sharding, use_replicas)
        fill(builder, function.region.block.args[0])
        result = module.with_root(root)
        result.verify()
    body = result.text().partition("func.func")[2].splitlines()[1:-3]
    return "\n".join(line.strip() for line in body)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (lambda b, x: b.combine("add", x, x), "stablehlo.add %arg0, %arg0 : tensor<4x6xf32>"),
        (lambda b, x: b.reshape(x, [24]), "reshape %arg0 : (tensor<4x6xf32>) -> tensor<24xf32>"),
        (lambda b, x: b.transpose(x, [1, 0]), "dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>"),
        (lambda b, x: b.slice(x, [1, 0], [4, 6], [2, 1]), "[1:4:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>"),
        (lambda b, x: b.cut(x, [3, 2]), "%arg0 [0:3, 0:2]"),
        (lambda b, x: b.broadcast(x, [5, 4, 6], [1, 2]), "dims = [1, 2] : (tensor<4x6xf32>) -> tensor<5x4x6xf32>"),
        (lambda b, x: b.convert(x, "i32"), "(tensor<4x6xf32>) -> tensor<4x6xi32>"),
        (lambda b, x: b.concatenate([x, x], 1), "dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>"),
        (lambda b, x: b.iota(b.type([2, 3], "i32"), 1), "iota dim = 1 : tensor<2x3xi32>"),
        (lambda b, x: b.select(b.compare("LT", x, x), x, x), "select %0, %arg0, %arg0 : tensor<4x6xi1>"),
        (
            lambda b, x: b.pad(x, b.splat("0.0", b.like([], x.type)), [1, 0], [2, 0], [1, 0]),
            "low = [1, 0], high = [2, 0], interior = [1, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<10x6xf32>",
        ),
    ],
)
def test_one_op(fill: Fill, expected: str) -> None:
    assert expected in built(fill)


def test_tables() -> None:
    assert "dense<[0, 2, 1]> : tensor<3xi32>" in built(lambda b, x: b.table([0, 2, 1], "i32"))
    assert "dense<[true, false]> : tensor<2xi1>" in built(lambda b, x: b.table([True, False], "i1"))
    assert "dense<7> : tensor<4xi64>" in built(lambda b, x: b.table([7] * 4, "i64"))


def test_offset_of_a_dimension() -> None:
    assert built(lambda b, x: b.dim_offset((AxisRef("y"),), MESH, 3)) == "\n".join(
        (
            "%0 = stablehlo.partition_id : tensor<ui32>",
            "%c = stablehlo.constant dense<[0, 3, 6, 9, 0, 3, 6, 9]> : tensor<8xi32>",
            "%1 = stablehlo.dynamic_slice %c, %0, sizes = [1] : (tensor<8xi32>, tensor<ui32>) -> tensor<1xi32>",
            "%2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>",
        )
    )
    assert "stablehlo.replica_id" in built(lambda b, x: b.device_id(), use_replicas=True)


def test_offset_beyond_32_bits() -> None:
    with pytest.raises(PassError, match="begins at 3221225472; offsets must fit into 32 bits"):
        built(lambda b, x: b.dim_offset((AxisRef("y"),), MESH, 2**30))


def test_sharding_goes_on_tensors_of_its_rank() -> None:
    sharding = TensorSharding("m", [DimSharding(["x"]), DimSharding()])
    text = built(
        lambda b, x: b.pad(b.combine("add", x, x), b.splat("0.0", b.like([], x.type)), [0, 0], [0, 2]), sharding
    )
    assert text.count('[{"x"}, {}]') == 2


def test_region() -> None:
    def fill(builder: Builder, x: Value) -> None:
        scalar = builder.like([], x.type)
        op = builder.op("reduce", [x, builder.splat("0.0", scalar)], [builder.like([4], x.type)], region_count=1)
        op.set_attr("dimensions", builder.array([1]))
        builder.body(op, [scalar, scalar], lambda inner, args: [inner.combine("maximum", *args)])

    assert "applies stablehlo.maximum across dimensions = [1]" in built(fill)


@pytest.mark.parametrize(("element", "text"), [("si8", "0"), ("f8E4M3FN", "0.0"), ("complex<f64>", "(0.0,0.0)")])
def test_zero(element: str, text: str) -> None:
    assert zero_text(element) == text
