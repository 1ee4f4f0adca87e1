"""Compiles a result for an engine and runs it, where its memory suffices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyshardy.runtime.engine import Engine

if TYPE_CHECKING:
    from pyshardy.results.program_result import ProgramResult
    from pyshardy.runtime.executable import Executable


def run_on(
    result: ProgramResult, arrays: Sequence[Any], devices: Sequence[Any] | None, engine: Engine, force: bool
) -> tuple[Any, ...]:
    """The outputs of a program on an engine; the arguments are those of `ProgramResult.run`."""
    program = result.for_engine(engine)
    used = _devices(program, devices)
    key = _key(engine, used)
    if not (force or key in program._known_to_fit):
        _check_memory(program, arrays, used, engine)
        program._known_to_fit.add(key)
    return tuple(_executable(program, engine, used)(arrays))


def executable_of(result: ProgramResult, devices: Sequence[Any] | None, engine: Engine) -> Executable:
    """A program compiled for an engine and some devices; compiled once."""
    program = result.for_engine(engine)
    return _executable(program, engine, _devices(program, devices))


def _executable(program: ProgramResult, engine: Engine, devices: Sequence[Any] | None) -> Executable:
    known, key = program._executables, _key(engine, devices)
    if key not in known:
        _ = program.sharded.inspected
        known[key] = program.make_executable(engine, devices)
    return known[key]


def _key(engine: Engine, devices: Sequence[Any] | None) -> Any:
    return engine, None if devices is None else tuple(devices)


def _check_memory(program: ProgramResult, arrays: Sequence[Any], devices: Sequence[Any] | None, engine: Engine) -> None:
    """Raise an error before the first run of a program whose virtual devices need more memory than this machine has."""
    from pyshardy.runtime.memory import check_memory, devices_in_memory, placed_bytes

    count = program.device_count
    here = count if engine is Engine.INTERPRETER else devices_in_memory(devices, count)
    needed = program.bytes_on_all_devices * here // count - placed_bytes(arrays)
    check_memory(f"running a program on {here} devices", needed)


def _devices(program: ProgramResult, devices: Any) -> tuple[Any, ...] | None:
    """The given devices, or else those that a JAX function was lowered for; None for JAX's own."""
    if devices is not None:
        from pyshardy.frontend.jax_devices import checked_devices

        return checked_devices(devices)
    return getattr(program.before.origin, "devices", None)
