"""The devices of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax


def devices_in_memory(devices: Sequence[Any] | None, count: int) -> int:
    """How many of the first devices are virtual devices of this process, which share its memory."""
    available = list(jax.devices() if devices is None else devices)[:count]
    return sum(device.platform == "cpu" and device.process_index == jax.process_index() for device in available)
