"""Implements `jax.debug.inspect_array_sharding`: the callback gets the sharding that propagation found.

JAX emits a custom call with the address of a function, which XLA's partitioner calls. Here the function is looked up
among those that the lowered function keeps alive, and is called when shardings are final.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.frontend.from_jax import JaxSignature
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.frontend.jax_private import hlo_sharding, inspection_number
from pyshardy.frontend.jax_shardings import ABSTRACT, NamedShardings, SubAxes
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.strings import string_value

_TARGET = "InspectSharding"
_CALL = "stablehlo.custom_call"


def is_inspection(op: Op) -> bool:
    """Whether an op passes a sharding to Python."""
    return op.name == _CALL and string_value(op.attrs["call_target_name"]) == _TARGET


def answer_inspections(root: Op, signature: Any, meshes: Mapping[str, Mesh]) -> None:
    """Call the callbacks of a function with the shardings of its values.

    Args:
        root: The program with final shardings.
        signature: The signature of the lowered function; other programs have no callbacks.
        meshes: The meshes by name.
    """
    converter = NamedShardings(meshes, ABSTRACT, SubAxes.SPLIT)
    for op, callback in _known(root, signature):
        value = op.operands[0]
        sharding = get_sharding(value)
        rank = value.type.rank
        whole = None if sharding is None else sharding.with_unreduced(())
        found = converter.of(
            InterfaceTensor("an inspected array", 0, value.type.shape or (), value.type.element, whole)
        )
        if found is not None:
            callback(hlo_sharding(found, rank))


def drop_answered(root: Op, signature: Any) -> None:
    """Remove the inspections that `answer_inspections` answers."""
    for op, _ in list(_known(root, signature)):
        op.result.replace_uses(op.operands[0])
        op.erase()


def _known(root: Op, signature: Any) -> Iterator[tuple[Op, Any]]:
    """The inspections in program order, with their callbacks."""
    inspections = signature.inspections if isinstance(signature, JaxSignature) else {}
    for op in ops_named(root, (_CALL,)) if inspections else ():
        if is_inspection(op):
            callback = inspections.get(inspection_number(op.attrs.get("backend_config")))
            if callback is not None:
                yield op, callback
