from __future__ import annotations

import subprocess
import sys

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.context import make_context


@pytest.mark.parametrize(
    "text",
    [
        "%0 = stablehlo.constant dense<1.0> : tensor<2xf32>",
        "%0 = mhlo.constant dense<1.0> : tensor<2xf32>",
        "%0 = chlo.constant dense<1.0> : tensor<2xf32>",
        "%0 = arith.constant 1 : i32",
        "%0 = tensor.empty() : tensor<2xf32>",
        "%0 = ub.poison : i32",
        "func.func private @f()",
        'sdy.mesh @m = <["x"=2]>',
        "memref.global @g : memref<2xf32>",
    ],
)
def test_dialects_that_are_known(text: str) -> None:
    with make_context():
        assert ir.Module.parse(text).operation.verify()


@pytest.mark.parametrize(
    "text", ['"t.op"() : () -> ()', "func.func private @f(!t.type)", "module attributes {t.a = #t.b} {}"]
)
def test_unknown_dialects_only_where_they_are_allowed(text: str) -> None:
    with make_context(), pytest.raises(ir.MLIRError, match="unregistered|not found"):
        ir.Module.parse(text)
    with make_context(allow_unregistered_dialects=True):
        assert ir.Module.parse(text).operation.verify()


def test_contexts_are_apart() -> None:
    first, second = make_context(), make_context(allow_unregistered_dialects=True)
    assert first is not second
    assert not first.allow_unregistered_dialects
    assert second.allow_unregistered_dialects


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", ir.Attribute),
        ("dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f64>>", ir.Attribute),
        ("dense<1.0> : tensor<2xf32>", ir.DenseFPElementsAttr),
        ("dense<1.0> : tensor<2xbf16>", ir.DenseFPElementsAttr),
        ("dense<1> : tensor<2xi32>", ir.DenseIntElementsAttr),
        ("dense<true> : tensor<2xi1>", ir.DenseIntElementsAttr),
        ("dense<1> : tensor<2xindex>", ir.DenseIntElementsAttr),
        ("dense<1.0> : tensor<2xf128>", ir.Attribute),
        ('dense<["a", "b"]> : tensor<2x!shape.shape>', ir.Attribute),
        ('loc("file":1:2)', ir.Attribute),
        ('loc("name")', ir.Attribute),
        ("loc(unknown)", ir.Attribute),
        ('loc(callsite("a" at "b"))', ir.Attribute),
        ('loc(fused["a", "b"])', ir.Attribute),
    ],
)
def test_classes_of_attributes(text: str, kind: type) -> None:
    with make_context():
        attributes = ir.Module.parse(f"module attributes {{my.value = {text}}} {{}}").operation.attributes
        assert type(attributes["my.value"]) is kind
        assert attributes["my.value"] == ir.Attribute.parse(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"file":1:2', ir.FileLineColLoc),
        ('"name"', ir.NameLoc),
        ("unknown", ir.UnknownLoc),
        ('callsite("a" at "b")', ir.CallSiteLoc),
        ('fused["a", "b"]', ir.FusedLoc),
    ],
)
def test_locations_keep_their_classes(text: str, kind: type) -> None:
    with make_context():
        module = ir.Module.parse(f"module attributes {{my.place = [loc({text})]}} {{}} loc({text})")
        assert type(module.operation.location) is kind
        assert str(module.operation.attributes["my.place"][0]) == str(module.operation.location)


def test_jax_is_not_needed() -> None:
    code = (
        "import sys; from pyshardy.ir.context import make_context; make_context(); "
        "assert 'jaxlib' in sys.modules; assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
