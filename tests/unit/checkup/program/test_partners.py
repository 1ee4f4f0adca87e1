"""Weights that are multiplied with the same value."""

from __future__ import annotations

import pyshardy
from pyshardy.checkup.program.partners import Partners

SHAPE = "tensor<8x8xf32>"


def test_weights_behind_one_barrier_are_not_taken_for_each_other() -> None:
    """`jax.checkpoint` hands all weights of a layer through one barrier."""
    dot = "contracting_dims = [1] x [0]"
    types = f"({SHAPE}, {SHAPE}) -> {SHAPE}"
    module = pyshardy.load(
        f"func.func @main(%x: {SHAPE}, %q: {SHAPE}, %k: {SHAPE}, %o: {SHAPE}) -> {SHAPE} {{\n"
        f"%b:4 = stablehlo.optimization_barrier %x, %q, %k, %o : {SHAPE}, {SHAPE}, {SHAPE}, {SHAPE}\n"
        f"%0 = stablehlo.dot_general %b#0, %b#1, {dot} : {types}\n"
        f"%1 = stablehlo.dot_general %b#0, %b#2, {dot} : {types}\n"
        f"%2 = stablehlo.add %0, %1 : {SHAPE}\n"
        f"%3 = stablehlo.dot_general %2, %b#3, {dot} : {types}\n"
        f"return %3 : {SHAPE}\n}}"
    )
    partners = Partners(module)
    assert partners.of(1) == partners.of(2) and len(partners.of(1)) == 1
    assert partners.of(1).isdisjoint(partners.of(3))
