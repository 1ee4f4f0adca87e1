"""The steps of `sdy-export-pipeline`, which also end the propagation pipelines.

Source: docs/semantics/export.md#steps
Source: docs/semantics/export.md#what-partitions
"""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.passes.base import Pass
from pyshardy.passes.common.save_module import Dump
from pyshardy.passes.export_options import ExportOptions, PartitionerStage
from pyshardy.passes.table import pass_of

PipelineStep = Pass | Dump
"""A pass, or a point where the module is written."""


def export_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    """The steps in order."""
    yield from closing_steps(options)
    yield from steps_after_closing(options)


def steps_after_closing(options: ExportOptions) -> Iterator[PipelineStep]:
    """The steps after those that make shardings final."""
    yield Dump("after_propagation")
    if not options.avoid_export_for_partitioning:
        yield from _partitioner_steps(options)
    yield from last_steps(options)


def closing_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    """The steps that make shardings final; after them, inputs, outputs and meshes are those of the whole program."""
    yield pass_of("sdy-constant-or-scalar-merger")
    yield pass_of(
        "sdy-sink-data-flow-edges",
        sink_debug_sharding_origins=options.dump_sharding_origins,
        sink_debug_propagation_edge_sharding=options.dump_propagation_edges,
    )
    if not options.avoid_export_for_partitioning:
        yield pass_of("sdy-remove-sharding-groups")
        yield pass_of("sdy-sharding-constraint-to-reshard")
    if options.update_non_divisible_input_output_shardings:
        yield pass_of("sdy-update-non-divisible-input-output-shardings")
        yield pass_of("sdy-remove-sub-axes-in-input-output-shardings")
    yield pass_of("sdy-close-shardings")


def last_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    """The steps that remove the attributes that only propagation and partitioning need."""
    if options.dump_sharding_origins or options.dump_propagation_edges:
        yield pass_of("sdy-remove-propagation-debug-info")
    if not options.keep_sharding_rules:
        yield pass_of("sdy-drop-sharding-rules")
    if not options.avoid_export_for_partitioning and options.inline_meshes:
        yield pass_of("sdy-inline-meshes")


def clean_reshards() -> Pass:
    """The pass that removes reshards to the sharding that a tensor has already."""
    return pass_of("canonicalize", enable_patterns="sdy-reshard", top_down=False)


def clean_collectives() -> Pass:
    """The pass that merges and removes collectives."""
    return pass_of("canonicalize", enable_patterns="sdy-collective", top_down=False)


def _partitioner_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    has_stage = options.has_stage
    yield pass_of("sdy-verify-unreduced-axes")
    yield pass_of(
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
        yield clean_reshards()
        yield pass_of("sdy-reshard-to-collectives")
        yield pass_of("sdy-optimize-collectives")
    yield clean_collectives()
    if (
        options.enable_insert_explicit_collectives
        and options.remove_all_gather_reduce_scatter_for_cmv1
        and not has_stage
    ):
        yield pass_of("sdy-remove-all-gather-reduce-scatter-for-cmv1")
    yield Dump("after_partitioner_passes")


def _per_instruction_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    yield Dump("before_per_instruction_partitioning")
    yield pass_of(
        "sdy-per-instruction-partitioning",
        enable_halo_exchange=True,
        filter=options.per_instruction_partitioning_filter,
        partition_count=options.partition_count,
        replica_count=options.replica_count,
        rng_bit_generator_unsafe=options.rng_bit_generator_unsafe,
    )
    yield Dump("after_per_instruction_partitioning")


def _stage_steps(options: ExportOptions) -> Iterator[PipelineStep]:
    reaches = options.partitioner_stage.reaches
    counts = {"partition_count": options.partition_count, "replica_count": options.replica_count}
    yield Dump("after_explicit_reshards")
    yield clean_reshards()
    yield pass_of(
        "sdy-resolve-permutation-factors",
        enable_halo_exchange=True,
        **counts,
        rng_bit_generator_unsafe=options.rng_bit_generator_unsafe,
    )
    if reaches(PartitionerStage.RESHARD_TO_COLLECTIVES):
        yield pass_of("sdy-reshard-to-collectives")
    if reaches(PartitionerStage.OPTIMIZE_COLLECTIVES):
        yield pass_of("sdy-optimize-collectives")
        yield clean_collectives()
    if reaches(PartitionerStage.PAD_FOR_DIVISIBILITY):
        yield pass_of("sdy-pad-for-divisibility")
    if reaches(PartitionerStage.RESOLVE_SINGLE_DEVICE_SHARDING):
        yield pass_of("sdy-resolve-single-device-sharding", **counts)
    if reaches(PartitionerStage.CONVERT_GLOBAL_TO_LOCAL):
        yield pass_of(
            "sdy-convert-global-to-local",
            combine_multi_dimension_reduce_scatter=False,
            enable_rgv3=True,
            per_dim_all_gather=False,
            **counts,
        )
        yield pass_of("sdy-drop-sharding-and-mesh", keep_module_sharding_metadata=True)
