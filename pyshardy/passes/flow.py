"""The passes of `propagate` and `partition`, as objects: shared passes up to final shardings, then two endings.

After `sharding_stages`, tensors still have global shapes, and every tensor has its final sharding. One pipeline may
stop there and another continue from the same nodes: `propagation_ending` makes the module of Shardy's propagation
pipeline, `partition_ending` the program of one device.

Source: docs/semantics/export.md#steps
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from pyshardy.core.record import Record
from pyshardy.ir.functions import FROM_HLO
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.passes.common.save_module import Dump, SaveModule
from pyshardy.passes.export_options import ExportOptions
from pyshardy.passes.export_steps import (
    PipelineStep,
    clean_collectives,
    closing_steps,
    export_steps,
    last_steps,
    steps_after_closing,
)
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.table import pass_of
from pyshardy.propagation.options import PropagateOptions, View

_KEEPS_MESHES = ExportOptions(inline_meshes=False)
_FIRST_DUMP = 1
"""The number of the first dump of `propagate` and `partition`; compilers dump their input as number 0."""
_XLA_VIEW = (
    "symbol-dce", "sdy-lift-inlined-meshes", "pyshardy-dedup-meshes", "pyshardy-import-result-sharding",
    "pyshardy-drop-op-shardings", "pyshardy-legalize-chlo", "pyshardy-simplify", "pyshardy-sink-constants",
    "pyshardy-expand", "pyshardy-inline-and-order", "pyshardy-open-captured",
)  # fmt: skip
_SIMPLIFY = _XLA_VIEW.index("pyshardy-simplify")
_TPU_VIEW = (*_XLA_VIEW[:_SIMPLIFY], "pyshardy-compare-places", *_XLA_VIEW[_SIMPLIFY:])
_VIEWS = {View.XLA: _XLA_VIEW, View.TPU: _TPU_VIEW, View.HLO: ("pyshardy-inline-and-order",), View.STABLEHLO: ()}
_CONSTRAINTS = "sdy-apply-sharding-constraints"
_GROUPS = "sdy-sharding-group-import"
_BEFORE_CONSTRAINTS = ("sdy-flatten-call-graph", "symbol-dce", "sdy-add-func-data-flow-edges")
_AFTER_CONSTRAINTS = (
    "sdy-sink-func-data-flow-edges", _GROUPS, "sdy-import-func-calls", "symbol-dce", "sdy-pre-order-funcs",
)  # fmt: skip
_AFTER_CONSTRAINTS_DEDUP = (_GROUPS, "sdy-add-func-data-flow-edges", "sdy-pre-order-funcs")
_FINISH = ("sdy-export-named-computations", "sdy-propagate-to-func-results", "sdy-unflatten-call-graph")
_FINISH_DEDUP = ("sdy-propagate-to-func-results", "sdy-sink-func-data-flow-edges", "sdy-unflatten-call-graph")


class Stage(Record):
    """Passes that are timed together.

    Attributes:
        name: The name of the stage: "import", "propagate", "export", "partition".
        passes: The passes.
    """

    name: str
    passes: tuple[Pass, ...]


def for_module(options: PropagateOptions, root: Op) -> PropagateOptions:
    """The options with the view for a module. On a module that was HLO, XLA only has to inline calls."""
    if not options.view.is_of_jit or FROM_HLO not in root.attrs:
        return options
    return options.with_view(View.HLO if ops_named(root, ("func.call",)) else View.STABLEHLO)


def xla_view_steps() -> list[Pass]:
    """The passes that do what XLA does to a program before it calls Shardy."""
    return _named(_XLA_VIEW)


def import_steps(batching: bool = False) -> list[PipelineStep]:
    """The steps of the import pipeline.

    Args:
        batching: Whether to give gathers and scatters batching dimensions; the textual pipeline does not.
    """
    return [
        *_named(("symbol-dce", "sdy-lift-inlined-meshes", "sdy-remove-size-one-axes")),
        *_named(("sdy-propagate-sharding-from-func-to-call", "sdy-constant-or-scalar-splitter")),
        *_named(("sdy-explicit-gather-scatter-batching",) if batching else ()),
        *_named(("symbol-dce", "sdy-manual-axes-cleanup")),
        Dump("before_propagation"),
        pass_of("sdy-add-data-flow-edges"),
    ]


def dedup_import_steps() -> list[Pass]:
    """The end of the import pipeline if all calls of a function share one sharding of its body."""
    return _named((_CONSTRAINTS, _GROUPS))


def textual_propagation_steps(dedup: bool) -> list[PipelineStep]:
    """The steps of the propagation pipeline that has a name."""
    propagate = pass_of("sdy-user-priority-propagate", keep_sharding_rules=True)
    finish = _finish_steps(dedup)
    return [*import_steps(), *_prepare_steps(dedup), propagate, *finish, *export_steps(_KEEPS_MESHES)]


def sharding_stages(options: PropagateOptions, dump_directory: str = "") -> tuple[Stage, ...]:
    """The passes up to final shardings: "import", "propagate" and "export".

    With a directory for dumps, they write the module to `01.before_propagation.mlir`. If there are user priorities,
    they also write `02.propagation_after_user_priority_0.mlir` and so on.

    Args:
        options: How shardings propagate; the result of `for_module`.
        dump_directory: The directory; if empty, that of the options.
    """
    dedup = options.dedup_functions_fully
    importing: list[PipelineStep] = [
        *_named(("pyshardy-tell-copies-apart", *_VIEWS[options.view])),
        *import_steps(options.explicit_gather_scatter_batching),
    ]
    exporting: list[PipelineStep] = [*_finish_steps(dedup), *closing_steps(_closing(options))]
    dumped = passes_of(
        [*importing, *_prepare_steps(dedup, options.origins, options.edges)],
        dump_directory or options.dump_directory,
        _FIRST_DUMP,
    )
    return (
        Stage("import", tuple(dumped)),
        Stage("propagate", (_propagate_pass(options),)),
        Stage("export", tuple(passes_of(exporting))),
    )


def propagation_ending(options: PropagateOptions) -> list[Pass]:
    """The passes from final shardings to the result of propagation.

    With a directory for dumps, they write `02.after_propagation.mlir` and `03.after_partitioner_passes.mlir`.
    """
    steps = [*steps_after_closing(_KEEPS_MESHES), *_restore_steps(options)]
    return passes_of(steps, options.dump_directory, _FIRST_DUMP + 1)


def partition_ending(
    options: PropagateOptions, partition: PartitionOptions, follows: bool = False, has_debug_info: bool = False
) -> list[Pass]:
    """The passes from final shardings to the program of one device.

    With a directory for dumps, they write the module there from `02.after_propagation.mlir` on, after the dumps of
    `propagation_ending` if those exist.

    Args:
        options: How shardings were propagated.
        partition: How the program is partitioned.
        follows: Whether `propagation_ending` has dumped to the same folder.
        has_debug_info: Whether the program has origins and edges; without shardings, MLIR's verifier refuses them.
    """
    steps: list[PipelineStep] = [
        *([] if follows else [Dump("after_propagation")]),
        *([pass_of("sdy-remove-propagation-debug-info")] if has_debug_info else []),
        *_reshard_steps(partition),
        *_collective_steps(partition),
        *_local_steps(partition),
        Dump("after_partitioner_passes"),
        *last_steps(_KEEPS_MESHES),
        *_restore_steps(options),
    ]
    return passes_of(steps, partition.dump_directory, _FIRST_DUMP + (3 if follows else 1))


def _reshard_steps(partition: PartitionOptions) -> list[PipelineStep]:
    """The steps after which every op can run on shards, with reshards between ops that need different shardings."""
    return [
        *_named(("sdy-verify-unreduced-axes", "pyshardy-dedup-meshes", "pyshardy-known-indices")),
        pass_of("pyshardy-shard-pointwise"),
        pass_of("pyshardy-resolve-sub-axes"),
        *([pass_of("pyshardy-exchange-shards", before_reshards=True)] if partition.halo_exchange else []),
        pass_of(
            "sdy-insert-explicit-reshards",
            enable_full_version=True,
            mark_partial_result_with_unreduced_axes=True,
            name_causes=True,
        ),
        pass_of("pyshardy-make-partitionable", replicate=partition.replicate_unsupported),
        Dump("after_explicit_reshards"),
        pass_of("canonicalize", enable_patterns="pyshardy-reshard", top_down=False),
        pass_of("pyshardy-gather-before"),
    ]


def _collective_steps(partition: PartitionOptions) -> list[PipelineStep]:
    """The steps that turn reshards, and ops that need elements of other shards, into collectives."""
    return [
        *([pass_of("pyshardy-exchange-shards")] if partition.halo_exchange else []),
        pass_of(
            "sdy-resolve-permutation-factors",
            enable_halo_exchange=partition.halo_exchange,
            exchange_windows=True,
            rng_bit_generator_unsafe=partition.rng_bit_generator_unsafe,
            name_causes=True,
        ),
        *_named(("pyshardy-share-reshards", "sdy-reshard-to-collectives", "sdy-optimize-collectives")),
        clean_collectives(),
        pass_of("pyshardy-share-reshards"),
    ]


def _local_steps(partition: PartitionOptions) -> list[PipelineStep]:
    """The steps from whole tensors to shards."""
    return [
        *_named(("sdy-pad-for-divisibility", "sdy-resolve-single-device-sharding")),
        pass_of(
            "sdy-convert-global-to-local",
            combine_multi_dimension_reduce_scatter=False,
            enable_rgv3=partition.mesh_axes_groups is not False,
            rgv3_where_same=partition.mesh_axes_groups is None,
            per_dim_all_gather=False,
            name_causes=True,
        ),
        pass_of("sdy-drop-sharding-and-mesh", keep_module_sharding_metadata=False),
        clean_collectives(),
    ]


def propagation_passes(options: PropagateOptions) -> list[Pass]:
    """All passes of `propagate`: the propagation pipeline with options that its textual form lacks."""
    return [*_flat(sharding_stages(options)), *propagation_ending(options)]


def partition_passes(options: PropagateOptions, partition: PartitionOptions) -> list[Pass]:
    """All passes of `partition`, from a program on whole tensors to one per device."""
    return [*_flat(sharding_stages(options, partition.dump_directory)), *partition_ending(options, partition)]


def passes_of(steps: Iterable[PipelineStep], dump_directory: str = "", first_dump: int = 0) -> list[Pass]:
    """The passes of the steps. Dumps are numbered from `first_dump`; without a directory there are none."""
    numbers = count(first_dump)
    passes: list[Pass] = []
    for step in steps:
        if not isinstance(step, Dump):
            passes.append(step)
        elif dump_directory:
            passes.append(SaveModule(dump_directory, next(numbers), step.title))
    return passes


def _flat(stages: Iterable[Stage]) -> Iterator[Pass]:
    return (pass_ for stage in stages for pass_ in stage.passes)


def _named(names: Iterable[str]) -> list[Pass]:
    return [pass_of(name) for name in names]


def _prepare_steps(dedup: bool, origins: bool = False, edges: bool = False) -> list[Pass]:
    before, after = ((), _AFTER_CONSTRAINTS_DEDUP) if dedup else (_BEFORE_CONSTRAINTS, _AFTER_CONSTRAINTS)
    apply = pass_of(_CONSTRAINTS, debug_sharding_origins=origins, debug_propagation_edge_sharding=edges)
    return [*_named(before), apply, *_named(after)]


def _finish_steps(dedup: bool) -> list[Pass]:
    return _named((*(_FINISH_DEDUP if dedup else _FINISH), "symbol-dce", "sdy-insert-func-call-reshards"))


def _closing(options: PropagateOptions) -> ExportOptions:
    """The passes that end propagation. Debug attributes stay, because the caller has asked for them."""
    return ExportOptions(
        inline_meshes=False, dump_sharding_origins=options.origins, dump_propagation_edges=options.edges
    )


def _restore_steps(options: PropagateOptions) -> list[Pass]:
    """The steps that restore the ops that XLA's view has replaced."""
    return [] if options.view is View.STABLEHLO else [pass_of("pyshardy-restore-chlo")]


def _propagate_pass(options: PropagateOptions) -> Pass:
    return pass_of(
        "sdy-user-priority-propagate" if options.user_priorities else "sdy-op-priority-propagate",
        keep_sharding_rules=True,
        module_dump_directory=options.dump_directory,
        module_dump_index=_FIRST_DUMP + 1 if options.dump_directory else 0,
        conservative_propagation=options.conservative,
        trace=options.trace,
        debug_sharding_origins=options.origins,
        debug_propagation_edge_sharding=options.edges,
        propagation_strategy=options.strategy,
        run_op_priority_propagation=options.op_priorities,
    )
