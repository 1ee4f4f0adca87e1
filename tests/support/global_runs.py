"""Runs a propagated module with XLA's own partitioner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from pyshardy.frontend.interface import Interface
from pyshardy.ir.module import Module
from pyshardy.runtime.execute import GlobalExecutable


def run_on_devices(module: Module, arrays: Sequence[Any], devices: Sequence[Any] | None = None) -> list[jax.Array]:
    """The outputs of a propagated module, which XLA partitions; by default on the devices that it was lowered for."""
    devices = getattr(module.origin, "devices", None) if devices is None else devices
    return GlobalExecutable(module, Interface.of(module.root), devices)(arrays)
