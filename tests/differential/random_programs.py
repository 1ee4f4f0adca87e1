"""Random StableHLO modules with random shardings, valid by construction, from a seed.

Programs are made op by op from values already there; everything is `f32` but predicates and indices.
"""

from __future__ import annotations

from random import Random

from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_symbol

from .random_regions import ProgramWriter
from .random_shardings import random_mesh
from .random_writer import SIZES, Features, tensor

__all__ = ["Features", "random_program"]

DEFAULT_FEATURES = Features()


def random_program(seed: int, features: Features = DEFAULT_FEATURES) -> str:
    """The text of a random module."""
    random = Random(seed)
    meshes = {f"m{index}": random_mesh(random) for index in range(features.meshes)}
    if features.meshes > 1 and random.random() < 0.5:
        meshes["m1"] = Mesh(meshes["m0"].axes, reversed(range(meshes["m0"].size)))
    writer = ProgramWriter(random, features, meshes, [])
    writer.values = [
        (writer.fresh(), tuple(random.choice(SIZES) for _ in range(random.randint(1, 3))))
        for _ in range(random.randint(2, 4))
    ]
    args = list(writer.values)
    writer.ops(features.ops)
    returned = [writer.pick() for _ in range(random.randint(1, 3))]
    arguments = ", ".join(f"{name}: {tensor(shape)}{writer.attribute(shape, 0.7)}" for name, shape in args)
    results = ", ".join(f"{tensor(shape)}{writer.attribute(shape, 0.3)}" for _, shape in returned)
    lines = [f"sdy.mesh {format_symbol(name)} = {mesh}" for name, mesh in meshes.items()]
    lines += [f"func.func @main({arguments}) -> ({results}) {{", *writer.lines]
    lines += [f"  return {', '.join(name for name, _ in returned)} : {', '.join(tensor(s) for _, s in returned)}", "}"]
    return "\n".join([*lines, *writer.functions]) + "\n"
