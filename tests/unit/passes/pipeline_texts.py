"""The words of textual pipelines, for tests."""

from __future__ import annotations

import pytest

from pyshardy.passes.base import Pass
from pyshardy.passes.options import format_options
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the pipelines of older versions have other passes in another order"
)
DEDUP = "dedup-functions-fully=true"
IMPORT = [
    "symbol-dce",
    "sdy-lift-inlined-meshes",
    "sdy-remove-size-one-axes",
    "sdy-propagate-sharding-from-func-to-call",
    "sdy-constant-or-scalar-splitter",
    "symbol-dce",
    "sdy-manual-axes-cleanup",
    "sdy-add-data-flow-edges",
]


STAGES = [
    "unspecified",
    "resolve-permutation-factors",
    "reshard-to-collectives",
    "optimize-collectives",
    "pad-for-divisibility",
    "resolve-single-device-sharding",
    "convert-global-to-local",
]
LAST_STAGE = f"partitioner-stage={STAGES[-1]}"
EXPORT_OPTIONS = [
    "replica-count",
    "partition-count",
    "dump-directory",
    "avoid-export-for-partitioning",
    "enable-insert-explicit-collectives",
    "remove-all-gather-reduce-scatter-for-cmv1",
    "mark-partial-result-with-unreduced-axes",
    "partitioner-stage",
    "enable-per-instruction-partitioning",
    "per-instruction-partitioning-filter",
    "rng-bit-generator-unsafe",
    "keep-sharding-rules",
    "dump-sharding-origins",
    "dump-propagation-edges",
    "avoid-reshards-on-calls",
    "update-non-divisible-input-output-shardings",
    "inline-meshes",
]


def written(passes: list[Pass]) -> list[str]:
    """Passes as text, with the options that are not the default."""
    return [pass_.name + (f"{{{format_options(pass_)}}}" if format_options(pass_) else "") for pass_ in passes]
