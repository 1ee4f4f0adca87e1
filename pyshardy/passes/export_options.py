"""The options of `sdy-export-pipeline`, with the defaults of the reference.

Source: docs/semantics/export.md#options
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from pyshardy.core.record import Record
from pyshardy.errors import UsageError


class PartitionerStage(Enum):
    """How far a module is partitioned; each stage includes the earlier ones."""

    UNSPECIFIED = "unspecified"
    RESOLVE_PERMUTATION_FACTORS = "resolve-permutation-factors"
    RESHARD_TO_COLLECTIVES = "reshard-to-collectives"
    OPTIMIZE_COLLECTIVES = "optimize-collectives"
    PAD_FOR_DIVISIBILITY = "pad-for-divisibility"
    RESOLVE_SINGLE_DEVICE_SHARDING = "resolve-single-device-sharding"
    CONVERT_GLOBAL_TO_LOCAL = "convert-global-to-local"

    def reaches(self, other: PartitionerStage) -> bool:
        """Whether this stage includes the other."""
        stages = list(PartitionerStage)
        return stages.index(self) >= stages.index(other)


class ExportOptions(Record):
    """What the export pipeline does.

    Attributes:
        replica_count: The number of replicas.
        partition_count: The number of partitions.
        dump_directory: The directory for dumps of the module; if empty, there are no dumps.
        avoid_export_for_partitioning: Whether to stop after closing shardings, so that they can propagate again.
        enable_insert_explicit_collectives: Whether every op that needs reshards gets them, and reshards become
            collectives.
        remove_all_gather_reduce_scatter_for_cmv1: Whether to run the pass of that name after the collectives are
            inserted.
        mark_partial_result_with_unreduced_axes: Whether an op whose result is all-reduced is marked as unreduced.
        partitioner_stage: How far to partition; overrides the three options above.
        enable_per_instruction_partitioning: Whether to partition op by op; for the last stage only.
        per_instruction_partitioning_filter: Which ops to partition one by one.
        rng_bit_generator_unsafe: Whether random bits may depend on the sharding.
        keep_sharding_rules: Whether ops keep their sharding rules.
        dump_sharding_origins: Whether dumps contain the origins of shardings.
        dump_propagation_edges: Whether dumps contain the edges along which shardings propagated.
        avoid_reshards_on_calls: Has no effect.
        update_non_divisible_input_output_shardings: Whether to shorten shardings at function boundaries until they
            divide the dimensions.
        inline_meshes: Whether shardings contain their meshes at the end.
    """

    replica_count: int = 1
    partition_count: int = 1
    dump_directory: str = ""
    avoid_export_for_partitioning: bool = False
    enable_insert_explicit_collectives: bool = False
    remove_all_gather_reduce_scatter_for_cmv1: bool = False
    mark_partial_result_with_unreduced_axes: bool = False
    partitioner_stage: PartitionerStage = PartitionerStage.UNSPECIFIED
    enable_per_instruction_partitioning: bool = False
    per_instruction_partitioning_filter: str = ""
    rng_bit_generator_unsafe: bool = True
    keep_sharding_rules: bool = False
    dump_sharding_origins: bool = False
    dump_propagation_edges: bool = False
    avoid_reshards_on_calls: bool = False
    update_non_divisible_input_output_shardings: bool = True
    inline_meshes: bool = True

    name: ClassVar[str] = "sdy-export-pipeline"

    def __post_init__(self) -> None:
        last = PartitionerStage.CONVERT_GLOBAL_TO_LOCAL
        if self.enable_per_instruction_partitioning and self.partitioner_stage is not last:
            raise UsageError(
                f"reading the options of {self.name}",
                got=f"enable-per-instruction-partitioning with partitioner-stage={self.partitioner_stage.value}",
                needed=f"partitioner-stage={last.value}",
            )

    @property
    def has_stage(self) -> bool:
        """Whether a stage is set."""
        return self.partitioner_stage is not PartitionerStage.UNSPECIFIED
