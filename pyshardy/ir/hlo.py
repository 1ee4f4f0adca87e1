"""XLA's converters between StableHLO and HLO, which jaxlib has: all that is private in them stands here.

They are libraries like MLIR's parser: nothing in them propagates shardings.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import UnsupportedVersionError


def _converters() -> Any:
    try:
        from jaxlib import _jax
    except ImportError as error:
        raise UnsupportedVersionError(
            "converting between StableHLO and HLO", got="a jaxlib without converters", needed="jaxlib 0.10 or newer"
        ) from error
    return _jax.mlir


def to_hlo(module: str | bytes) -> bytes:
    """The HLO proto that XLA makes of a StableHLO module, in text or bytecode."""
    computation = _converters().mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    proto: bytes = computation.as_serialized_hlo_module_proto()
    return proto


def from_hlo(proto: bytes) -> ir.Module:
    """The StableHLO module of an HLO proto, in the context that is entered."""
    return ir.Module.parse(_converters().hlo_to_stablehlo(proto))
