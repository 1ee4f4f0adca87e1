"""Finds the compilers that are installed, and their versions."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pyshardy.errors import UnsupportedVersionError, UsageError

_CUDA = ("xla_cuda13", "xla_cuda12")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed compiler.

    Attributes:
        platform: "tpu", "cuda" or "cpu".
        label: Its name and version, such as "libtpu 0.0.52".
        library: The path of its library; empty for CPUs, where it is part of jaxlib.
    """

    platform: str
    label: str
    library: str


def find_plugin(platform: str) -> Plugin:
    """The compiler for a platform.

    Raises:
        UsageError: It is not installed.
        UnsupportedVersionError: It does not fit jaxlib's version.

    >>> find_plugin("cpu").label.split()[0]
    'XLA'
    """
    jaxlib = version("jaxlib")
    if platform == "cpu":
        return Plugin("cpu", f"XLA for CPUs (jaxlib {jaxlib})", "")
    found = _tpu() if platform == "tpu" else _cuda(jaxlib)
    if found is None:
        extra = {"tpu": "tpu", "cuda": "cuda"}[platform]
        name = {"tpu": "TPUs (libtpu)", "cuda": "GPUs (the CUDA plugin)"}[platform]
        raise UsageError(
            "asking a compiler",
            got=f"no compiler for {name} beside {Path(sys.executable).name}",
            needed="the package of that compiler; a device is not needed",
            hint=f"pip install 'pyshardy[{extra}]'",
        )
    return found


def is_installed(platform: str) -> bool:
    """Whether the compiler for a platform is installed.

    >>> is_installed("cpu")
    True
    """
    try:
        find_plugin(platform)
    except (UsageError, UnsupportedVersionError):
        return False
    return True


def _tpu() -> Plugin | None:
    spec = find_spec("libtpu")
    if spec is None or spec.origin is None:
        return None
    library = Path(spec.origin).parent / "libtpu.so"
    return Plugin("tpu", f"libtpu {version('libtpu')}", str(library)) if library.is_file() else None


def _cuda(jaxlib: str) -> Plugin | None:
    spec = find_spec("jax_plugins")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in _CUDA:
            library = Path(folder) / name / "xla_cuda_plugin.so"
            package = f"jax-{name.removeprefix('xla_')}-pjrt"
            if library.is_file():
                found = _version(package)
                if found is not None and _release(found) != _release(jaxlib):
                    raise UnsupportedVersionError(
                        "asking a compiler",
                        got=f"{package} {found} beside jaxlib {jaxlib}",
                        needed="both of one version",
                        hint=f"pip install --no-deps {package}=={jaxlib}",
                    )
                return Plugin("cuda", f"XLA for GPUs ({package} {found or 'of unknown version'})", str(library))
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(text: str) -> tuple[str, ...]:
    """The first three numbers of a version.

    >>> _release("0.12.0.1")
    ('0', '12', '0')
    """
    return tuple(re.findall(r"\d+", text)[:3])
