from __future__ import annotations

import pytest

from pyshardy.ir.context import make_context
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline

from .after import ABC, after, on, refusal, tensor_args, whole

MINIMAL = "sdy-insert-explicit-reshards"
FULL = f"{MINIMAL}{{enable-full-version=true}}"
MARK = f"{MINIMAL}{{enable-full-version=true mark-partial-result-with-unreduced-axes=true}}"
BOTH = pytest.mark.parametrize("pipeline", [MINIMAL, FULL])
T = "tensor<8x8xf32>"
DEVICES = "sdy.mesh @d0 = <[], device_ids=[0]>\nsdy.mesh @d1 = <[], device_ids=[1]>\n"


def program(args: str, *body: str, returned: str = "%0", result: str | None = None, more: str = "") -> str:
    """A function of 8x8 tensors."""
    attrs = "" if result is None else f" {{sdy.sharding = #sdy.sharding{whole(result)}}}"
    lines = "\n  ".join((*body, f"return {returned} : {T}"))
    return f"{ABC}{DEVICES}func.func @main({args}) -> ({T}{attrs}) {{\n  {lines}\n}}\n{more}"


# Ops with a rule


def test_product_resharded_and_completed() -> None:
    text = program(
        tensor_args(l='[{"a"}, {"b"}]', r='[{"a"}, {}]'),
        f"%0 = stablehlo.dot %l, %r {on('[{}, {\"a\"}]')} : ({T}, {T}) -> {T}" if False else
        "%0 = stablehlo.dot %l, %r " + on('[{}, {"a"}]') + f" : ({T}, {T}) -> {T}",
        result='[{}, {"a"}]',
    )
    assert after(text, FULL)[-1] == "return %3"
