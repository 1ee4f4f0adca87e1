"""Traits of ops: all that passes know of an op by its name. `rules/ops.py` says which op has which.

A trait may name a function as text, "module:function", in the room of that trait (`ROOMS`); the function is imported
when the first op needs it. So this half knows which function makes an op local without importing MLIR.

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
"""A `pure`: the attribute of that name says it, op by op."""
PAD_LIKE_ANY: Final = "shape:pad_any"
"""A `pad`: operands and results are padded behind their data."""
PAD_IF_OPERANDS: Final = "control:pad_carried"
"""A `pad`: results are padded where operands are."""
ON_SHARDS: Final = "table:localize_any"
"""A `local`: the same op on shards, if its rule says that this gives the shards of the result."""
LEFT_ALONE: Final = "table:leave_alone"
"""A `local`: the op computes nothing."""
GONE_BEFORE: Final = "table:refuse"
"""A `local`: earlier passes remove the op, so that it is refused."""
NOTHING: Final = ""
"""An `exchange`: shards need no data of each other, or the op is replicated where they do."""
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
"""The traits that name functions, and the packages in which these are."""


class Priority(IntEnum):
    """How an op takes part in op-priority propagation.

    Source: docs/semantics/propagation.md#op-priorities
    """

    OTHER = 0
    """Joins with its pass-through factors in round 2 and with all factors in round 3."""
    PASS_THROUGH = 1
    """Element-wise ops, reshape, transpose, moves between host and device, data-flow edges: from round 0."""
    FORWARD = 2
    """dynamic_slice and dynamic_update_slice: forward from round 0."""
    BROADCAST = 3
    """broadcast_in_dim: backward from round 2, both ways in round 4."""
    FIXED = 4
    """Propagation barriers and results of the main function: their own direction in every round."""


class Elementwise(Enum):
    """Whether every element of the results depends on the elements at the same place alone."""

    NO = 0
    YES = 1
    IF_SAME_SHAPE = 2
    """Where the op keeps the shape."""
    FOR_PARTITIONER = 3
    """Yes, but the reference does not know it: propagation takes the op for another one, the partitioner does not."""


class DataFlow(Enum):
    """Which values of a data-flow op are sharded alike.

    Source: docs/semantics/representation.md#data-flow-edges
    """

    SAME_INDEX = 0
    """Operand and result of the same number."""
    BRANCHES = 1
    """A result, and what every region returns for it."""
    COMPUTATION = 2
    """An operand and an argument of the body; what the body returns and a result."""


class OpTraits(NamedTuple):  # its annotations are no text: `NamedTuple` would compile each, half a millisecond in all
    """What is known of an op. The first eight have to be said of every op; None stands for what is not said.

    Attributes:
        rule: Function that gives the sharding rule from an `OpSpec` and whether propagation is conservative; `SILENT`
            or `UNKNOWN` if there is none.
        elementwise: Whether the op is elementwise.
        pure: Whether the op, without what its regions hold, has no effect but its results: it may be removed when
            nothing uses them. `BY_ATTRIBUTE` where an attribute says it.
        priority: When the op takes part in op-priority propagation.
        attributes: The attributes that the rule reads, each with the name of its decoder in `ir/opspec.py`.
        pad: Function that pads the op, from the op and a `Padder`.
        local: Function that makes the op local, from the op and a `Localizer`.
        exchange: Function by which `sdy-resolve-permutation-factors` lets shards get what they need of each other,
            from the op and a `Resolver`; `NOTHING` if there is none. It says whether that is done; else the op gets
            whole dimensions.

        whole_factors: Function that gives the factors that every device needs as a whole, besides those that are
            permutations, from the op, its rule and a `PassContext`.
        exchange_pieces: The same as `exchange` for `pyshardy-exchange-shards`, from a `Site`.
        xla_rule: Like `rule`, for an op that only HLO has: the rule that XLA gives it, which import writes onto it.
        keeps_constants: Whether results are constants if operands are; None for what being elementwise says.
        looks_around: The name of a function in `ir/opspec.py` that adds to the attributes what is around the op.
        own_shardings: The attributes that hold shardings; () for that of most ops, `sdy.sharding`.
        data_flow: Which values are sharded alike, for data-flow ops.
        is_constant: Whether the op is a constant, with its elements in the attribute `value`.
        is_product: Whether it is a product of two matrices, or of batches of them.
        is_control_flow: Whether it chooses or repeats the regions that it holds.
        is_terminator: Whether it ends a block of a function, of control flow or of a computation.
        ends_other_blocks: Whether it ends a block of an op that passes do not look into.
        hands_on: Whether its only result is its only operand, with other words about sharding.
        reduces: Whether it is a collective that combines values of several devices.
        has_replica_groups: Whether the attribute `replica_groups` tells which devices take part.
        completes_parts: Whether partial results are completed where the op becomes local.
        is_checked_apart: Whether the function that makes it local looks itself whether elements have to move.
        takes_sizes: Whether an operand tells a size of the whole tensor.
        is_made_in_parts: Whether it has no operands and every device makes its part.
        needs_matrices: Whether it works on whole matrices although its rule does not say so.
        takes_shards: Whether it shows Python what every device has, whatever that is.
        is_top_k: Whether it keeps the largest elements along the last dimension.
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

    whole_factors: str = NOTHING
    exchange_pieces: str = NOTHING
    xla_rule: str = NOTHING
    keeps_constants: bool | None = None
    looks_around: str = NOTHING
    own_shardings: tuple[str, ...] = ()
    data_flow: DataFlow | None = None
    is_constant: bool = False
    is_product: bool = False
    is_control_flow: bool = False
    is_terminator: bool = False
    ends_other_blocks: bool = False
    hands_on: bool = False
    reduces: bool = False
    has_replica_groups: bool = False
    completes_parts: bool = False
    is_checked_apart: bool = False
    takes_sizes: bool = False
    is_made_in_parts: bool = False
    needs_matrices: bool = False
    takes_shards: bool = False
    is_top_k: bool = False
    rounds: bool = False
    applies: bool = False


REQUIRED: Final = ("rule", "elementwise", "pure", "priority", "attributes", "pad", "local", "exchange")
"""The traits that have to be said of every op."""


def missing_traits(traits: OpTraits) -> list[str]:
    """The required traits that are not said.

    >>> missing_traits(OpTraits(rule=SILENT, pure=True, priority=Priority.OTHER, attributes=NO_ATTRIBUTES))
    ['elementwise', 'pad', 'local', 'exchange']
    """
    return [trait for trait in REQUIRED if getattr(traits, trait) is None]


def names_function(entry: str | None) -> bool:
    """Whether a trait names a function, not a special case."""
    return entry is not None and ":" in entry


@cache
def load_function(trait: str, entry: str) -> Callable[..., Any]:
    """The function that a trait names.

    >>> load_function("rule", "shape:pad").__module__
    'pyshardy.rules.shape'
    """
    module, _, function = entry.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{ROOMS[trait]}.{module}"), function)
    return found


register_cache(load_function.cache_clear)
