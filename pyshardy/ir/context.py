"""MLIR contexts with the dialects that pyshardy reads, made without importing jax."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir._mlir_libs._mlir import register_type_caster

from pyshardy.core.intern import register_cache
from pyshardy.ir.dialects import chlo, mhlo, sdy, stablehlo


def make_context(allow_unregistered_dialects: bool = False) -> ir.Context:
    """A new context that knows StableHLO, CHLO, MHLO, `sdy`, `func` and MLIR's own dialects.

    Args:
        allow_unregistered_dialects: Whether ops of unknown dialects may be parsed, in generic form.
    """
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    context.allow_unregistered_dialects = bool(allow_unregistered_dialects)
    context.enable_multithreading(False)  # a diagnostic from one of MLIR's threads ends the process
    with context:
        _mend_casts()
    return context


@cache
def _mend_casts() -> None:
    """Have the bindings return attributes that they cannot cast to their own classes as plain attributes.

    For such attributes they raise a `TypeError` or `ValueError`, or end the process if one is in a dictionary: dense
    constants of complex numbers, of wide floats, of types of dialects, and locations that are attributes. All other
    attributes keep their classes. A context must be entered.
    """
    dense = ir.Attribute.parse("dense<1.0> : tensor<2xf32>").typeid
    register_type_caster(dense, replace=True)(_cast_dense)
    for location in (ir.CallSiteLoc, ir.FileLineColLoc, ir.FusedLoc, ir.NameLoc, ir.UnknownLoc):
        register_type_caster(location.static_typeid, replace=True)(partial(_cast_location, location))


register_cache(_mend_casts.cache_clear)


def _cast_dense(attr: Any) -> Any:
    element = ir.ShapedType(attr.type).element_type
    if isinstance(element, ir.FloatType):
        return ir.DenseFPElementsAttr(attr)
    return ir.DenseIntElementsAttr(attr) if isinstance(element, (ir.IntegerType, ir.IndexType)) else attr


def _cast_location(kind: Any, found: Any) -> Any:
    return kind(found) if isinstance(found, ir.Location) else found
