"""The corpus of JAX programs as module text, and the examples as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from programs import Program


@cache
def module_text(program: Program, *, platform: str | None = None, debug_info: bool = False) -> str:
    """The StableHLO text that JAX lowers the program to, once per process.

    Args:
        program: An entry of `programs.PROGRAMS`.
        platform: The platform to lower for, such as "tpu"; by default the one that runs.
        debug_info: Whether to print source locations.
    """
    return program.lower(platform=platform).as_text(debug_info=debug_info)


@cache
def load_example(name: str) -> ModuleType:
    """A file of `pyshardy/examples/`, imported without putting that folder on the path."""
    full_name = f"examples.{name}"
    path = Path(__file__).parents[2] / "pyshardy" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(full_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = sys.modules[full_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
