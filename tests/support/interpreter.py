"""Running modules in StableHLO's interpreter: whole programs, and the programs of all devices at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from pyshardy.core.boxes import Box, device_boxes
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.context import make_context
from pyshardy.ir.functions import arg_sharding, functions, result_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.pipeline import run_pipeline

Array = np.ndarray[Any, Any]
_IDENTITIES = frozenset(
    f"sdy.{name}"
    for name in (
        "propagation_barrier", "reshard", "sharding_constraint", "all_gather", "all_slice", "all_to_all", "collective_permute", "all_reduce",
        "reduce_scatter", "replicated_to_unreduced", "sharded_to_unreduced",
    )
)  # fmt: skip
_COMBINE = {ReductionKind.SUM: np.add, ReductionKind.MAX: np.maximum, ReductionKind.MIN: np.minimum}


def main_of(root: Op) -> Op:
    """The function called `main`, or the first one."""
    found = list(functions(root))
    return next((function for function in found if function.attrs["sym_name"] == "main"), found[0])


def whole_program(module: Module) -> Module:
    """The same program without anything that only moves data between devices."""
    root = module.copy_root()
    with module.context:
        for op in list(walk(root)):
            if op.name in _IDENTITIES:
                op.result.replace_uses(op.operands[0])
                op.erase()
            elif op.name == "sdy.constant":
                op.name = "stablehlo.constant"
        main_of(root).set_attr("sym_name", "main")
    return run_pipeline(module.with_root(root), "sdy-drop-sharding-and-mesh")


def evaluate(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of the function `main` of a module."""
    with make_context() as context, ir.Location.unknown():
        stablehlo.register_interpreter_dialect(context)
        context.load_all_available_dialects()
        context.enable_multithreading(True)  # devices are threads; in a context without locks they end the process
        module = ir.Module.parse(text)
        main = next(op for op in module.body.operations if str(op.attributes["sym_name"]) == '"main"')
        types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
        given = [_attribute(array, type) for array, type in zip(arguments, types, strict=True)]
        return [np.array(found) for found in stablehlo.eval_module(module, given)]


def _attribute(array: Array, type: Any) -> Any:
    if array.dtype == bool:
        return ir.DenseElementsAttr.get([ir.BoolAttr.get(bool(value)) for value in array.flat], type=type)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type)


def run_devices(module: Module, per_device: Sequence[Sequence[Array]], as_replicas: bool = False) -> list[list[Array]]:
    """The results of the program of one device, run on all devices.

    Args:
        module: The program of one device.
        per_device: The arguments of each.
        as_replicas: Whether devices are replicas, not partitions.
    """
    root = module.copy_root()
    main = main_of(root)
    main.set_attr("sym_name", "device_program")
    local = run_pipeline(module.with_root(root), "sdy-inline-meshes,sdy-drop-sharding-and-mesh").text()
    block, count = main.region.blocks[0], len(per_device)
    inputs = [str(arg.type) for arg in block.args]
    outputs = [str(value.type) for value in block.terminator.operands]
    whole = f"{local.rstrip()[:-1]}{_driver(inputs, outputs, count, as_replicas)}}}"
    flat = evaluate(whole, [array for device in per_device for array in device])
    return [flat[device * len(outputs) : (device + 1) * len(outputs)] for device in range(count)]


def _driver(inputs: list[str], outputs: list[str], count: int, as_replicas: bool) -> str:
    """A function that runs `device_program` on all devices."""
    names = [f"%d{device}_{index}" for device in range(count) for index in range(len(inputs))]
    rows = ["[@device_program]"] * count if as_replicas else [f"[{', '.join(['@device_program'] * count)}]"]
    given, made = ", ".join(inputs * count), ", ".join(outputs * count)
    total = len(outputs) * count
    results = ", ".join(f"%r#{index}" if total > 1 else "%r" for index in range(total))
    return f"""func.func public @main({", ".join(f"{name}: {type}" for name, type in zip(names, inputs * count))}) -> ({made}) {{
      %r{f":{total}" if total > 1 else ""} = "interpreter.run_parallel"({", ".join(names)})
        {{programs = [{", ".join(rows)}]}} : ({given}) -> ({made})
      return {results} : {made}
    }}
    """


def random_arguments(module: Module, seed: int) -> list[Array]:
    """Small numbers for every argument of the main function, negative ones too; the same for the same seed."""
    random = np.random.default_rng(seed)
    with module.context:
        types = [arg.type for arg in main_of(module.root).region.blocks[0].args]
        return [_random(type.element, type.shape or (), random) for type in types]


def _random(element: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if element == "i1":
        return random.integers(0, 2, shape).astype(bool)
    dtype = np.dtype(
        element.replace("ui", "uint").replace("f", "float")
        if element[0] in "uf"
        else {"complex<f32>": "complex64", "complex<f64>": "complex128"}.get(element, element.replace("i", "int"))
    )
    return np.asarray(random.integers(0 if element[0] == "u" else -3, 10, shape)).astype(dtype)


def _cut(array: Array, box: Box) -> Array:
    return array[tuple(slice(start, stop) for start, stop in zip(box.starts, box.stops))]


def mesh_of_main(module: Module) -> Mesh:
    """The mesh of the first argument or result of the main function that has a sharding, or the first one."""
    root = module.root
    main, meshes = main_of(root), module_meshes(root)
    block = main.region.blocks[0]
    found = [arg_sharding(main, arg.index) for arg in block.args]
    found += [result_sharding(main, index) for index in range(len(block.terminator.operands))]
    given = [mesh_of(sharding, meshes) for sharding in found if sharding is not None]
    return next((mesh for mesh in [*given, *meshes.values()] if mesh.axes), Mesh([("none", 1)]))


def disagreement(
    source: Module, local: Module, seed: int = 0, as_replicas: bool = False, whole: Module | None = None
) -> str:
    """Run a sharded program as a whole, and its local form on all devices; return the difference, or "".

    Args:
        source: The program on whole tensors; its main function says how arguments and results are sharded.
        local: The program of one device.
        seed: Decides the arguments.
        as_replicas: Whether devices are replicas, not partitions.
        whole: What to run as a whole instead, of the same arguments and results.
    """
    mesh, arguments = mesh_of_main(source), random_arguments(source, seed)
    wanted = evaluate(whole_program(whole or source).text(), arguments)
    main, meshes = main_of(source.root), module_meshes(source.root)
    shards = [_shards(array, arg_sharding(main, index), mesh, meshes) for index, array in enumerate(arguments)]
    per_device = [[shard[device] for shard in shards] for device in range(mesh.size)]
    given = run_devices(local, per_device, as_replicas)
    for index, array in enumerate(wanted):
        sharding = result_sharding(main, index)
        found = _completed([device[index] for device in given], sharding, meshes)
        for device, (one, other) in enumerate(zip(_shards(array, sharding, mesh, meshes), found, strict=True)):
            if one.shape != other.shape or not np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"result {index} on device {device}: wanted\n{one}\ngiven\n{other}"
    return ""


def _shards(array: Array, sharding: TensorSharding | None, mesh: Mesh, meshes: dict[str, Mesh]) -> list[Array]:
    """The shards of an array, by device."""
    if sharding is None or not sharding.dims:
        return [array] * mesh.size
    boxes = device_boxes(sharding, mesh_of(sharding, meshes), array.shape)
    return [_cut(array, boxes[device]) for device in range(mesh.size)]


def _completed(parts: list[Array], sharding: TensorSharding | None, meshes: dict[str, Mesh]) -> list[Array]:
    """The reduction of partial results."""
    if sharding is None or not sharding.unreduced:
        return parts
    found = list(parts)
    for group in replica_groups(sharding.unreduced, mesh_of(sharding, meshes)):
        total = _COMBINE[sharding.reduction].reduce([parts[device] for device in group])
        for device in group:
            found[device] = total
    return found
