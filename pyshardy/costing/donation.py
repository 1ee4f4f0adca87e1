"""Chooses results that reuse the memory of donated arguments, where the program leaves the choice to the compiler."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyshardy.core.text import format_bytes
from pyshardy.costing.program import CostInput, CostProgram, CostTensor

_FROM_BYTES: Final = 1 << 20
_FROM_PART: Final = 0.1
"""Nothing is said of fewer bytes, or of a smaller part of the arguments."""


def with_aliases(program: CostProgram) -> CostProgram:
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


def donatable_bytes(program: CostProgram) -> int:
    """The bytes of results that could take the place of arguments of the same type; 0 if anything is donated.

    Args:
        program: The program of one device.
    """
    pairs = zip(program.inputs, donated_inputs(program), program.body.arguments)
    return sum(program.tensors[value].bytes for before, after, value in pairs if after is not before)


def donated_inputs(program: CostProgram) -> tuple[CostInput, ...]:
    """The inputs, with every result in the memory of an argument of its type; unchanged if anything is donated.

    Args:
        program: The program of one device.
    """
    if any(entry.is_donated or entry.alias is not None for entry in program.inputs):
        return program.inputs
    body, tensors = program.body, program.tensors
    kept = set(body.arguments)
    free: dict[CostTensor, list[int]] = {}
    for place, value in enumerate(body.results):
        if value not in kept:
            free.setdefault(tensors[value], []).append(place)
    found = []
    for entry, value in zip(program.inputs, body.arguments):
        places = free.get(tensors[value])
        found.append(entry._replace(alias=places.pop(0), is_donated=True) if places else entry)
    return tuple(found)


def donation_note(program: CostProgram, peak: int, saved: int) -> str | None:
    """What to say where nothing is donated, and that costs memory; None where it does not matter.

    Args:
        program: The program of one device.
        peak: The peak memory.
        saved: How much less it is with everything donated that can be.
    """
    replaced = donatable_bytes(program)
    held = sum(program.tensors[value].bytes for value in program.body.arguments)
    if replaced < _FROM_BYTES or replaced < _FROM_PART * held:
        return None
    return (
        f"nothing is donated: results of {format_bytes(replaced)} per device have the types of arguments; "
        "jax.jit(..., donate_argnums=...) lets them take the place of these arguments, "
        f"which saves {format_bytes(saved)} of {format_bytes(peak)}"
    )


def _with_fitting(program: CostProgram, entry: CostInput, value: int) -> CostInput:
    """An argument without the alias that JAX chose, if that result has another size."""
    if entry.alias is None:
        return entry
    result = program.body.results[entry.alias]
    fits = program.tensors[result].bytes == program.tensors[value].bytes
    return entry if fits else entry._replace(alias=None)
