"""Chooses results that reuse the memory of donated arguments, where the program leaves the choice to the compiler."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.program import Program


def with_aliases(program: Program) -> Program:
    """The program with a result of the same size for every donated argument that has none yet.

    XLA does so for `jax.jit(..., donate_argnums=...)` where shardings are unknown when JAX lowers the function.

    Args:
        program: The program of one device.
    """
    taken = {entry.alias for entry in program.inputs if entry.alias is not None}
    body = program.body
    free: dict[int, list[int]] = {}
    for place in range(len(body.results) - 1, -1, -1):
        if place not in taken:
            free.setdefault(program.tensors[body.results[place]].bytes, []).append(place)
    inputs = []
    for entry, value in zip(program.inputs, body.arguments):
        places = free.get(program.tensors[value].bytes)
        if entry.alias is None and entry.is_donated and places:
            entry = entry._replace(alias=places.pop())
        inputs.append(entry)
    return replace(program, inputs=tuple(inputs))
