"""Checks the devices that a user gives."""

from __future__ import annotations

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

    >>> checked_devices(jax.devices()) == tuple(jax.devices())
    True
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
