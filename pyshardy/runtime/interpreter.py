"""Runs a per-device program without devices, in StableHLO's reference interpreter.

It is slow but exact, for any number of devices. An unknown op ends the process of the interpreter, so it runs in its
own process.

Source: docs/semantics/partitioner.md#the-interpreter
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib import version

from pyshardy.core.boxes import device_boxes
from pyshardy.core.children import child_environment, ending_of
from pyshardy.core.mesh import check_count
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import ShardyError, UnsupportedVersionError
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.functions import main_function, signature
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.runtime.arrays import jax_dtype
from pyshardy.runtime.callbacks import calls_python, drop_tokens
from pyshardy.runtime.executable import Executable
from pyshardy.runtime.interpretable import make_interpretable
from pyshardy.runtime.known_dialects import check_known
from pyshardy.runtime.stacked import rename_program
from pyshardy.transforms.builder import Builder

_DOING = "running a program in the interpreter"
_FIRST_VERSION = (0, 12)
"""The first jaxlib whose interpreter does not need a processor per device."""
_PLAIN = frozenset(("i1", "f16", "f32", "f64", *(f"{sign}i{width}" for sign in ("", "u") for width in (8, 16, 32, 64))))
"""Element types that the bindings exchange as the same NumPy type."""
_CARRIERS = {8: "ui8", 16: "ui16"}
"""The integer types that carry the bits of other numbers, by width."""


class InterpreterExecutable(Executable):
    """A per-device program that StableHLO's interpreter runs; it returns NumPy arrays.

    Args:
        module: The per-device program.
        interface: The inputs, outputs and meshes of the whole program.

    Raises:
        UnsupportedVersionError: More devices than this jaxlib's interpreter can run here.
        ShardyError: Callbacks to Python, or an op or an element type that the interpreter does not know.
    """

    def __init__(self, module: Module, interface: Interface) -> None:
        if calls_python(module.root):  # limits of all versions come first
            raise ShardyError(_DOING, got="calls back into Python", needed="an engine that runs in this process")
        check_count(interface.device_count, _DOING, "devices")
        _check_threads(interface.device_count)
        self.interface = interface
        self._module = module
        self._driven: Module | None = None

    def run(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The outputs, global arrays."""
        count, (inputs, outputs) = self.interface.device_count, (self.interface.inputs, self.interface.outputs)
        pieces = [_split(np.asarray(array), self.interface, tensor) for array, tensor in zip(arrays, inputs)]
        carried = [part for device in range(count) for piece in pieces for part in _carried(piece[device])]
        if self._driven is None:
            check_known(self._module, _DOING)
            self._driven = _driven(self._module, count)
        found = iter(_evaluate(self._driven, carried))
        local = [[_restored(found, tensor) for tensor in outputs] for _ in range(count)]
        return [_join([part[index] for part in local], self.interface, tensor) for index, tensor in enumerate(outputs)]


def _check_threads(count: int) -> None:
    if version.__version_info__[:2] < _FIRST_VERSION and count > (os.cpu_count() or 1):
        raise UnsupportedVersionError(
            _DOING,
            got=f"{count} devices on {os.cpu_count()} processors with jaxlib {version.__version__}",
            needed="jaxlib 0.12, or as many processors as devices",
            hint="pip install --upgrade jax jaxlib, or another engine",
        )


# Between global arrays and those of devices


def _split(array: np.ndarray, interface: Interface, tensor: InterfaceTensor) -> dict[int, np.ndarray]:
    """The shard of an input on every device, by device id."""
    if tensor.sharding is None or tensor.sharding.is_fully_replicated:
        return dict.fromkeys(range(interface.device_count), array)
    boxes = device_boxes(tensor.sharding, mesh_of(tensor.sharding, interface.meshes), tensor.shape)
    return {device: array[tuple(map(slice, box.starts, box.stops))] for device, box in boxes.items()}


def _join(pieces: Sequence[np.ndarray], interface: Interface, tensor: InterfaceTensor) -> np.ndarray:
    """The global output from its shards, in order of device ids."""
    if tensor.sharding is None or tensor.sharding.is_fully_replicated:
        return pieces[0]
    whole = np.empty(tensor.shape, jax_dtype(tensor.element))
    for device, box in device_boxes(tensor.sharding, mesh_of(tensor.sharding, interface.meshes), tensor.shape).items():
        whole[tuple(map(slice, box.starts, box.stops))] = pieces[device]
    return whole


# The bindings take complex numbers as two arrays, and unusual numbers as their bits


def _carried(array: np.ndarray) -> list[np.ndarray]:
    if array.dtype.kind == "c":
        return [array.real.copy(), array.imag.copy()]
    return [array if array.dtype.kind in "biuf" else array.view(f"u{array.dtype.itemsize}")]


def _restored(found: Any, tensor: InterfaceTensor) -> np.ndarray:
    dtype = jax_dtype(tensor.element)
    if dtype.kind == "c":
        real = next(found)
        return np.asarray(real + 1j * next(found), dtype)
    array: np.ndarray = next(found)
    return array.view(dtype) if array.dtype != dtype else array


def _carriers(type: ValueType, builder: Builder) -> list[ValueType]:
    """The types of the arguments that carry a value."""
    shape, element = type.shape or (), type.element
    if element in _PLAIN:
        return [type]
    if element.startswith("complex"):
        return [builder.type(shape, element[len("complex<") : -1])] * 2
    dtype = jax_dtype(element)
    if dtype.itemsize in (1, 2) and element.startswith(("f", "bf")) and not element.startswith("f4"):
        return [builder.type(shape, _CARRIERS[8 * dtype.itemsize])]
    raise ShardyError(_DOING, got=f"element type {element}", needed="numbers of at least eight bits")


def _unpacked(args: list[Value], type: ValueType, builder: Builder) -> Value:
    """The value that some arguments carry."""
    if len(args) == 2:
        return builder.value("complex", args, type)
    return args[0] if args[0].type is type else builder.value("bitcast_convert", args, type)


def _packed(value: Value, carriers: list[ValueType], builder: Builder) -> list[Value]:
    if len(carriers) == 2:
        return [builder.value(part, [value], type) for part, type in zip(("real", "imag"), carriers)]
    (carrier,) = carriers
    return [value if value.type is carrier else builder.value("bitcast_convert", [value], carrier)]


def _driven(module: Module, count: int) -> Module:
    """A module whose main function runs the program on every device."""
    root = module.copy_root()
    drop_tokens(root)
    program = main_function(root)
    name = rename_program(root, program)
    make_interpretable(root, module)
    driver = root.region.block.append(Op("func.func", (), (), {"sym_name": "main"}, 1, program.location))
    block = driver.region.add_block()
    with module.context:
        builder = Builder(module.attrs, block, program.location)
        inputs, outputs = (list(side) * count for side in signature(program))
        operands = []
        for type in inputs:
            args = [block.add_arg(carrier, program.location) for carrier in _carriers(type, builder)]
            operands.append(_unpacked(args, type, builder))
        attrs = {"programs": module.attrs.parse(f"[[{', '.join([f'@{name}'] * count)}]]")}
        run = builder.op("interpreter.run_parallel", operands, outputs, attrs)
        packed = [part for value in run.results for part in _packed(value, _carriers(value.type, builder), builder)]
        builder.op("func.return", packed, [])
    driver.set_attr("function_type", ([arg.type for arg in block.args], [value.type for value in packed]))
    return module.with_root(root)


# The process of the interpreter


@contextmanager
def _any_dialect(context: Any) -> Iterator[None]:
    """Allow unregistered dialects in a context, and restore its setting afterwards."""
    before = context.allow_unregistered_dialects
    context.allow_unregistered_dialects = True
    try:
        yield
    finally:
        context.allow_unregistered_dialects = before


def _evaluate(module: Module, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the main function, computed in a separate process."""
    with _any_dialect(module.context):  # the dialect that runs programs is the interpreter's own
        code = module.bytecode()
    child = [sys.executable, "-m", "pyshardy.runtime.interpreter_process"]
    done = subprocess.run(
        child, input=pickle.dumps((code, list(arrays))), capture_output=True, check=False, env=child_environment()
    )
    if done.returncode != 0:
        log = done.stderr.decode(errors="replace")
        ending = f"a process that {ending_of(done.returncode, log)}"
        reason = next((line for line in log.splitlines() if "LLVM ERROR" in line), ending)
        raise ShardyError(_DOING, got=reason.removeprefix("LLVM ERROR: "), needed="ops that the interpreter supports")
    found: list[np.ndarray] = pickle.loads(done.stdout)
    return found
