"""Programs of 8x8 tensors for `sdy-insert-explicit-reshards`, and its options."""

from __future__ import annotations

import pytest

from support.after_pass import ABC, on, whole
from support.reference import jaxlib_version

MINIMAL = "sdy-insert-explicit-reshards"
FULL = f"{MINIMAL}{{enable-full-version=true}}"
MARK = f"{MINIMAL}{{enable-full-version=true mark-partial-result-with-unreduced-axes=true}}"
needs_kinds = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="partial values of older dialects are always summed"
)
both_versions = pytest.mark.parametrize("version", [MINIMAL, FULL])
T = "tensor<8x8xf32>"
MESHES = (
    ABC + 'sdy.mesh @n = <["a"=2, "b"=2, "c"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n'
    "sdy.mesh @d0 = <[], device_ids=[0]>\nsdy.mesh @d1 = <[], device_ids=[1]>\n"
)


def op(result: str, name: str, operands: str, sharding: str | None = None, attrs: str = "", type: str = T) -> str:
    """One op with one result; all its values have one type."""
    types = ", ".join([T] * operands.count("%"))
    inside = ", ".join(part for part in (attrs, "" if sharding is None else on(sharding)[1:-1]) if part)
    return f'{result} = "{name}"({operands}) {{{inside}}} : ({types}) -> {type}'


def main(args: str, *body: str, returned: str = "%0", result: str | None = None, type: str = T) -> str:
    """A function of 8x8 tensors."""
    attrs = "" if result is None else f" {{sdy.sharding = #sdy.sharding{whole(result)}}}"
    lines = "\n  ".join((*body, f"return {returned} : {type}"))
    return f"{MESHES}func.func @main({args}) -> ({type}{attrs}) {{\n  {lines}\n}}\n"


def two_results(*shardings: str) -> str:
    """A call with two results."""
    return f"%0:2 = stablehlo.custom_call @f(%x) {on(*shardings)} : ({T}) -> ({T}, {T})"
