"""Comparing `sdy-per-instruction-partitioning`: `python -m tests.differential.per_instruction_compare --modules 3000`."""

from __future__ import annotations

import re
import sys

from pyshardy.errors import InvalidShardingError
from pyshardy.passes.table import PASSES

from .generated_campaign import Campaign
from .local_compare import listed_reason
from .local_programs import FAMILIES, STAGES
from .normal_form import Reason, explain
from .partition_reasons import PAD, PADDING, PLACE, RESOLVING, STRIDE, refused_reason
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_compare import Comparison, Verdict

NAME = "sdy-per-instruction-partitioning"
OPTIONS = (
    "",
    "enable-halo-exchange=false",
    "replica-count=8",
    "partition-count=8 rng-bit-generator-unsafe=false",
    "filter=selectLow=1,selectHigh=3",
    "filter=stablehlo,all_",
)
"""What to compare with."""
assert NAME in PASSES


def per_instruction_input(family: str, seed: int, reference: ReferenceProcess) -> str | None:
    """A module with the reshards that its ops need; None if the reference does not get that far."""
    make, first = FAMILIES[family]
    try:
        text = make(seed).replace('"stablehlo.constant"', '"sdy.constant"')  # as import leaves them
        return reference.run(text, ",".join((first, *STAGES[:2])))
    except (InvalidShardingError, Refused, Died):
        return None


_ACCEPTED = (
    ("gather of an empty dimension", r"dimension size of operand at 'all_gather_dim' cannot be zero"),
    (
        "convolution of an empty dimension",
        r"inferred shape '.*' is incompatible with return type of operation '.*[<x]0x",
    ),
    ("permutation between parts of an axis", r"duplicate targets not allowed"),
)
"""What we accept and the reference refuses, besides what its passes refuse: a name, and a part of its message."""
_REASONS = (
    STRIDE,
    Reason(
        "reduced by its own body",
        r'"stablehlo\.reduce".*\n.*\n(?!.*"stablehlo\.(add|maximum|minimum)")',
        frozenset(),
        PLACE | {"all_reduce", "all_gather", "reduce", "select", "broadcast_in_dim", "region", "return"},
        has=r'"stablehlo\.all_(reduce|gather)"',
    ),
    Reason(
        "initial value counts once",
        r'"stablehlo\.reduce"',
        frozenset(),
        PLACE | {"select", "broadcast_in_dim"},
        has=r'"stablehlo\.select".*\(tensor<i1>',
    ),
    Reason(
        "gather of a padded dimension of size 1",
        r'"stablehlo\.gather"',
        PLACE | {"compare", "and", "select", "gather", "subtract", "broadcast_in_dim"},
        PLACE | {"compare", "and", "select", "gather", "subtract", "broadcast_in_dim"},
        has=r'"stablehlo\.compare".*EQ',
    ),
    Reason(
        "identity of a scatter",
        r'"stablehlo\.scatter"',
        frozenset(["constant"]),
        frozenset(["constant"]),
        has=r'"stablehlo\.constant".*(0x[7F]|<true>|<false>|<0>|<-?\d+>)',
    ),
    Reason(
        "scatter of whole windows",
        r'"stablehlo\.scatter"',
        PLACE | {"broadcast_in_dim", "concatenate", "subtract", "iota", "scatter"},
        frozenset(["constant", "scatter"]),
        lacks=r'"stablehlo\.(concatenate|subtract)"',
    ),
    Reason(
        "collectives that would move padding",
        r'"sdy\.reshard"',
        PLACE | {"all_to_all", "collective_permute", "pad", "slice"},
        PLACE | {"all_gather", "pad", "slice", "transpose"},
        has=r'"stablehlo\.all_gather"',
    ),
    *RESOLVING,
    *PADDING,
)


def reason(text: str, found: Comparison) -> str | None:
    """The listed reasons for a difference in one of the passes that run on every op, if they explain all of it."""
    if found.verdict is not Verdict.DIFFERENT:
        return None
    if not found.details.startswith("given"):
        return explain(text, found.details, _REASONS)
    if found.details.startswith("given  accepted"):
        own = next((name for name, part in _ACCEPTED if re.search(part, found.details)), None)
        return own or refused_reason(found.details, PAD)
    return listed_reason(found.details)


def pipeline(option: str) -> str:
    """The pass with options."""
    return f"{NAME}{{{option}}}" if option else NAME


PER_INSTRUCTION = Campaign(
    tuple(FAMILIES),
    lambda family, seed, pipeline, reference: per_instruction_input(family, seed, reference),
    lambda seed: [pipeline(OPTIONS[seed % len(OPTIONS)])],
    lambda text, pipeline, found: reason(text, found),
    frozenset(Verdict) - {Verdict.DIFFERENT},
)
"""Random modules, partitioned op by op."""


if __name__ == "__main__":
    sys.exit(PER_INSTRUCTION.run("Compare partitioning op by op with the reference's."))
