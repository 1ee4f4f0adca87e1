"""`pyshardy-auto-partition`: finds shardings for the inputs of the main function, and for intermediate values."""

from __future__ import annotations

import time
from functools import cache

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import (
    SHARDING,
    main_function,
    result_attrs,
    return_op,
    set_arg_sharding,
    set_result_sharding,
)
from pyshardy.ir.named_values import named_values, with_shardings
from pyshardy.ir.nodes import Op
from pyshardy.ir.source_values import SourceValue, insert_constraints
from pyshardy.passes.base import Pass
from pyshardy.searching.autopartition.constraints import Constrained
from pyshardy.searching.autopartition.explore import Limits
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.registry import run_partitioner, task_of
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.autopartition.values import ConstrainableValues
from pyshardy.searching.program.search_program import build_problem, mesh_to_search, short_program
from pyshardy.transforms.context import PassContext

_GIB = 2**30


class AutoPartition(Pass):
    """Shard the inputs of the main function so that the program is fast and fits into memory, by rough estimates.

    Inputs that have a sharding keep it; outputs that alias inputs get the sharding of the input. The shardings come
    from the built-in search, or from the partitioner registered with `pyshardy.register_partitioner`. Intermediate
    values that the partitioner names get an `sdy.sharding_constraint`; the built-in search names none here.

    Attributes:
        hardware: The chip.
        memory_gib: The memory that a device may use, in GiB; 0 for all that the chip has.
        candidates: The most candidates to look at.
        budget_s: The longest time to search, in seconds.
        seed: The seed of random choices.
    """

    hardware: str = "v5p"
    memory_gib: int = 0
    candidates: int = 400
    budget_s: int = 60
    seed: int = 0

    name = "pyshardy-auto-partition"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        try:
            space, found, constraints = self._search(op, context)
        except PassError:
            raise
        except ShardyError as error:
            at = next((one for one in op.region.block if one.name == "func.func"), op)
            raise PassError(at, f"cannot be searched: {error}") from error
        name, _ = mesh_to_search(op)
        _store(main_function(op), space, found, name)
        insert_constraints(op, constraints)

    def _search(
        self, root: Op, context: PassContext
    ) -> tuple[Space, Assignment, list[tuple[SourceValue, TensorSharding]]]:
        limits = Limits(time.monotonic() + self.budget_s, self.candidates, self.seed)
        name, _ = mesh_to_search(root)
        values = cache(lambda: named_values(root))

        def constrained(chosen: Constrained) -> Problem:
            copy = copy_module(root)
            insert_constraints(copy, with_shardings(values(), chosen, name))
            return self._problem(copy, context)

        between = ConstrainableValues(constrained, lambda: [one.fact for one in values()])
        task = task_of(self._problem(root, context), limits, float(self.budget_s), between=between)
        answer = run_partitioner(task)
        constraints = with_shardings(values(), answer.constraints, name) if answer.constraints else []
        return task.space, answer.assignment, constraints

    def _problem(self, root: Op, context: PassContext) -> Problem:
        from pyshardy.passes.flow import import_steps, passes_of

        hardware = find_hardware(self.hardware)
        topology = make_topology(hardware, mesh_to_search(root)[1].axes)
        short, families = short_program(root)
        copy = short.root
        inner = PassContext(copy, context.attrs, context.specs)
        for step in passes_of(import_steps()):
            functions = [one for one in copy.region.block if one.name == "func.func"]
            for target in [copy] if step.anchor.value == "module" else functions:
                step.run(target, inner)
        objective = Objective(float(self.memory_gib * _GIB) or hardware.memory_bytes)
        return build_problem(root, short, families, context.specs, topology, CollectiveModel.FORMULA, objective)


def _store(main: Op, space: Space, assignment: Assignment, mesh: str) -> None:
    """Write the shardings onto inputs, and onto the outputs that alias them and have none."""
    inputs = [arg.index for arg in main.region.blocks[0].args if arg.type.shape is not None]
    outputs = [index for index, value in enumerate(_returned(main)) if value is not None]
    for number, (group, dims) in enumerate(zip(space.groups, assignment)):
        sharding: TensorSharding = space.sharding(number, dims).with_mesh(mesh)
        for member in group.members if group.is_free else ():
            set_arg_sharding(main, inputs[member], sharding)
        for output in group.outputs:
            if result_attrs(main, outputs[output]).get(SHARDING) is None:
                set_result_sharding(main, outputs[output], sharding)


def _returned(main: Op) -> list[tuple[int, ...] | None]:
    return [value.type.shape for value in return_op(main).operands]
