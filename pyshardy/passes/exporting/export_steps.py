"""The steps of `sdy-export-pipeline`, which also end the propagation pipeline.

Source: docs/semantics/export.md#steps
Source: docs/semantics/export.md#what-partitions
"""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.passes.common.save_module import Dump
from pyshardy.passes.exporting.export_options import ExportOptions, PartitionerStage
from pyshardy.passes.options import format_value

Step = str | Dump
"""Passes as text, or a place at which the module is written."""

_RESHARD = "canonicalize{enable-patterns=sdy-reshard top-down=false}"
_COLLECTIVE = "canonicalize{enable-patterns=sdy-collective top-down=false}"


def export_steps(options: ExportOptions) -> Iterator[Step]:
    """The steps in order."""
    ends_open = options.avoid_export_for_partitioning
    yield "sdy-constant-or-scalar-merger"
    yield _with(
        "sdy-sink-data-flow-edges",
        sink_debug_sharding_origins=options.dump_sharding_origins,
        sink_debug_propagation_edge_sharding=options.dump_propagation_edges,
    )
    if not ends_open:
        yield "sdy-remove-sharding-groups"
        yield "sdy-sharding-constraint-to-reshard"
    if options.update_non_divisible_input_output_shardings:
        yield "sdy-update-non-divisible-input-output-shardings"
        yield "sdy-remove-sub-axes-in-input-output-shardings"
    yield "sdy-close-shardings"
    yield Dump("after_propagation")
    if not ends_open:
        yield from _partitioner_steps(options)
    if options.dump_sharding_origins or options.dump_propagation_edges:
        yield "sdy-remove-propagation-debug-info"
    if not options.keep_sharding_rules:
        yield "sdy-drop-sharding-rules"
    if not ends_open and options.inline_meshes:
        yield "sdy-inline-meshes"


def _partitioner_steps(options: ExportOptions) -> Iterator[Step]:
    has_stage = options.has_stage
    yield "sdy-verify-unreduced-axes"
    yield _with(
        "sdy-insert-explicit-reshards",
        enable_full_version=has_stage or options.enable_insert_explicit_collectives,
        mark_partial_result_with_unreduced_axes=has_stage or options.mark_partial_result_with_unreduced_axes,
    )
    if options.enable_per_instruction_partitioning:
        yield from _per_instruction_steps(options)
    elif has_stage:
        yield from _stage_steps(options)
    elif options.enable_insert_explicit_collectives:
        yield Dump("after_explicit_reshards")
        yield _RESHARD
        yield "sdy-reshard-to-collectives"
        yield "sdy-optimize-collectives"
    yield _COLLECTIVE
    if (
        options.enable_insert_explicit_collectives
        and options.remove_all_gather_reduce_scatter_for_cmv1
        and not has_stage
    ):
        yield "sdy-remove-all-gather-reduce-scatter-for-cmv1"
    yield Dump("after_partitioner_passes")


def _per_instruction_steps(options: ExportOptions) -> Iterator[Step]:
    yield Dump("before_per_instruction_partitioning")
    yield _with(
        "sdy-per-instruction-partitioning",
        enable_halo_exchange=True,
        filter=options.per_instruction_partitioning_filter,
        partition_count=options.partition_count,
        replica_count=options.replica_count,
        rng_bit_generator_unsafe=options.rng_bit_generator_unsafe,
    )
    yield Dump("after_per_instruction_partitioning")


def _stage_steps(options: ExportOptions) -> Iterator[Step]:
    reaches = options.partitioner_stage.reaches
    counts = {"partition_count": options.partition_count, "replica_count": options.replica_count}
    yield Dump("after_explicit_reshards")
    yield _RESHARD
    yield _with(
        "sdy-resolve-permutation-factors",
        enable_halo_exchange=True,
        **counts,
        rng_bit_generator_unsafe=options.rng_bit_generator_unsafe,
    )
    if reaches(PartitionerStage.RESHARD_TO_COLLECTIVES):
        yield "sdy-reshard-to-collectives"
    if reaches(PartitionerStage.OPTIMIZE_COLLECTIVES):
        yield "sdy-optimize-collectives"
        yield _COLLECTIVE
    if reaches(PartitionerStage.PAD_FOR_DIVISIBILITY):
        yield "sdy-pad-for-divisibility"
    if reaches(PartitionerStage.RESOLVE_SINGLE_DEVICE_SHARDING):
        yield _with("sdy-resolve-single-device-sharding", **counts)
    if reaches(PartitionerStage.CONVERT_GLOBAL_TO_LOCAL):
        yield _with(
            "sdy-convert-global-to-local",
            combine_multi_dimension_reduce_scatter=False,
            enable_rgv3=True,
            per_dim_all_gather=False,
            **counts,
        )
        yield _with("sdy-drop-sharding-and-mesh", keep_module_sharding_metadata=True)


def _with(name: str, **options: bool | int | str) -> str:
    """A pass with options, as text."""
    values = " ".join(f"{option.replace('_', '-')}={format_value(value)}" for option, value in options.items())
    return f"{name}{{{values}}}"
