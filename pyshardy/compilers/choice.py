"""Chooses the compiler of the platform that a program was lowered for, and says whose answer a reader sees."""

from __future__ import annotations

from math import prod

from pyshardy.compilers.plugins import is_installed
from pyshardy.compilers.target import find_target, with_chip
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes

_EXTRAS = {"tpu": "tpu", "cuda": "cuda"}
"""The extra of the package that installs the compiler of a platform."""
_DEVICES = {"tpu": "TPU", "cuda": "GPU", "rocm": "GPU"}


def compiler_of(module: Module, chip: str = "") -> str:
    """The name of the compiler of the platform that a module was lowered for; empty if it cannot be asked.

    Args:
        module: The module.
        chip: The chip that the user named, if any; it counts if it is of that platform.
    """
    if getattr(module.origin, "partitioners", None):  # Python functions, which a compiler cannot call
        return ""
    return compiler_for(_platform(module), _devices(module), chip)


def stand_in_of(module: Module) -> str:
    """A sentence on whose shardings are shown without a compiler, and how to ask it; empty if none is needed."""
    return stand_in(_platform(module), _devices(module))


def _platform(module: Module) -> str:
    return getattr(module.origin, "platform", None) or ""


def _devices(module: Module) -> int:
    return max((prod(size for _, size in mesh.axes) for mesh in module_meshes(module.root).values()), default=0)


def compiler_for(platform: str, devices: int, chip: str = "") -> str:
    """The name of the compiler of a platform, if it is installed and has a topology for the devices; else empty.

    A program for one device is not partitioned, so there is nothing to ask.

    Args:
        platform: The platform that the program was lowered for, such as "tpu".
        devices: The number of devices of its mesh.
        chip: The chip that the user named, if any; it counts if it is of that platform.

    >>> compiler_for("cpu", 8), compiler_for("tpu", 1)
    ('', '')
    """
    if platform not in _EXTRAS or devices < 2 or not is_installed(platform):
        return ""
    name = with_chip(platform, chip)
    try:
        find_target(name, devices)
    except UsageError:
        return ""
    return name


def stand_in(platform: str, devices: int) -> str:
    """Whose shardings a program has without a compiler, and how to ask it; empty for CPUs and for one device.

    >>> stand_in("rocm", 8)
    'as XLA for CPUs; what it does for your GPU may differ'
    >>> stand_in("cpu", 8)
    ''
    """
    if platform not in _DEVICES or devices < 2:
        return ""
    device, name = _DEVICES[platform], compiler_for(platform, devices)
    if name:
        return f"as XLA for CPUs; for your {device}: --compiler {name}"
    if platform in _EXTRAS and not is_installed(platform):
        return f"as XLA for CPUs; for your {device}: pip install 'pyshardy[{_EXTRAS[platform]}]'"
    return f"as XLA for CPUs; what it does for your {device} may differ"
