"""The state while a module is padded: original types, and the contents of padding.

Source: docs/semantics/partitioner.md#padding
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from pyshardy.core.devices import padded_shape
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.blocks import Value
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.op import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.value_type import ValueType
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.operand_shardings import location_of

StaticShape = tuple[int, ...]


class Padding(Enum):
    """The known content of the padding of a value."""

    ZERO = "0"
    ONE = "1"


class Padder:
    """The state while the ops of a module are padded one by one.

    Attributes:
        context: The pass context.
        meshes: The meshes of the module.
        originals: The original types of padded values.
        unpadded: Values without padding although their shardings need it.
        functions: The names of the functions with a padded argument or result.
        paddings: The known contents of padding, by value.
    """

    def __init__(self, context: PassContext) -> None:
        self.context = context
        self.meshes: Meshes = context.meshes
        self.originals: dict[Value, ValueType] = {}
        self.unpadded: set[Value] = set()
        self.functions: set[str] = set()
        self.paddings: dict[Value, Padding] = {}
        self._padded: dict[tuple[StaticShape, TensorSharding], StaticShape] = {}
        self._needs: dict[tuple[tuple[TensorSharding, ...], ValueType], bool] = {}

    def builder(self, op: Op, sharding: TensorSharding | None = None) -> Builder:
        """Makes ops before an op."""
        return Builder(self.context.attrs, op, op.place, sharding)

    def like(self, value: Value, op: Op) -> Builder:
        """Makes ops before an op, with the sharding of a value."""
        return self.builder(op, get_sharding(value))

    # Shapes

    def original_shape(self, value: Value) -> StaticShape:
        """The original shape of a value."""
        shape = self.originals.get(value, value.type).shape
        assert shape is not None
        return shape

    def padded_dims(self, value: Value) -> list[int]:
        """The dimensions along which a value is padded."""
        if value not in self.originals:
            return []
        return [dim for dim, size in enumerate(self.original_shape(value)) if size != shape_of(value)[dim]]

    def padded_shape(self, value: Value, sharding: TensorSharding | None = None) -> StaticShape:
        """The shape of a value, padded for a sharding or for its own sharding."""
        sharding = get_sharding(value) if sharding is None else sharding
        shape = self.original_shape(value)
        return shape if sharding is None else self.padded_for(shape, sharding)

    def padded_for(self, shape: StaticShape, sharding: TensorSharding) -> StaticShape:
        """A shape padded for a sharding."""
        found = self._padded.get((shape, sharding))
        if found is None:
            fits = sharding.rank == len(shape)
            found = padded_shape(sharding, mesh_of(sharding, self.meshes), shape) if fits else shape
            self._padded[shape, sharding] = found
        return found

    def concerns(self, op: Op) -> bool:
        """Whether an operand of an op is padded or a result needs padding.

        Args:
            op: An op whose result shardings are in the usual attribute.
        """
        if self.originals and not self.originals.keys().isdisjoint(op.operands):
            return True
        shardings = op.attrs.get(SHARDING)
        if not shardings:
            return False
        results = op.results
        if len(results) != 1:
            return self._is_to_be_padded(results, shardings)
        key = shardings, results[0].type
        found = self._needs.get(key)
        if found is None:
            found = self._needs[key] = self._is_to_be_padded(results, shardings)
        return bool(found)

    def _is_to_be_padded(self, values: Sequence[Value], shardings: Sequence[TensorSharding]) -> bool:
        for value, sharding in zip(values, shardings):
            type = value.type
            if type.is_ranked_tensor and self.padded_for(type.shape or (), sharding) != type.shape:
                return True
        return False

    def set_shape(self, value: Value, shape: Sequence[int]) -> None:
        """Give a value another shape, and remember its original type."""
        original = self.originals.get(value, value.type)
        new = self.context.attrs.ranked_type(tuple(shape), value.type)
        value.set_type(new)
        if new is not original:
            self.originals[value] = original

    def pad_result(self, value: Value) -> None:
        """Give a result or argument the shape that its own sharding needs."""
        if not value.type.is_ranked_tensor:
            return
        shape = self.padded_shape(value)
        if shape != value.type.shape:
            self.set_shape(value, shape)

    # Padding

    def pad(self, value: Value, shape: Sequence[int], op: Op) -> Value:
        """Pad a value further, after its data; the pad is inserted before an op."""
        old = shape_of(value)
        if tuple(shape) == old:
            return value
        known = self.paddings.get(value)
        kind = known or Padding.ZERO
        builder = self.like(value, op)
        builder.location = location_of(value)
        filler = Builder(builder.attrs, op, builder.location).splat(
            splat_text(kind, value.type.element), builder.like((), value.type)
        )
        padded = builder.pad(value, filler, [0] * len(old), [new - size for new, size in zip(shape, old)])
        self.originals[padded] = self.originals.get(value, value.type)
        if known is not None or not self.padded_dims(value):
            self.paddings[padded] = kind
        return padded

    def splat(self, value: Value, kind: Padding, op: Op) -> Value:
        """A scalar constant of the element type of a value."""
        builder = self.builder(op)
        return builder.splat(splat_text(kind, value.type.element), builder.like((), value.type))

    def trim(self, op: Op, sharding: TensorSharding) -> None:
        """Slice off the padding of the only result of an op that a sharding does not need, for all users."""
        result = op.result
        following = op.next
        assert following is not None
        shape = self.padded_shape(result, sharding)
        builder = Builder(self.context.attrs, following, op.place, sharding)
        original, kind = self.originals.get(result, result.type), self.paddings.get(result)
        cut = builder.cut(result, shape)
        result.replace_uses(cut, lambda user, _: user is not cut.defining_op)
        if cut.type is not original:
            self.originals[cut] = original
        if kind is not None:
            self.paddings[cut] = kind

    # Masks

    def masked(
        self,
        value: Value,
        op: Op,
        fill: Callable[[], Value],
        dims: Iterable[int] | None = None,
        fill_dims: Sequence[int] = (),
    ) -> Value:
        """The value with another content of its padding.

        Args:
            value: The value.
            op: The op before which to insert the mask.
            fill: Makes the new content: a scalar, or a tensor to broadcast along `fill_dims`.
            dims: The dimensions whose padding changes.
            fill_dims: The dimensions of the value that the fill has.
        """
        padded = self.padded_dims(value)
        filler = fill()
        chosen = padded if dims is None else [dim for dim in padded if dim in set(dims)]
        if not chosen:
            return value
        builder, shape = self.like(value, op), shape_of(value)
        mask = None
        for dim in chosen:
            inside = self._inside(builder, value, dim)
            mask = inside if mask is None else builder.combine("and", mask, inside)
        assert mask is not None
        selected = builder.select(mask, value, builder.broadcast(filler, shape, fill_dims))
        self.originals[selected] = self.originals[value]
        return selected

    def _inside(self, builder: Builder, value: Value, dim: int) -> Value:
        """A mask of the elements of a value that are not padding along a dimension."""
        index = builder.iota(builder.type(shape_of(value), "i32"), dim)
        size = builder.splat(str(self.original_shape(value)[dim]), builder.type((), "i32"))
        return builder.compare("LT", index, builder.broadcast(size, shape_of(value)))

    def with_zeros(self, value: Value, op: Op, dims: Iterable[int]) -> Value:
        """The value with zeros in its padding along some dimensions."""
        if value not in self.originals or self.paddings.get(value) is Padding.ZERO:
            return value
        return self.masked(value, op, lambda: self.splat(value, Padding.ZERO, op), dims)


def shape_of(value: Value) -> StaticShape:
    """The shape of a ranked tensor."""
    assert value.type.shape is not None
    return value.type.shape


def splat_text(kind: Padding, element: str) -> str:
    """The content of padding, as MLIR writes it.

    >>> splat_text(Padding.ONE, "f32"), splat_text(Padding.ONE, "i1"), splat_text(Padding.ONE, "complex<f32>")
    ('1.0', 'true', '(1.0,0.0)')
    """
    zero = zero_text(element)
    if kind is Padding.ZERO:
        return zero
    if element.startswith("complex"):
        return zero.replace("(0", "(1", 1)
    return {"false": "true", "0": "1"}.get(zero, "1.0")
