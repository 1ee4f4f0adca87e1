"""Shardy in Python: how is each tensor of my program sharded, and why?

    import pyshardy
    module = pyshardy.load(jax.jit(step, in_shardings=...).lower(*args))
    result = pyshardy.propagate(module)

Importing this package loads neither jax nor jaxlib; the first use of `load` or `Module` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_EXPORTS = {
    "AxisRef": "core.axes",
    "DimSharding": "core.sharding",
    "Mesh": "core.mesh",
    "Module": "ir.module",
    "Partition": "partitioning",
    "PartitionOptions": "passes.partitioning.partition_options",
    "PropagateOptions": "propagation.options",
    "PartitionSpec": "core.spec",
    "Propagation": "api",
    "ReductionKind": "core.sharding",
    "Rule": "rules.rule",
    "ShardyError": "errors",
    "TensorSharding": "core.sharding",
    "annotate": "frontend.annotate",
    "clear_caches": "core.intern",
    "connect": "runtime.distributed",
    "constrain": "frontend.jax_ops",
    "from_gspmd": "core.gspmd",
    "from_torch": "core.placements",
    "jit": "jitted",
    "load": "api",
    "partition": "partitioning",
    "propagate": "api",
    "propagation_barrier": "frontend.jax_ops",
    "register_rule": "rules.user_rules",
    "run": "partitioning",
    "run_pipeline": "passes.pipeline",
    "shard_alike": "frontend.jax_ops",
    "to_gspmd": "core.gspmd",
    "to_torch": "core.placements",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'pyshardy' has no attribute {name!r}")
    value = getattr(import_module(f"pyshardy.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
