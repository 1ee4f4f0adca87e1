"""The role of every dimension in a contraction, convolution, gather or scatter, as plain tuples."""

from __future__ import annotations

from typing import NamedTuple


class DotNumbers(NamedTuple):
    """The dimensions of a `dot_general`, in the order of the attribute; entries at the same position form pairs."""

    lhs_batching: tuple[int, ...] = ()
    rhs_batching: tuple[int, ...] = ()
    lhs_contracting: tuple[int, ...] = ()
    rhs_contracting: tuple[int, ...] = ()


class ConvolutionNumbers(NamedTuple):
    """The dimensions of a `convolution`; spatial entries at the same position belong together."""

    lhs_batch: int
    lhs_feature: int
    lhs_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


class GatherNumbers(NamedTuple):
    """The dimensions of a `gather` or a `scatter`, which mirror each other.

    Attributes:
        window: Dimensions of the gather's result, or of the updates, that run over a window.
        dropped: Dimensions of the input that the windows lack: collapsed, or inserted.
        input_batching: Batching dimensions of the input.
        index_batching: The matching batching dimensions of the indices, entry by entry.
        index_vector: The dimension of the indices that holds one index; equal to their rank if it is implicit.
    """

    window: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    input_batching: tuple[int, ...] = ()
    index_batching: tuple[int, ...] = ()
    index_vector: int = 0
