"""Seconds of pyshardy and of the reference, taken in turn in one process.

What is counted is the processor's time, which waiting for other processes does not lengthen; both sides use one thread.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from statistics import median
from typing import Any

from jaxlib.mlir import ir, passmanager

from pyshardy.core.intern import clear_caches
from pyshardy.ir import op
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.program import build_program
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import partition_passes
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.passes.pipeline import run_on_root, run_passes, run_pipeline
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.propagation.options import PropagateOptions, View
from pyshardy.propagation.run import propagate_program

PIPELINE = "sdy-propagation-pipeline"
VIEW_PIPELINE = f"pyshardy-xla-view-pipeline,{PIPELINE},pyshardy-restore-chlo"
"""The same behind what XLA does before Shardy sees a program, which the reference's pipeline does not do."""
PROPAGATE = "sdy-user-priority-propagate"
PROPAGATE_KEEPING_RULES = f"{PROPAGATE}{{keep-sharding-rules=true}}"
IMPORT = "sdy-import-pipeline"
CHAIN = (
    f"{IMPORT},sdy-flatten-call-graph,symbol-dce,sdy-add-func-data-flow-edges,sdy-apply-sharding-constraints,"
    "func.func(sdy-sink-func-data-flow-edges),sdy-sharding-group-import,sdy-import-func-calls,symbol-dce,"
    f"sdy-pre-order-funcs,{PROPAGATE_KEEPING_RULES},sdy-export-named-computations,sdy-propagate-to-func-results,"
    "sdy-unflatten-call-graph,symbol-dce,sdy-insert-func-call-reshards,"
    "sdy-export-pipeline{partitioner-stage=convert-global-to-local inline-meshes=false}"
)
"""All passes of the reference from a program on whole tensors to one per device, in its own order."""

Seconds = tuple[float, float, float]
"""Of pyshardy, of the reference with MLIR's verifier after every pass, and of the reference without."""


def is_compiled() -> bool:
    """Whether the package runs with its compiled core."""
    return not str(op.__file__).endswith(".py")


def op_count(module: Module) -> int:
    """The number of ops of a module."""
    return sum(1 for _ in walk(module.root))


def seconds(action: Callable[[], Any]) -> float:
    """The time of an action, without that of freeing what it returns."""
    start = time.process_time()
    kept = action()
    end = time.process_time()
    del kept
    return end - start


def reference_seconds(module: Module, pipeline: str, verify: bool) -> float:
    """The time of the reference's passes over a copy of a module."""
    with module.context:
        copy = module.mlir.operation.clone(ip=False)
        passes = passmanager.PassManager.parse(f"builtin.module({pipeline})")
        passes.enable_verifier(verify)
        return seconds(lambda: passes.run(copy))


def is_in_reference(module: Module, pipeline: str) -> bool:
    """Whether the reference of this jaxlib has these passes and options."""
    with module.context:
        try:
            passmanager.PassManager.parse(f"builtin.module({pipeline})")
        except ValueError:
            return False
    return True


def our_seconds(module: Module, pipeline: str) -> float:
    """The time of reading a module, running passes and writing the result, with cold caches.

    What earlier runs left behind is collected before, as the reference frees its modules outside of its times.
    """
    module = cold(module)
    return seconds(lambda: run_pipeline(module, pipeline).mlir)


def cold(module: Module) -> Module:
    """The same MLIR module as if it had just been parsed, with all caches of the package empty."""
    clear_caches()
    gc.collect()
    return Module(module.context, AttrTable(module.attrs.loses_locations), mlir=module.mlir)


def chain_seconds(module: Module) -> float:
    """The same for all passes of `partition`."""
    module = cold(module)
    passes = partition_passes(PropagateOptions(view=View.STABLEHLO), PartitionOptions())
    return seconds(lambda: run_passes(module, passes).mlir)


def core_seconds(module: Module) -> float:
    """The time of propagation over the program of a module alone."""
    clear_caches()
    with module.context, pause_gc():
        program, _ = build_program(module.copy_root(), OpSpecReader())
        return seconds(lambda: propagate_program(program))


def in_turn(ours: Callable[[], float], module: Module, pipeline: str, repeat: int) -> Seconds:
    """The medians of both sides, one after the other, `repeat` times."""
    samples = [
        (ours(), reference_seconds(module, pipeline, True), reference_seconds(module, pipeline, False))
        for _ in range(repeat)
    ]
    return tuple(map(median, zip(*samples)))  # type: ignore[return-value]


def imported(module: Module) -> Module:
    """The module after the reference's import passes; its ops keep their locations, which text would not."""
    stream = BytesIO()
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(module.bytecode())
        passmanager.PassManager.parse(f"builtin.module({IMPORT})").run(copy.operation)
        copy.operation.write_bytecode(stream)
    return Module.parse(stream.getvalue())


def stages(module: Module, pipeline: str, repeat: int) -> dict[str, float]:
    """The median time of reading, of every pass and of writing; passes of one name are added up."""
    runs: list[dict[str, float]] = []
    for _ in range(repeat):
        found: dict[str, float] = {}
        module = cold(module)
        start = time.process_time()
        with pause_gc():
            root = module.copy_root()
            found["reading"] = time.process_time() - start
            _time_passes(module, root, parse_pipeline(pipeline), found)
            start = time.process_time()
            _ = module.with_root(root).mlir
            found["writing"] = time.process_time() - start
        runs.append(found)
    return {name: median(run[name] for run in runs) for name in runs[0]}


def _time_passes(module: Module, root: Op, passes: Iterable[Pass], found: dict[str, float]) -> None:
    last = time.process_time()

    def note(pass_: Pass, _: Op, __: float) -> None:
        nonlocal last
        now = time.process_time()
        found[pass_.name] = found.get(pass_.name, 0.0) + now - last
        last = now

    run_on_root(module, root, passes, after_pass=note)
