"""The collectives of a program of one device."""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.core.mesh import Mesh
from pyshardy.costing.traffic import Traffic
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.module import Module
from pyshardy.ir.traffic import collectives_of


def traffic_by_compiler(module: Module, meshes: Mapping[str, Mesh]) -> Traffic:
    """The collectives of a program that a compiler partitioned; it names the op that it was at."""
    return Traffic(tuple(collectives_of(module.root, dict(meshes), module.name, CompilerCauses(module.root))))
