"""Padding of convolutions.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pyshardy.ir.constants import margins_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.rules.dimension_numbers import ConvolutionNumbers
from pyshardy.transforms.padding.padder import Padder, StaticShape, shape_of


def pad_convolution(op: Op, padder: Padder) -> None:
    """Put zeros into padding that is summed, increase the number of groups, and cut off surplus windows."""
    if not any(value in padder.originals for value in op.operands):
        padder.pad_result(op.result)
        return
    numbers = cast(ConvolutionNumbers, dict(padder.context.specs.spec(op).attributes)["dimension_numbers"])
    lhs_dims = (numbers.lhs_feature, *numbers.lhs_spatial)
    kernel_dims = (numbers.kernel_input_feature, *numbers.kernel_spatial)
    for index, dims in enumerate((lhs_dims, kernel_dims)):
        op.set_operand(index, padder.with_zeros(op.operands[index], op, dims))
    _Convolution(op, padder, numbers).pad()


class _Convolution:
    def __init__(self, op: Op, padder: Padder, numbers: ConvolutionNumbers) -> None:
        self.op = op
        self.padder = padder
        self.numbers = numbers
        self.old_groups: int = op.attrs["feature_group_count"].value * op.attrs["batch_group_count"].value

    def pad(self) -> None:
        op, padder, numbers = self.op, self.padder, self.numbers
        lhs, kernel = map(shape_of, op.operands)
        features = self._grown("feature_group_count", numbers.lhs_feature, lhs)
        batches = self._grown("batch_group_count", numbers.lhs_batch, lhs)
        wanted = list(padder.padded_shape(op.result))
        wanted[numbers.output_batch] = max(wanted[numbers.output_batch], lhs[numbers.lhs_batch] // batches)
        outputs = kernel[numbers.kernel_output_feature]
        wanted[numbers.output_feature] = max(wanted[numbers.output_feature], outputs)
        self._check_outputs(outputs, wanted[numbers.output_feature], features * batches)
        found = [self._spatial_size(index, lhs, kernel) for index in range(len(numbers.lhs_spatial))]
        needed = [wanted[dim] for dim in numbers.output_spatial]
        if any(dim in padder.padded_dims(op.operands[1]) for dim in numbers.kernel_spatial) or any(
            have < need for have, need in zip(found, needed)
        ):
            self._set_padding(needed, lhs, kernel)
            found = needed
        self._set_result(wanted, found, needed)

    def _grown(self, name: str, dim: int, lhs: StaticShape) -> int:
        """The number of groups. It grows with the dimension if every group has one element of it."""
        count: int = self.op.attrs[name].value
        if count > 1 and dim in self.padder.padded_dims(self.op.operands[0]):
            if count != self.padder.original_shape(self.op.operands[0])[dim]:
                raise PassError(
                    self.op,
                    f"has {name} {count} along a padded dimension of size {lhs[dim]}; groups of more than one element "
                    "cannot be padded. Try -sdy-resolve-permutation-factors first",
                )
            count = lhs[dim]
            self.op.set_attr(name, self.padder.context.attrs.i64(count))
        return count

    def _check_outputs(self, kernel: int, wanted: int, groups: int) -> None:
        """Raise `PassError` unless every group has as many output features as before padding."""
        old = self.padder.original_shape(self.op.operands[1])[self.numbers.kernel_output_feature]
        if kernel != wanted or (groups > 1 and kernel * self.old_groups != old * groups):
            raise PassError(
                self.op,
                f"has {old} output features in {self.old_groups} groups, padded to {kernel} for a result of {wanted}; "
                "try -sdy-resolve-permutation-factors first",
            )

    def _list(self, name: str) -> list[int]:
        """An attribute with one number per spatial dimension, 1 by default."""
        return list(self.op.attrs.get(name) or [1] * len(self.numbers.lhs_spatial))

    def _margins(self) -> list[tuple[int, int]]:
        return margins_of(self.op.attrs.get("padding"), len(self.numbers.lhs_spatial))

    def _extents(self, index: int, lhs: StaticShape, kernel: StaticShape) -> tuple[int, int]:
        """The size of the dilated input and of the dilated window."""
        spread, window = self._list("lhs_dilation")[index], self._list("rhs_dilation")[index]
        size, taps = lhs[self.numbers.lhs_spatial[index]], kernel[self.numbers.kernel_spatial[index]]
        return max(0, (size - 1) * spread + 1), max(0, (taps - 1) * window + 1)

    def _spatial_size(self, index: int, lhs: StaticShape, kernel: StaticShape) -> int:
        base, window = self._extents(index, lhs, kernel)
        room = base + sum(self._margins()[index]) - window
        return 0 if room < 0 else room // self._list("window_strides")[index] + 1

    def _set_padding(self, needed: Sequence[int], lhs: StaticShape, kernel: StaticShape) -> None:
        """Adjust the padding of the windows so that they stay where they were, in the needed number."""
        margins = []
        reversals = self.op.attrs.get("window_reversal")
        for index, ((low, _), need) in enumerate(zip(self._margins(), needed)):
            base, window = self._extents(index, lhs, kernel)
            old_kernel = self.padder.original_shape(self.op.operands[1])
            if reversals is not None and reversals[index]:
                low += window - self._extents(index, lhs, old_kernel)[1]
            margins.append([low, (need - 1) * self._list("window_strides")[index] + window - base - low])
        text = f"dense<{margins}> : tensor<{len(margins)}x2xi64>"
        self.op.set_attr("padding", self.padder.context.attrs.parse(text))

    def _set_result(self, wanted: list[int], found: Sequence[int], needed: Sequence[int]) -> None:
        result = self.op.result
        shape = list(wanted)
        for dim, size in zip(self.numbers.output_spatial, found):
            shape[dim] = size
        self.padder.set_shape(result, shape)
        sharding = get_sharding(result)
        if list(found) != list(needed) and sharding is not None:
            self.padder.trim(self.op, sharding)
