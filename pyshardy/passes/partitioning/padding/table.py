"""Which op is padded how: one table, from op names to functions that are imported when first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Final, cast

from pyshardy.core.intern import register_cache
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import HOLD_OTHERWISE
from pyshardy.passes.partitioning.padding.padder import Padder

Handler = Callable[[Op, Padder], None]

HANDLERS: Final[dict[str, str]] = {
    "sdy.all_slice": "collectives:pad_slicing",
    "sdy.reduce_scatter": "collectives:pad_slicing",
    "sdy.all_to_all": "collectives:pad_all_to_all",
    "sdy.all_gather": "collectives:pad_gathering",
    "sdy.sharded_to_unreduced": "collectives:pad_gathering",
    "sdy.constant": "constants:pad_constant",
    "stablehlo.broadcast_in_dim": "shape:pad_broadcast",
    "stablehlo.constant": "constants:pad_constant",
    "stablehlo.convolution": "convolution:pad_convolution",
    "stablehlo.dot": "contraction:pad_dot",
    "stablehlo.dot_general": "contraction:pad_dot_general",
    "stablehlo.dynamic_slice": "indexing:pad_dynamic_slice",
    "stablehlo.dynamic_update_slice": "indexing:pad_dynamic_update_slice",
    "stablehlo.gather": "indexing:pad_gather",
    "stablehlo.get_dimension_size": "indexing:pad_get_dimension_size",
    "stablehlo.pad": "window:pad_pad",
    "stablehlo.reduce": "reduction:pad_reduce",
    "stablehlo.reshape": "shape:pad_reshape",
    "stablehlo.scatter": "indexing:pad_scatter",
    "stablehlo.slice": "window:pad_slice",
    **dict.fromkeys(("stablehlo.case", "stablehlo.if", "stablehlo.while"), "control:pad_region_op"),
    **dict.fromkeys(("sdy.manual_computation", "sdy.named_computation"), "control:pad_computation_args"),
    **dict.fromkeys(
        ("sdy.all_reduce", "sdy.collective_permute", "sdy.replicated_to_unreduced"), "collectives:pad_in_place"
    ),
    "func.call": "control:pad_call",
}
ALWAYS: Final = HOLD_OTHERWISE | {"stablehlo.pad"}
"""Ops that are looked at even where nothing around them is padded: for how they are sharded, or what they pad with."""
_ANY: Final = "shape:pad_any"
_CARRIED: Final = "control:pad_carried"


def is_converted(name: str) -> bool:
    """Whether ops of a name are padded wherever their shardings need it, not only where what they take is.

    >>> [is_converted(name) for name in ("stablehlo.add", "sdy.all_slice", "func.call", "sdy.reshard", "chlo.erf")]
    [True, True, False, False, False]
    """
    return name.startswith("stablehlo.") or not HANDLERS.get(name, _CARRIED).startswith("control:")


@cache
def handler_of(name: str) -> Handler:
    """The function that pads ops of a name.

    >>> [handler_of(f"stablehlo.{name}").__name__ for name in ("slice", "add")], handler_of("chlo.erf").__name__
    (['pad_slice', 'pad_any'], 'pad_carried')
    """
    other = _ANY if name.startswith("stablehlo.") else _CARRIED
    module, function = HANDLERS.get(name, other).split(":")
    return cast(Handler, getattr(import_module(f"pyshardy.passes.partitioning.padding.{module}"), function))


register_cache(handler_of.cache_clear)
