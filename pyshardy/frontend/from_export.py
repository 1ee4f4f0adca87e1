"""Modules from what `jax.export` makes: objects, their serialized form, and the StableHLO inside, in portable form."""

from __future__ import annotations

from typing import Any

from pyshardy.ir.hlo import is_portable

_MAGIC = b"ML\xefR"
_SIZE = 4
"""How many bytes hold the length of a list of bytes, in front of it, in the serialized form."""


def is_exported(source: Any) -> bool:
    """Whether this is a `jax.export.Exported`; jax is not imported to find out."""
    return hasattr(source, "mlir_module_serialized") and hasattr(source, "in_avals")


def is_lowered(source: Any) -> bool:
    """Whether this is a `jax.stages.Lowered`, or what a wrapper of `jax.jit` makes of one; jax is not imported."""
    return hasattr(source, "compiler_ir") or _is_stage(source, "lowered")


def is_traced(source: Any) -> bool:
    """Whether this is a `jax.stages.Traced`, or what a wrapper of `jax.jit` makes of one; jax is not imported."""
    return (hasattr(source, "jaxpr") and hasattr(source, "lower")) or _is_stage(source, "traced")


def _is_stage(source: Any, name: str) -> bool:
    return hasattr(source, name) and hasattr(source, "in_tree" if name == "traced" else "compile")


def artifact_in(content: bytes) -> bytes | None:
    """The portable artifact inside what `Exported.serialize()` gives; None if there is none.

    It stands there with its length in front, so that neither jax nor flatbuffers is needed to find it.
    """
    start = content.find(_MAGIC)
    while start >= 0:
        size = int.from_bytes(content[max(start - _SIZE, 0) : start], "little")
        found = content[start : start + size]
        if size == len(found) and is_portable(found):
            return found
        start = content.find(_MAGIC, start + 1)
    return None
