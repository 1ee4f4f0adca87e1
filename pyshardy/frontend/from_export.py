"""Loads results of `jax.export`: objects, their serialized form, and the portable StableHLO inside."""

from __future__ import annotations

from typing import Any

from pyshardy.ir.hlo import is_portable

_MAGIC = b"ML\xefR"
_SIZE = 4
"""The number of bytes of the length that precedes a byte vector in the serialized form."""


def is_exported(source: Any) -> bool:
    """Whether this is a `jax.export.Exported`. The check does not import JAX."""
    return hasattr(source, "mlir_module_serialized") and hasattr(source, "in_avals")


def is_lowered(source: Any) -> bool:
    """Whether this is a `jax.stages.Lowered`, or a wrapper of one. The check does not import JAX."""
    return hasattr(source, "compiler_ir") or _is_stage(source, "lowered")


def is_traced(source: Any) -> bool:
    """Whether this is a `jax.stages.Traced`, or a wrapper of one. The check does not import JAX."""
    return (hasattr(source, "jaxpr") and hasattr(source, "lower")) or _is_stage(source, "traced")


def _is_stage(source: Any, name: str) -> bool:
    return hasattr(source, name) and hasattr(source, "in_tree" if name == "traced" else "compile")


def artifact_in(content: bytes) -> bytes | None:
    """The portable artifact inside the bytes of `Exported.serialize()`; None if there is none.

    Its length precedes it, so neither JAX nor flatbuffers is needed to find it.
    """
    start = content.find(_MAGIC)
    while start >= 0:
        size = int.from_bytes(content[max(start - _SIZE, 0) : start], "little")
        found = content[start : start + size]
        if size == len(found) and is_portable(found):
            return found
        start = content.find(_MAGIC, start + 1)
    return None
