"""Ops that run on a single device.

Source: docs/semantics/reshards-and-collectives.md#single-device-ops
"""

from __future__ import annotations

from typing import cast

from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.transforms.reshards.op_reshards import insert_after
from pyshardy.transforms.reshards.operand_shardings import OpOperand, make_reshard


def is_on_single_device(sharding: TensorSharding | None, meshes: Meshes) -> bool:
    """Whether a sharding puts the whole tensor on a single device."""
    return sharding is not None and not sharding.dims and mesh_of(sharding, meshes).is_single_device


def global_mesh(meshes: Meshes) -> str | None:
    """The name of the first mesh with axes."""
    return next((name for name, mesh in meshes.items() if mesh.axes), None)


def single_device_of(op: Op, meshes: Meshes) -> TensorSharding | None:
    """The sharding of the last result that is on a single device; None if no result is.

    Raises:
        PassError: Two results are on different devices.
    """
    found = None
    for result in op.results:
        sharding = get_sharding(result)
        if sharding is None or not is_on_single_device(sharding, meshes):
            continue
        if found is not None and mesh_of(found, meshes) is not mesh_of(sharding, meshes):
            raise PassError(op, "has results on different single devices")
        found = sharding
    return found


def device_without_results(op: Op, meshes: Meshes) -> TensorSharding | None:
    """The single-device sharding of an op without results. It runs there for its effect."""
    found = op.attrs.get(SHARDING) if not op.results else None
    if isinstance(found, tuple) and len(found) == 1 and is_on_single_device(found[0], meshes):
        return cast(TensorSharding, found[0])
    return None


def reshard_to_device(op: Op, device: TensorSharding, meshes: Meshes) -> None:
    """Reshard all operands to the device through the global mesh, and the results back."""
    name = global_mesh(meshes)
    if name is None:
        return
    for index, value in enumerate(op.operands):
        if value.type.shape is not None:
            _bring(OpOperand(op, index, meshes), device, name)
    _bring_back(op, device, name, meshes)


def _bring(use: OpOperand, device: TensorSharding, name: str) -> None:
    sharding = get_sharding(use.value)
    if sharding is not None:
        if sharding.mesh == device.mesh and is_equivalent(sharding, device):
            return
        if sharding.mesh != name or not sharding.is_fully_replicated:
            use.put(make_reshard(use.value, TensorSharding.fully_replicated(name, use.value.type.rank)))
    use.put(make_reshard(use.value, device))


def _bring_back(op: Op, device: TensorSharding, name: str, meshes: Meshes) -> None:
    anchor = op
    for result in op.results:
        if result.type.shape is None:
            continue
        old, replicated = get_sharding(result), TensorSharding.fully_replicated(name, result.type.rank)
        set_sharding(result, device)
        anchor = insert_after(make_reshard(result, replicated), anchor, result)
        if old is not None and old is not replicated and not is_on_single_device(old, meshes):
            anchor = insert_after(make_reshard(anchor.result, old), anchor, anchor.result)
