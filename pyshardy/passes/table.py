"""The passes by name, in the order of a pipeline. Their modules are loaded on first use."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from pyshardy.core.intern import register_cache
from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError
from pyshardy.passes.base import Pass

PASSES: dict[str, str] = {
    "symbol-dce": "common.symbol_dce:SymbolDce",
    "pyshardy-flatten-tuples": "importing.flatten_tuples:FlattenTuples",
    "pyshardy-import-frontend-attributes": "importing.import_frontend_attributes:ImportFrontendAttributes",
    "pyshardy-import-hlo-shardings": "importing.import_hlo_shardings:ImportHloShardings",
    "pyshardy-import-manual-computations": "importing.import_manual_computations:ImportManualComputations",
    "pyshardy-import-spmd-regions": "importing.import_spmd_regions:ImportSpmdRegions",
    "pyshardy-import-custom-calls": "importing.import_custom_calls:ImportCustomCalls",
    "pyshardy-add-hlo-rules": "importing.add_hlo_rules:AddHloRules",
    "pyshardy-tell-copies-apart": "importing.tell_copies_apart:TellCopiesApart",
    "pyshardy-dedup-meshes": "xla.dedup_meshes:DedupMeshes",
    "pyshardy-import-result-sharding": "xla.import_result_sharding:ImportResultSharding",
    "pyshardy-drop-op-shardings": "xla.drop_op_shardings:DropOpShardings",
    "pyshardy-legalize-chlo": "xla.legalize_chlo:LegalizeChlo",
    "pyshardy-compare-places": "xla.compare_places:ComparePlaces",
    "pyshardy-simplify": "xla.simplify:Simplify",
    "pyshardy-sink-constants": "xla.sink_constants:SinkConstants",
    "pyshardy-expand": "xla.expand:Expand",
    "pyshardy-inline-and-order": "xla.inline_and_order:InlineAndOrder",
    "pyshardy-open-captured": "xla.open_captured:OpenCaptured",
    "pyshardy-restore-chlo": "xla.restore_chlo:RestoreChlo",
    "sdy-lift-inlined-meshes": "importing.lift_inlined_meshes:LiftInlinedMeshes",
    "sdy-remove-size-one-axes": "importing.remove_size_one_axes:RemoveSizeOneAxes",
    "sdy-propagate-sharding-from-func-to-call": (
        "importing.propagate_sharding_from_func_to_call:PropagateShardingFromFuncToCall"
    ),
    "sdy-constant-or-scalar-splitter": "importing.constant_or_scalar_splitter:ConstantOrScalarSplitter",
    "sdy-explicit-gather-scatter-batching": (
        "importing.explicit_gather_scatter_batching:ExplicitGatherScatterBatching"
    ),
    "sdy-manual-axes-cleanup": "importing.manual_axes_cleanup:ManualAxesCleanup",
    "sdy-add-data-flow-edges": "importing.add_data_flow_edges:AddDataFlowEdges",
    "sdy-flatten-call-graph": "importing.flatten_call_graph:FlattenCallGraph",
    "sdy-add-func-data-flow-edges": "importing.add_func_data_flow_edges:AddFuncDataFlowEdges",
    "sdy-apply-sharding-constraints": "importing.apply_sharding_constraints:ApplyShardingConstraints",
    "sdy-sharding-group-import": "importing.sharding_group_import:ShardingGroupImport",
    "sdy-import-func-calls": "importing.import_func_calls:ImportFuncCalls",
    "sdy-pre-order-funcs": "importing.pre_order_funcs:PreOrderFuncs",
    "pyshardy-auto-partition": "pyshardy.searching.auto_partition:AutoPartition",
    "sdy-populate-op-sharding-rules": "propagating.populate_op_sharding_rules:PopulateOpShardingRules",
    "sdy-basic-propagate": "propagating.basic_propagate:BasicPropagate",
    "sdy-aggressive-propagate": "propagating.aggressive_propagate:AggressivePropagate",
    "sdy-op-priority-propagate": "propagating.op_priority_propagate:OpPriorityPropagate",
    "sdy-user-priority-propagate": "propagating.user_priority_propagate:UserPriorityPropagate",
    "sdy-export-named-computations": "exporting.export_named_computations:ExportNamedComputations",
    "sdy-propagate-to-func-results": "exporting.propagate_to_func_results:PropagateToFuncResults",
    "sdy-unflatten-call-graph": "exporting.unflatten_call_graph:UnflattenCallGraph",
    "sdy-insert-func-call-reshards": "exporting.insert_func_call_reshards:InsertFuncCallReshards",
    "sdy-constant-or-scalar-merger": "exporting.constant_or_scalar_merger:ConstantOrScalarMerger",
    "sdy-sink-data-flow-edges": "exporting.sink_data_flow_edges:SinkDataFlowEdges",
    "sdy-sink-func-data-flow-edges": "exporting.sink_func_data_flow_edges:SinkFuncDataFlowEdges",
    "sdy-remove-sharding-groups": "exporting.remove_sharding_groups:RemoveShardingGroups",
    "sdy-sharding-constraint-to-reshard": "exporting.sharding_constraint_to_reshard:ShardingConstraintToReshard",
    "sdy-update-non-divisible-input-output-shardings": (
        "exporting.update_non_divisible_input_output_shardings:UpdateNonDivisibleInputOutputShardings"
    ),
    "sdy-remove-sub-axes-in-input-output-shardings": (
        "exporting.remove_sub_axes_in_input_output_shardings:RemoveSubAxesInInputOutputShardings"
    ),
    "sdy-close-shardings": "exporting.close_shardings:CloseShardings",
    "sdy-verify-unreduced-axes": "partitioning.verify_unreduced_axes:VerifyUnreducedAxes",
    "pyshardy-known-indices": "partitioning.known_indices:KnownIndices",
    "pyshardy-shard-pointwise": "partitioning.shard_pointwise:ShardPointwise",
    "pyshardy-resolve-sub-axes": "partitioning.resolve_sub_axes:ResolveSubAxes",
    "sdy-insert-explicit-reshards": "partitioning.insert_explicit_reshards:InsertExplicitReshards",
    "pyshardy-make-partitionable": "partitioning.make_partitionable:MakePartitionable",
    "pyshardy-share-reshards": "partitioning.share_reshards:ShareReshards",
    "pyshardy-gather-before": "partitioning.gather_before:GatherBefore",
    "pyshardy-exchange-shards": "partitioning.exchange_shards:ExchangeShards",
    "sdy-resolve-permutation-factors": "partitioning.resolve_permutation_factors:ResolvePermutationFactors",
    "sdy-reshard-to-collectives": "partitioning.reshard_to_collectives:ReshardToCollectives",
    "sdy-optimize-collectives": "partitioning.optimize_collectives:OptimizeCollectives",
    "sdy-remove-all-gather-reduce-scatter-for-cmv1": (
        "partitioning.remove_all_gather_reduce_scatter_for_cmv1:RemoveAllGatherReduceScatterForCmv1"
    ),
    "sdy-pad-for-divisibility": "partitioning.pad_for_divisibility:PadForDivisibility",
    "sdy-resolve-single-device-sharding": ("partitioning.resolve_single_device_sharding:ResolveSingleDeviceSharding"),
    "sdy-convert-global-to-local": "partitioning.convert_global_to_local:ConvertGlobalToLocal",
    "sdy-per-instruction-partitioning": "partitioning.per_instruction_partitioning:PerInstructionPartitioning",
    "canonicalize": "common.canonicalize:Canonicalize",
    "sdy-drop-sharding-and-mesh": "exporting.drop_sharding_and_mesh:DropShardingAndMesh",
    "sdy-drop-sharding-rules": "exporting.drop_sharding_rules:DropShardingRules",
    "sdy-remove-propagation-debug-info": "exporting.remove_propagation_debug_info:RemovePropagationDebugInfo",
    "sdy-inline-meshes": "exporting.inline_meshes:InlineMeshes",
}


@cache
def pass_class(name: str) -> type[Pass]:
    """The class of a pass.

    Raises:
        UsageError: There is no pass of this name.
    """
    if name not in PASSES:
        needed, hint = f"one of {', '.join(PASSES)}", did_you_mean(name, PASSES)
        raise UsageError("looking for a pass", got=f"'{name}'", needed=needed, hint=hint)
    module, class_name = PASSES[name].split(":")
    module = module if module.startswith("pyshardy.") else f"pyshardy.passes.{module}"
    found: type[Pass] = getattr(import_module(module), class_name)
    return found


@lru_cache(maxsize=256)
def pass_of(name: str, **options: Any) -> Pass:
    """A pass by its name, with the values of its options. Passes are immutable, so all runs may share one object.

    Raises:
        UsageError: There is no pass of this name.

    >>> pass_of("sdy-lift-inlined-meshes").name
    'sdy-lift-inlined-meshes'
    """
    return pass_class(name)(**options)


register_cache(pass_class.cache_clear)
register_cache(pass_of.cache_clear)
