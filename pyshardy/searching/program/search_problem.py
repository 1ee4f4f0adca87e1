"""Makes the problem of a search from a module."""

from __future__ import annotations

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.ir.module import Module
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.program.search_program import build_problem, short_program


def problem_of(module: Module, topology: Topology, collectives: CollectiveModel, limit: float) -> Problem:
    """The problem of a search: the input of propagation, with the mesh and the hardware.

    Args:
        module: The program; inputs with a sharding keep it.
        topology: The chip, and the networks of the mesh axes.
        collectives: The model of collectives.
        limit: The bytes of memory that a device may use.

    Raises:
        UsageError: The program has no mesh, or several.
        PassError: The module breaks a requirement of propagation.
    """
    with module.context, pause_gc():
        short, families = short_program(module.root)
        stage = sharding_stages(for_module(PropagateOptions(), short.root))[0]
        context = run_on_root(module, short.root, stage.passes)
        return build_problem(module.root, short, families, context.specs, topology, collectives, limit)
