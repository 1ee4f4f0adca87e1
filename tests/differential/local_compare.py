"""Comparing `sdy-convert-global-to-local` with the reference's, and the listed reasons for which they may differ."""

from __future__ import annotations

import re

from pyshardy.passes.table import PASSES

from .generated_campaign import Campaign
from .local_programs import FAMILIES, local_input
from .reshard_compare import Verdict

NAME = "sdy-convert-global-to-local"
OPTIONS = (
    "",
    "enable-rgv3=false",
    "per-dim-all-gather=true",
    "replica-count=8",
    "partition-count=8 enable-rgv3=false",
)
"""What to compare with; several dimensions of a reduce-scatter at once are compared on other modules."""
DROP = ",sdy-drop-sharding-and-mesh{keep-module-sharding-metadata=true}"
"""What runs next, behind every third."""
assert NAME in PASSES

_REFUSED: tuple[tuple[str, str], ...] = (
    ("unknown op", r"it is unknown how to run it on shards"),
    ("whole matrices", r"works on whole matrices"),
    (
        "rule of the user's",
        r"'stablehlo\.custom_call' op (has operands and results that are sharded incompatibly|is sharded along|gives results that are partial)",
    ),
    (
        "dimension of size 1 that is padded and expanded",
        r"'stablehlo\.broadcast_in_dim' op has operands and results that",
    ),
    (
        "collective over several tensors",
        r"'stablehlo\.(all_to_all|all_gather|all_reduce)' op has operands and results that",
    ),
    ("passed on otherwise", r"passes on a value with sharding"),
    ("part of a sharded update", r"has an update that is sharded along dimension \d+ but covers only a part of it"),
)
"""What we refuse and the reference runs on shards all the same: a name, and a part of the message."""
_ACCEPTED: tuple[tuple[str, str], ...] = (
    ("permutation between parts of an axis", r"duplicate targets not allowed"),
    ("collective along an empty dimension", r"dimension size .* cannot be zero"),
    ("scatter into what nothing indexes", r"not indexed but in inserted window dimension"),
)
"""What we accept and the reference refuses: a name, and a part of its message."""
_MADE: tuple[tuple[str, str, str], ...] = (
    ("initial value counts once", r'"stablehlo\.reduce"', r'"stablehlo\.constant"'),
    ("reduced by its own body", r'"(stablehlo\.add|sdy\.|stablehlo\.all_reduce|func\.return)', r'"stablehlo\.'),
    ("identity of a scatter", r'"stablehlo\.constant".*E\+', r'"stablehlo\.constant".*0x[7F]'),
    ("identity of a scatter", r'"stablehlo\.constant".*<false>', r'"stablehlo\.constant".*<true>'),
    ("identity of a scatter", r'"stablehlo\.constant".*<true>', r'"stablehlo\.constant".*<false>'),
    ("scatter of whole windows", r'"stablehlo\.(constant|partition_id|replica_id)"', r'"stablehlo\.scatter"'),
    (
        "gather of whole dimensions that are indexed",
        r'"stablehlo\.constant".*: tensor<\d+xu?i\d+>',
        r'"stablehlo\.constant".*: tensor<\d+xu?i\d+>',
    ),
    ("pad that moves elements", r'"stablehlo\.pad"', r'"stablehlo\.all_gather"'),
)
"""What comes out different: a name, and the first line that differs, the reference's and ours."""
_NUMBERS = re.compile(r"%\w+(:\d+)?|#loc\d+|loc\(.*?\)")


def listed_reason(details: str) -> str | None:
    """The listed reason for a difference in words, if there is one."""
    if details.startswith("given "):
        if details.startswith("given  accepted"):
            return next((name for name, part in _ACCEPTED if re.search(part, details)), None)
        if "refused: " not in details:
            return "both refuse"
        found = next((name for name, part in _REFUSED if re.search(part, details)), None)
        return found if details.rstrip().endswith("accepted") else None
    wanted, given = _first_lines(details)
    return next((name for name, one, other in _MADE if re.search(one, wanted) and re.search(other, given)), None)


def _first_lines(details: str) -> tuple[str, str]:
    """The first lines that differ by more than numbers of values."""
    lines = [line for line in details.splitlines()[2:] if line[:1] in "+-" and line[1:5] != "#loc"]
    wanted = [_NUMBERS.sub("", line[1:]) for line in lines if line[0] == "-"]
    given = [_NUMBERS.sub("", line[1:]) for line in lines if line[0] == "+"]
    return next((pair for pair in zip(wanted, given) if pair[0] != pair[1]), ("", ""))


def _pipelines(seed: int) -> list[str]:
    return [pipeline(OPTIONS[seed % len(OPTIONS)], seed % 3 == 0)]


def pipeline(option: str, drops: bool = False) -> str:
    """The pass with options, and perhaps what runs next."""
    return (f"{NAME}{{{option}}}" if option else NAME) + (DROP if drops else "")


LOCAL = Campaign(
    tuple(FAMILIES),
    lambda family, seed, pipeline, reference: local_input(family, seed, reference),
    _pipelines,
    lambda text, pipeline, found: listed_reason(found.details) if found.verdict is Verdict.DIFFERENT else None,
    frozenset(Verdict) - {Verdict.DIFFERENT},
)
"""Local programs of random modules."""
