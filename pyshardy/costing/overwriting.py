"""Copies values that a block overwrites while other kernels may still read them, as XLA does before it orders kernels.

Results reuse the memory of donated arguments and of the state of a loop. A kernel may overwrite a value before all
readers of the old value have run. If no dependency forces these to run first, XLA copies the old value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyshardy.costing.kernels import Before, Kernel
from pyshardy.costing.lowering import COPY
from pyshardy.costing.program import CostKind, CostOp, CostTensor


def with_copies(
    kernels: Sequence[Kernel],
    pairs: Sequence[tuple[int, int]],
    tensors: Sequence[CostTensor],
    new: Callable[[CostTensor], int],
) -> tuple[list[Kernel], dict[int, int]]:
    """The kernels of a block with copies of arguments that are overwritten too early.

    Args:
        kernels: The kernels in an order in which they may run.
        pairs: Pairs of an argument of the block and the result that reuses its memory.
        tensors: The type of every value.
        new: Makes a new value of a type.

    Returns:
        The kernels, and the copies that become results, by the value that they copy.
    """
    arguments = {argument for argument, _ in pairs}
    before = Before(kernels)
    copies: dict[int, int] = {}
    moved: dict[int, int] = {}
    for argument, result in pairs:
        if argument == result:
            continue
        if result in arguments:  # another part of the state: copied before it is overwritten
            moved[result] = new(tensors[result])
        elif _is_read_late(before, argument, result):
            copies[argument] = new(tensors[argument])
    found = [_copy(tensors[value], value, copy) for value, copy in {**copies, **moved}.items()]
    return [*found, *(_reading(kernel, copies) for kernel in kernels)], moved


def _is_read_late(before: Before, argument: int, result: int) -> bool:
    """Whether some reader of an argument need not run before the kernel that computes the result."""
    maker = before.makers.get(result)
    if maker is None:
        return False
    return any(
        argument not in before.kernels[maker].in_place if reader == maker else not before.must(reader, maker)
        for reader in before.readers.get(argument, ())
    )


def _copy(tensor: CostTensor, value: int, result: int) -> Kernel:
    op = CostOp(CostKind(COPY, (tensor,), (tensor,)), (value,), (result,))
    return Kernel((op,), (value,), (result,), frozenset())


def _reading(kernel: Kernel, copies: dict[int, int]) -> Kernel:
    """A kernel that reads copies instead of some values."""
    if not any(value in copies for value in kernel.reads):
        return kernel
    root = kernel.root._replace(operands=tuple([copies.get(value, value) for value in kernel.root.operands]))
    return kernel._replace(
        ops=(*kernel.ops[:-1], root),
        reads=tuple([copies.get(value, value) for value in kernel.reads]),
        in_place=frozenset([copies.get(value, value) for value in kernel.in_place]),
    )
