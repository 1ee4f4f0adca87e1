"""The simplifications by op name."""

from __future__ import annotations

from pyshardy.transforms.xla.simplifications import control, elementwise, indexing, shape
from pyshardy.transforms.xla.simplifications.constants import BINARY, UNARY
from pyshardy.transforms.xla.simplifier import Simplification

SIMPLIFICATIONS: dict[str, Simplification] = {
    **dict.fromkeys(UNARY, elementwise.fold),
    **dict.fromkeys(BINARY, elementwise.binary),
    "stablehlo.broadcast_in_dim": shape.broadcast_in_dim,
    "stablehlo.case": control.branch,
    "stablehlo.clamp": elementwise.fold,
    "stablehlo.compare": elementwise.compare,
    "stablehlo.complex": elementwise.complex_number,
    "stablehlo.concatenate": shape.concatenate,
    "stablehlo.convert": elementwise.convert,
    "stablehlo.dynamic_slice": indexing.dynamic_slice,
    "stablehlo.dynamic_update_slice": indexing.dynamic_update_slice,
    "stablehlo.gather": indexing.gather,
    "stablehlo.if": control.branch,
    "stablehlo.imag": elementwise.imag,
    "stablehlo.iota": shape.iota,
    "stablehlo.pad": shape.pad,
    "stablehlo.real": elementwise.real,
    "stablehlo.reduce": shape.reduce,
    "stablehlo.reshape": shape.reshape,
    "stablehlo.reverse": shape.reverse,
    "stablehlo.select": elementwise.select,
    "stablehlo.slice": shape.slice_of,
    "stablehlo.transpose": shape.transpose,
    "stablehlo.while": control.loop,
}
