"""Chooses results that reuse the memory of donated arguments, where the program leaves the choice to the compiler."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.program import Input, Program


def with_aliases(program: Program) -> Program:
    """The program with a result of the same size for every donated argument that has none yet.

    XLA does so for `jax.jit(..., donate_argnums=...)` where shardings are unknown when JAX lowers the function. A
    result that JAX chose for an argument counts only if both have the same size on a device.

    Args:
        program: The program of one device.
    """
    body = program.body
    entries = [_with_fitting(program, entry, value) for entry, value in zip(program.inputs, body.arguments)]
    taken = {entry.alias for entry in entries if entry.alias is not None}
    free: dict[int, list[int]] = {}
    for place in range(len(body.results) - 1, -1, -1):
        if place not in taken:
            free.setdefault(program.tensors[body.results[place]].bytes, []).append(place)
    inputs = []
    for entry, value in zip(entries, body.arguments):
        places = free.get(program.tensors[value].bytes)
        if entry.alias is None and entry.is_donated and places:
            entry = entry._replace(alias=places.pop())
        inputs.append(entry)
    return replace(program, inputs=tuple(inputs))


def _with_fitting(program: Program, entry: Input, value: int) -> Input:
    """An argument without the alias that JAX chose, if that result has another size."""
    if entry.alias is None:
        return entry
    result = program.body.results[entry.alias]
    fits = program.tensors[result].bytes == program.tensors[value].bytes
    return entry if fits else entry._replace(alias=None)
