"""The devices that a program runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from pyshardy.core.text import named_type
from pyshardy.errors import UsageError

_DOING = "choosing the devices of a program"
_NEEDED = "devices of JAX, such as jax.devices()"


def checked_devices(devices: Any) -> tuple[Any, ...]:
    """The devices that a user gives, in order: as a list, an array of devices or a mesh of JAX.

    Raises:
        UsageError: An entry is not a device, or a device appears twice.
    """
    if isinstance(devices, jax.sharding.Mesh):
        devices = devices.devices
    try:
        found = tuple(getattr(devices, "flat", devices))
    except TypeError as error:
        raise UsageError(_DOING, got=named_type(devices), needed=_NEEDED) from error
    for device in found:
        if not isinstance(device, jax.Device):
            raise UsageError(_DOING, got=f"{named_type(device)} among the devices", needed=_NEEDED)
    if len(set(found)) < len(found):
        twice = next(device for index, device in enumerate(found) if device in found[:index])
        raise UsageError(_DOING, got=f"the device {twice} twice", needed="every device once")
    return found


def devices_in_memory(devices: Sequence[Any] | None, count: int) -> int:
    """How many of the first devices are virtual devices of this process, which share its memory."""
    available = list(jax.devices() if devices is None else devices)[:count]
    return sum(device.platform == "cpu" and device.process_index == jax.process_index() for device in available)
