"""The engines that run programs."""

from __future__ import annotations

from enum import Enum

from pyshardy.core.options import enum_value


class Engine(Enum):
    """Runs a program: the per-device program on JAX's devices, XLA's own partitioner, or an interpreter."""

    LOCAL = "local"
    XLA = "xla"
    INTERPRETER = "interpreter"


def as_engine(engine: Engine | str | None, default: Engine) -> Engine:
    """An engine by its name; raises `UsageError` for an unknown name."""
    return default if engine is None else enum_value(Engine, engine, "running a program", "the engine ")
