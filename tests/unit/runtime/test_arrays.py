"""Arrays in the types that inputs have."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import check_static, is_wide, jax_dtype

DTYPES = {
    "i1": np.bool_, "i2": jnp.int2, "i4": jnp.int4, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui2": jnp.uint2, "ui4": jnp.uint4, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": jnp.bfloat16,
    "f8E5M2": jnp.float8_e5m2, "f8E4M3": jnp.float8_e4m3, "f8E4M3FN": jnp.float8_e4m3fn,
    "f8E4M3FNUZ": jnp.float8_e4m3fnuz, "f8E5M2FNUZ": jnp.float8_e5m2fnuz, "f8E4M3B11FNUZ": jnp.float8_e4m3b11fnuz,
    "f8E3M4": jnp.float8_e3m4, "f8E8M0FNU": jnp.float8_e8m0fnu, "f4E2M1FN": jnp.float4_e2m1fn,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}  # fmt: skip


@pytest.mark.parametrize("element", DTYPES)
def test_every_element_type_has_jaxs_type(element: str) -> None:
    assert jax_dtype(element) == np.dtype(DTYPES[element])


@pytest.mark.parametrize(
    "element", ["f80", "tf32", "i3", "index", "!quant.uniform<i8:f32, 1.0>", "complex<f16>", "token"]
)
def test_a_type_that_jax_does_not_have_is_refused(element: str) -> None:
    with pytest.raises(ShardyError) as caught:
        jax_dtype(element)
    assert str(caught.value) == f"running a module: got element type {element}, needed one that JAX has"


def test_what_needs_64_bits() -> None:
    assert {element for element in DTYPES if is_wide(jax_dtype(element))} == {"i64", "ui64", "f64", "complex<f64>"}


def test_static_arguments() -> None:
    check_static(Module.parse("func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) { return }"))
    module = Module.parse("func.func @main(%a: tensor<4xf32>, %b: tensor<?xf32>) { return }")
    with pytest.raises(ShardyError) as caught:
        check_static(module)
    assert str(caught.value) == (
        "running a module: got type tensor<?xf32>, needed tensors of static shape\n  at argument 1 of the main function"
    )
