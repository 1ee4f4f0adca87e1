"""Compiling a module with XLA through public JAX API.

The module travels as the payload of a `jax.export.Exported` whose signature fits it.

Source: docs/semantics/partitioner.md#one-program-for-all-devices
Source: docs/semantics/partitioner.md#xlas-own-partitioner
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import numpy as np
from jax.experimental import multihost_utils

from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.diagnostics import errors_of
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import is_wide, jax_dtype
from pyshardy.runtime.callbacks import callbacks_of, raise_failures, with_callbacks
from pyshardy.runtime.known_dialects import check_known

_RUNNING = "running a module"
_SIGNS_OF_A_DEAD_PROCESS = ("Gloo", "UNAVAILABLE", "DEADLINE_EXCEEDED", "onnection", "NCCL")


class CompiledModule:
    """A global module for XLA, compiled on the first run.

    Args:
        module: The module for XLA, with a public `@main`, one argument per input and one result per output.
        ins: The inputs.
        outs: The outputs.
        shardings: A `NamedSharding` for every input, and one for every output; None for a single device.
        donated: The numbers of donated inputs.

    Raises:
        ShardyError: JAX lacks a type, XLA a dialect, or a Python function that the program calls is not available.
    """

    def __init__(
        self,
        module: Module,
        ins: Sequence[InterfaceTensor],
        outs: Sequence[InterfaceTensor],
        shardings: tuple[Sequence[Any], Sequence[Any]] | None = None,
        donated: Sequence[int] = (),
    ) -> None:
        self._callbacks = callbacks_of(module)
        if self._callbacks and not outs:
            raise ShardyError(
                "running a module",
                got="calls back into Python, and no outputs",
                needed="an output to wait for",
                hint="let the function return something",
            )
        self.wide = any(is_wide(jax_dtype(tensor.element)) for tensor in (*ins, *outs))
        self._ins, self._shardings = ins, shardings
        self._module = module
        self._is_agreed = shardings is None or jax.process_count() == 1
        with self.types():
            exported = _exported(module, _types(ins), _types(outs), shardings)
            program = _calling(exported, self._callbacks) if self._callbacks else exported.call
            self._jitted = jax.jit(program, **_options(shardings), donate_argnums=tuple(donated))

    def types(self) -> Any:
        """A context in which JAX has the types of this program."""
        return jax.enable_x64(jax.config.read("jax_enable_x64") or self.wide)

    def __call__(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The outputs for placed inputs.

        Raises:
            ShardyError: XLA fails to compile or run it, a Python function that it calls fails, or another process runs
                another program.
        """
        if not self._is_agreed:
            self._agree()
        with self.types():
            found: list[jax.Array] = _refusing(lambda: list(jax.block_until_ready(self._jitted(*arrays))))
        raise_failures(self._callbacks)
        return found

    def _agree(self) -> None:
        """Check that the other processes run the same program, if the devices belong to several processes."""
        sides = self._shardings or ((), ())
        devices = [device for sharding in (*sides[0], *sides[1]) for device in sharding.mesh.devices.flat]
        if len({device.process_index for device in devices}) == jax.process_count():
            ids = [device.id for device in devices]
            _refusing(lambda: agree(f"{self._module.text()} {ids}"))
        self._is_agreed = True

    def as_text(self) -> str:
        """The HLO that XLA has compiled."""
        text: str = self.compiled().as_text()
        return text

    def compiled(self) -> Any:
        """The compiled program: JAX's `Compiled`, with its text and XLA's analyses."""
        placed = [None] * len(self._ins) if self._shardings is None else self._shardings[0]
        with self.types():
            args = [
                jax.ShapeDtypeStruct(type.shape, type.dtype, sharding=sharding)
                for type, sharding in zip(_types(self._ins), placed)
            ]
            return _refusing(lambda: self._jitted.lower(*args).compile())


def _types(tensors: Sequence[InterfaceTensor]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(tensor.shape, jax_dtype(tensor.element)) for tensor in tensors]


def _options(shardings: tuple[Sequence[Any], Sequence[Any]] | None) -> dict[str, Any]:
    options: dict[str, Any] = {"keep_unused": True}
    if shardings is not None:
        options |= {"in_shardings": tuple(shardings[0]), "out_shardings": tuple(shardings[1])}
    return options


def _exported(module: Module, ins: Sequence[Any], outs: Sequence[Any], shardings: Any) -> jax.export.Exported:
    """A function with the signature of the module and the module as its body."""

    def shell(*_: Any) -> tuple[Any, ...]:
        return tuple(jax.numpy.zeros(type.shape, type.dtype) for type in outs)

    exported = jax.export.export(jax.jit(shell, **_options(shardings)))(*ins)
    return dataclasses.replace(exported, mlir_module_serialized=_payload(module))


def _calling(exported: jax.export.Exported, callbacks: Sequence[Any]) -> Any:
    return lambda *arrays: tuple(with_callbacks(exported.call(*arrays), callbacks))


def _payload(module: Module) -> bytes:
    check_known(module, _RUNNING)
    with module.context, errors_of(module.context) as errors:
        try:
            version = stablehlo.get_current_version()
            payload: bytes = stablehlo.serialize_portable_artifact(module.mlir, version, True)
        except ValueError as error:
            reason = errors[0].message if errors else str(error)
            raise ShardyError(_RUNNING, got=reason, needed="a program that StableHLO can serialize") from error
    return payload


def _refusing(action: Any) -> Any:
    """The result of an action; errors of XLA become errors of pyshardy."""
    try:
        return action()
    except UnicodeDecodeError as error:  # of an error of XLA that names something that is not UTF-8
        reason = error.object.decode(errors="backslashreplace").split("\n")[0]
        raise ShardyError(_RUNNING, got=reason, needed="a program that XLA can compile here") from error
    except jax.errors.JaxRuntimeError as error:
        reason = _reason(error)
        if jax.process_count() > 1 and any(sign in reason for sign in _SIGNS_OF_A_DEAD_PROCESS):
            needed, hint = "all processes of the program to keep running", "look at what the other processes printed"
        else:
            needed, hint = "a program that XLA can compile here", None
        raise ShardyError(_RUNNING, got=reason, needed=needed, hint=hint) from error


def _reason(error: Exception) -> str:
    """The first line of an error of XLA; if it quotes a traceback, the exception at the traceback's end."""
    first, *rest = str(error).strip().split("\n")
    head, traceback, _ = first.partition("Traceback (most recent call last):")
    return head + next((line for line in rest if line[:1].strip()), "an exception") if traceback else first


def agree(program: str) -> None:
    """Compare the program of this process with those of the others; every process must call this.

    Args:
        program: The program and everything that decides how it runs, as a text that is equal in all processes.

    Raises:
        ShardyError: Another process runs something else. All processes raise it.
    """
    digest = np.frombuffer(hashlib.sha256(program.encode()).digest(), np.uint8)
    refuse_others(np.asarray(multihost_utils.process_allgather(digest)))


def refuse_others(digests: np.ndarray) -> None:
    """Raise unless all rows, one per process, are equal; the error names the processes that differ from process 0."""
    others = [str(process) for process, digest in enumerate(digests) if not np.array_equal(digest, digests[0])]
    if others:
        raise ShardyError(
            "running a program in several processes",
            got=f"another program, other options or other shapes in process {', '.join(others)} than in process 0",
            needed="the same program, partitioned with the same options, in all processes",
        )
