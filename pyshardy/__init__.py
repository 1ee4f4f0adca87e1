"""Shardy in Python: how is each tensor of my program sharded, and why?

    import pyshardy
    module = pyshardy.load(jax.jit(step, in_shardings=...).lower(*args))
    result = pyshardy.propagate(module)

Importing this package loads neither jax nor jaxlib; the first use of `load` or `Module` does.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # as jax does, which may be imported later than XLA's library

__version__ = "0.1.0"

_EXPORTS = {
    "AxisRef": "core.axes",
    "CollectiveModel": "costing.collectives",
    "Cost": "results.cost",
    "Diagnosis": "report.diagnosis",
    "Diagnostic": "ir.diagnostics",
    "Diagnostics": "ir.diagnostics",
    "Difference": "report.difference",
    "DimSharding": "core.sharding",
    "Drawing": "explain.draw",
    "Edit": "results.edit",
    "Engine": "runtime.engine",
    "Estimate": "costing.estimate",
    "FactorKind": "rules.rule",
    "Finding": "report.diagnosis",
    "Hardware": "costing.hardware",
    "InvalidModuleError": "errors",
    "InvalidRuleError": "errors",
    "InvalidShardingError": "errors",
    "KindTotal": "costing.traffic",
    "Mesh": "core.mesh",
    "Module": "ir.module",
    "NotationError": "errors",
    "OpSpec": "rules.opspec",
    "Partition": "results.partition",
    "PartitionOptions": "passes.partition_options",
    "PartitionSpec": "core.spec",
    "PassError": "ir.diagnostics",
    "Plan": "results.plan",
    "PlanDifference": "report.plan_difference",
    "PropagateOptions": "propagation.options",
    "Propagation": "results.propagation",
    "ReductionKind": "core.sharding",
    "Rule": "rules.rule",
    "RuleNotationError": "errors",
    "SearchTask": "searching.autopartition.registry",
    "Severity": "ir.diagnostics",
    "ShardyError": "errors",
    "StrategyOption": "propagation.options",
    "TensorSharding": "core.sharding",
    "UnsupportedVersionError": "errors",
    "UsageError": "errors",
    "View": "propagation.options",
    "Budgets": "report.budgets",
    "Lock": "report.lock",
    "LockDifference": "report.lock_difference",
    "annotate": "frontend.annotate",
    "check": "api.lock",
    "clear_caches": "core.intern",
    "Confirmation": "report.confirmation",
    "compiled_collectives": "api.run",
    "confirm": "api.confirm",
    "constrain": "frontend.jax_ops",
    "cost": "api.cost",
    "diff": "api.diff",
    "doctor": "checkup.doctor",
    "draw": "explain.draw",
    "from_gspmd": "core.gspmd",
    "from_torch": "core.placements",
    "initialize_distributed": "runtime.distributed",
    "jit": "api.jit",
    "load": "api.load",
    "load_file": "api.load",
    "load_lock": "report.lock_files",
    "load_plan": "results.plan",
    "load_text": "api.load",
    "local_shape": "core.boxes",
    "lock": "api.lock",
    "parse_mesh": "core.notation",
    "parse_sharding": "core.notation",
    "partition": "api.partition",
    "propagate": "api.propagate",
    "propagation_barrier": "frontend.jax_ops",
    "register_partitioner": "searching.autopartition.registry",
    "register_rule": "rules.user_rules",
    "rule_of": "rules.table",
    "run": "api.run",
    "run_pipeline": "passes.pipeline",
    "search": "api.search",
    "set_user_code": "source.places",
    "shard_alike": "frontend.jax_ops",
    "to_gspmd": "core.gspmd",
    "to_torch": "core.placements",
    "unregister_rule": "rules.user_rules",
    "write_lock": "api.lock",
}
_OLD_NAMES = {"connect": "initialize_distributed"}
"""Old names that still work."""

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    name = _OLD_NAMES.get(name, name)
    if name not in _EXPORTS:
        raise AttributeError(f"module 'pyshardy' has no attribute {name!r}")
    value = getattr(import_module(f"pyshardy.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """Make `%%sharding` known, for `%load_ext pyshardy`; IPython calls this."""
    from pyshardy.watching.notebook import register

    register(shell)
