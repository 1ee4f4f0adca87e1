"""Comparing resolving permutation factors and padding with the reference's, each on what comes to it."""

from __future__ import annotations

import sys

from pyshardy.errors import ShardyError

from .generated_campaign import Campaign
from .partition_programs import (
    COLLECTIVES,
    KINDS,
    NEIGHBOURS,
    PAD,
    RESOLVE,
    neighbour_program,
    prepared_program,
)
from .partition_reasons import partition_reason
from .reference_process import Refused
from .reshard_compare import ours

FAMILIES = (*NEIGHBOURS, *KINDS)


def partition_input(family: str, seed: int, stage: str) -> str | None:
    """A module of a family as the pass gets it; None if there is none of this seed."""
    try:
        text = neighbour_program(family, seed) if family in NEIGHBOURS else prepared_program(family, seed)
        return text if stage != PAD else ours(text, f"{RESOLVE[0]},{COLLECTIVES}")
    except (Refused, ShardyError):
        return None


PARTITION = Campaign(
    FAMILIES,
    lambda family, seed, pipeline, reference: partition_input(family, seed, pipeline),
    lambda seed: (*RESOLVE, PAD),
    partition_reason,
)
"""What resolving permutation factors and padding make of their random modules."""


if __name__ == "__main__":
    sys.exit(PARTITION.run("Compare resolving permutation factors and padding."))
