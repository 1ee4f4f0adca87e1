"""The types of MLIR that pyshardy makes, and what it reads of a type."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.nodes import ValueType

_LARGEST_SIZE = 2**63 - 1


def signature_type(signature: tuple[list[ValueType], list[ValueType]]) -> Any:
    """The attribute that holds the type of a function, from its types of arguments and results."""
    inputs, results = ([type.mlir for type in types] for types in signature)
    return ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def tensor_type(shape: tuple[int, ...], element: Any) -> Any:
    """A tensor type; -1 is a dynamic size."""
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [dynamic if size < 0 else size for size in shape]
    if max(sizes, default=0) > _LARGEST_SIZE:
        raise InvalidModuleError(
            "making the type of a tensor",
            got=f"a dimension of {max(sizes)}, with padding or before it is cut",
            needed=f"at most {_LARGEST_SIZE}, as MLIR counts in 64 bits",
        )
    return ir.RankedTensorType.get(sizes, element, loc=ir.Location.unknown())


def value_type(mlir: Any) -> ValueType:
    """What pyshardy reads of a type of MLIR."""
    try:
        shaped = ir.ShapedType(mlir)  # also for types of dialects, which have no class in the bindings
    except ValueError:
        return ValueType(mlir, None, str(mlir), False, False)
    if not shaped.has_rank:
        return ValueType(mlir, None, str(mlir), True, False)
    shape = tuple(-1 if shaped.is_dynamic_dim(dim) else shaped.get_dim_size(dim) for dim in range(shaped.rank))
    return ValueType(mlir, shape, str(shaped.element_type), True, isinstance(mlir, ir.RankedTensorType))
