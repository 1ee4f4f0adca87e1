"""Traits of ops: all that passes know of an op by its name. `rules/ops.py` lists the traits of every op.

A trait may name a function as text, "module:function", in the package of that trait (`ROOMS`). The first op that
needs the function imports it, so this half can refer to functions that make ops local without importing MLIR.

Source: docs/semantics/rules.md#traits-of-ops
"""

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from pyshardy.core.intern import register_cache

SILENT: Final = "silent"
"""A `rule`: none, on purpose. Other means carry shardings across the op, or it stops propagation."""
UNKNOWN: Final = "unknown"
"""A `rule`: none, as in the reference; propagation warns about such ops."""
BY_ATTRIBUTE: Final = "has_side_effect"
"""A `pure`: the attribute of that name decides for every op."""
PAD_LIKE_ANY: Final = "shape:pad_any"
"""A `pad`: operands and results are padded after their data."""
PAD_IF_OPERANDS: Final = "control:pad_carried"
"""A `pad`: results are padded in the dimensions where operands are."""
ON_SHARDS: Final = "table:localize_any"
"""A `local`: the same op on shards, if its rule says that this gives the shards of the result."""
LEFT_ALONE: Final = "table:leave_alone"
"""A `local`: the op computes nothing."""
GONE_BEFORE: Final = "table:refuse"
"""A `local`: earlier passes remove the op, so it is refused here."""
NO_EXCHANGE: Final = ""
"""An `exchange`: shards need no data from each other, or the op is replicated where they do."""
NO_FUNCTION: Final = ""
"""A trait that most ops do without."""
NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
"""`attributes`: the rule depends on shapes alone."""

ROOMS: Final[Mapping[str, str]] = {
    "rule": "pyshardy.rules",
    "xla_rule": "pyshardy.rules",
    "pad": "pyshardy.transforms.padding",
    "local": "pyshardy.transforms.local",
    "exchange": "pyshardy.transforms.exchanges",
    "whole_factors": "pyshardy.transforms.exchanges",
    "exchange_pieces": "pyshardy.transforms.exchanges",
}
"""The traits that name functions, and the packages of these functions."""


class Priority(IntEnum):
    """How an op takes part in op-priority propagation.

    Source: docs/semantics/propagation.md#op-priorities
    """

    OTHER = 0
    """Takes part with its pass-through factors in round 2 and with all factors in round 3."""
    PASS_THROUGH = 1
    """Element-wise ops, reshape, transpose, moves between host and device, data-flow edges: from round 0."""
    FORWARD = 2
    """dynamic_slice and dynamic_update_slice: forward from round 0."""
    BROADCAST = 3
    """broadcast_in_dim: backward from round 2, both ways in round 4."""
    FIXED = 4
    """Propagation barriers and results of the main function: their own direction, in every round."""


class Elementwise(Enum):
    """Whether every element of the results depends only on the elements at the same position."""

    NO = 0
    YES = 1
    IF_SAME_SHAPE = 2
    """If the op keeps the shape."""
    FOR_PARTITIONER = 3
    """Yes for the partitioner; no for propagation, because the reference does not treat the op as elementwise."""


class DataFlow(Enum):
    """The values of a data-flow op that are sharded alike.

    Source: docs/semantics/representation.md#data-flow-edges
    """

    SAME_INDEX = 0
    """An operand and the result of the same number."""
    BRANCHES = 1
    """A result, and the value that every region returns for it."""
    COMPUTATION = 2
    """An operand and an argument of the body; a returned value of the body and a result."""


class OpTraits(NamedTuple):  # `NamedTuple` would compile annotations given as text, in half a millisecond
    """The traits of an op. The first eight are required of every op; None means not stated.

    Attributes:
        rule: Function that gives the sharding rule from an `OpSpec` and whether propagation is conservative; `SILENT`
            or `UNKNOWN` if there is none.
        elementwise: Whether the op is elementwise.
        pure: Whether the op, apart from its regions, has no side effects, so it may be removed when nothing uses its
            results. `BY_ATTRIBUTE` if an attribute decides.
        priority: When the op takes part in op-priority propagation.
        attributes: The attributes that the rule reads, each with the name of its decoder in `ir/opspec.py`.
        pad: Function that pads the op, from the op and a `Padder`.
        local: Function that makes the op local, from the op and a `Localizer`.
        exchange: Function with which `sdy-resolve-permutation-factors` lets shards exchange the data they need, from
            the op and a `Resolver`; `NO_EXCHANGE` if there is none. It returns whether it did so; if not, the op gets
            whole dimensions.

        whole_factors: A function of the op, its rule and a `PassContext`. It gives the factors that every device needs
            whole, besides permutation factors.
        exchange_pieces: The same as `exchange` for `pyshardy-exchange-shards`, from a `ShardedOp`.
        xla_rule: Like `rule`, for an op that only HLO has; import writes the rule onto the op.
        keeps_constants: Whether results are constants if operands are; None if `elementwise` decides.
        context_facts: The name of a function in `ir/opspec.py` that adds facts from the op's context: the ops
            around it and inside it.
        own_shardings: The attributes that hold shardings; () for the usual one, `sdy.sharding`.
        data_flow: The values that are sharded alike, for data-flow ops.
        is_constant: Whether the op is a constant, with its elements in the attribute `value`.
        is_product: Whether it is a product of two matrices, or of batches of them.
        is_control_flow: Whether it chooses or repeats its regions.
        is_terminator: Whether it ends a block of a function, of control flow or of a computation.
        ends_other_blocks: Whether it ends a block of an op that passes do not look into.
        is_identity: Whether its only result equals its only operand, with another sharding annotation.
        reduces: Whether it is a collective that combines values of several devices.
        has_replica_groups: Whether the attribute `replica_groups` lists the devices that take part.
        completes_parts: Whether making the op local completes partial results.
        is_checked_apart: Whether the function that makes it local also checks whether elements have to move.
        has_size_operands: Whether an operand gives a size of the whole tensor.
        is_generated_per_shard: Whether it has no operands and every device makes its own part.
        needs_matrices: Whether it works on whole matrices although its rule does not say so.
        takes_shards: Whether it passes the data of every device to Python as it is.
        is_top_k: Whether it keeps the largest elements along a dimension.
        rounds: Whether floating-point results are rounded.
        applies: Whether it applies a region to elements.
    """

    rule: str | None = None
    elementwise: Elementwise | None = None
    pure: bool | str | None = None
    priority: Priority | None = None
    attributes: Mapping[str, str] | None = None
    pad: str | None = None
    local: str | None = None
    exchange: str | None = None

    whole_factors: str = NO_FUNCTION
    exchange_pieces: str = NO_FUNCTION
    xla_rule: str = NO_FUNCTION
    keeps_constants: bool | None = None
    context_facts: str = NO_FUNCTION
    own_shardings: tuple[str, ...] = ()
    data_flow: DataFlow | None = None
    is_constant: bool = False
    is_product: bool = False
    is_control_flow: bool = False
    is_terminator: bool = False
    ends_other_blocks: bool = False
    is_identity: bool = False
    reduces: bool = False
    has_replica_groups: bool = False
    completes_parts: bool = False
    is_checked_apart: bool = False
    has_size_operands: bool = False
    is_generated_per_shard: bool = False
    needs_matrices: bool = False
    takes_shards: bool = False
    is_top_k: bool = False
    rounds: bool = False
    applies: bool = False


def names_function(entry: str | None) -> bool:
    """Whether a trait names a function, rather than a special case."""
    return entry is not None and ":" in entry


@cache
def function_of_trait(trait: str, entry: str) -> Callable[..., Any]:
    """The function that a trait names.

    >>> function_of_trait("rule", "shape:pad").__module__
    'pyshardy.rules.shape'
    """
    module, _, function = entry.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{ROOMS[trait]}.{module}"), function)
    return found


register_cache(function_of_trait.cache_clear)
