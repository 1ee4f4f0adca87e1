"""Problems for the tests of the search, from programs as text."""

from __future__ import annotations

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.space import Space
from pyshardy.searching.program.search_program import mesh_to_search, problem_of

BATCH, WIDTH, HIDDEN = 4096, 1024, 8192


def layered(layers: int, mesh: str = '"data"=4, "model"=2') -> str:
    """A network of so many equal layers with weights `up` and `down`."""
    x, up, down = (f"tensor<{a}x{b}xf32>" for a, b in ((BATCH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)))
    middle = f"tensor<{BATCH}x{HIDDEN}xf32>"
    arguments = [f'%x: {x} loc("x")']
    lines = []
    value = "%x"
    for layer in range(layers):
        arguments += [
            f"%u{layer}: {up} loc(\"params['layers'][{layer}]['up']\")",
            f"%d{layer}: {down} loc(\"params['layers'][{layer}]['down']\")",
        ]
        lines += [
            f"%a{layer} = stablehlo.dot_general {value}, %u{layer}, contracting_dims = [1] x [0] : ({x}, {up}) -> {middle}",
            f"%b{layer} = stablehlo.tanh %a{layer} : {middle}",
            f"%c{layer} = stablehlo.dot_general %b{layer}, %d{layer}, contracting_dims = [1] x [0] "
            f": ({middle}, {down}) -> {x}",
            f"%e{layer} = stablehlo.add {value}, %c{layer} : {x}",
        ]
        value = f"%e{layer}"
    body = "\n".join(lines)
    return f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({', '.join(arguments)}) -> {x} {{\n{body}\nreturn {value} : {x}\n}}"


def problem_from(text: str, chip: str = "h100", limit: float | None = None) -> Problem:
    module = pyshardy.load(text)
    hardware = find_hardware(chip)
    topology = make_topology(hardware, mesh_to_search(module.root)[1].axes)
    return problem_of(module, topology, CollectiveModel.FORMULA, Objective(limit or hardware.memory_bytes))


def space_from(text: str) -> Space:
    return Space(problem_from(text))
