"""The types of values, as passes look at them."""

from __future__ import annotations

from typing import Any


class ValueType:
    """The type of a value; one object per distinct type of a module.

    Attributes:
        mlir: The MLIR type.
        shape: Sizes of the dimensions, -1 for a dynamic one; None if the type has no dimensions (a token, a
            tuple, an unranked tensor).
        element: Text of the element type, such as "f32"; the text of the whole type if it has no dimensions.
        is_shaped: Whether it is a shaped type of MLIR, ranked or not.
        is_ranked_tensor: Whether it is a ranked tensor.
    """

    __slots__ = ("mlir", "shape", "element", "is_shaped", "is_ranked_tensor", "is_static")

    def __init__(
        self, mlir: Any, shape: tuple[int, ...] | None, element: str, is_shaped: bool, is_ranked_tensor: bool
    ) -> None:
        self.mlir = mlir
        self.shape = shape
        self.element = element
        self.is_shaped = is_shaped
        self.is_ranked_tensor = is_ranked_tensor
        self.is_static = shape is not None and -1 not in shape

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for a type without dimensions."""
        return len(self.shape or ())

    def __str__(self) -> str:
        return str(self.mlir)
