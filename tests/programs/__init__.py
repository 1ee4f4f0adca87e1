"""Real JAX programs of many kinds, for tests: `PROGRAMS` by name, each with `lower`, `build` and `concrete_args`.

>>> "mlp_training" in PROGRAMS
True
"""

from __future__ import annotations

from . import arrays, control, libraries, manual, meshes, randomness, routing, sequences, training, vision
from .base import Built, Input, Program

__all__ = ["PROGRAMS", "Built", "Input", "Program"]

MODULES = (training, vision, sequences, routing, control, arrays, randomness, manual, meshes, libraries)

PROGRAMS: dict[str, Program] = {
    value.name: value for module in MODULES for value in vars(module).values() if isinstance(value, Program)
}
