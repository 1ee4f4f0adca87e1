"""A lower bound of the time of a program under any sharding, by the cost model: the time of its products alone.

Each product or convolution of a program is one kernel in the program of a device, whatever the shardings. Kernels run
one after the other. A device computes at least its equal part of each. That kernel takes at least the time of its
arithmetic, the time to read its operands and to write its result, and the time of a launch. The bound is the sum of
these times. It leaves out all other kernels and all collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pyshardy.costing.compilers import ACCELERATOR
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.lowering import lower
from pyshardy.costing.program import CostOp, CostProgram, CostTensor
from pyshardy.costing.work import work_of

_PRODUCTS = frozenset(("stablehlo.dot", "stablehlo.dot_general"))
_CONVOLUTION = "stablehlo.convolution"


def least_seconds(
    program: CostProgram, hardware: Hardware, devices: int, count: Callable[[CostOp], int] = lambda op: 1
) -> float:
    """A lower bound of the time of one step over all shardings of inputs, outputs and intermediate values.

    Args:
        program: The program before it is partitioned, with the shapes of whole arrays.
        hardware: The chip.
        devices: The number of devices of the mesh.
        count: How many ops one stands for, such as one for each of many equal layers.

    >>> from pyshardy import load
    >>> from pyshardy.costing.chips import find_hardware
    >>> from pyshardy.ir.cost_program import cost_program
    >>> module = load('''
    ... func.func @main(%a: tensor<8192x4096xbf16>, %b: tensor<4096x8192xbf16>) -> tensor<8192x8192xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x8192xbf16>) -> tensor<8192x8192xbf16>
    ...   return %0 : tensor<8192x8192xbf16>
    ... }''')
    >>> program, chip = cost_program(module.root, {}), find_hardware("h100")
    >>> print(f"{least_seconds(program, chip, 1) * 1e3:.2f} ms, {least_seconds(program, chip, 8) * 1e3:.2f} ms")
    0.85 ms, 0.11 ms
    """
    flat = lower(flatten(program), ACCELERATOR)
    bound = _Bound(hardware, devices, flat.tensors)
    return sum(count(kernel.root) * bound.kernel(kernel, None) for kernel in fuse(flat).kernels)


class _Bound:
    def __init__(self, hardware: Hardware, devices: int, tensors: list[CostTensor]) -> None:
        self.hardware, self.devices, self.tensors = hardware, devices, tensors

    def block(self, block: Kernels) -> float:
        """The bound of one run of a block of a loop or a conditional."""
        known = {*block.arguments, *(value for kernel in block.kernels for value in kernel.writes)}
        return sum(self.kernel(kernel, known) for kernel in block.kernels)

    def kernel(self, kernel: Kernel, known: Collection[int] | None) -> float:
        """The bound of one run of a kernel. Reading a value counts only if the value is known to be stored."""
        op = kernel.root
        if not kernel.inner:
            return self._product(kernel, known) if self._stays_a_product(kernel) else 0.0
        inside = [self.block(region) for region in kernel.inner]
        if op.is_loop:
            rounds = 1 if op.rounds is None else op.rounds
            return inside[0] * (rounds + 1) + inside[1] * rounds
        return max(inside)

    def _stays_a_product(self, kernel: Kernel) -> bool:
        """Whether the op is a product on a device too, however it is sharded.

        A product of which a device has a depth of 1 is computed element by element, maybe in another kernel. With
        base dilation, and with groups of the batch, devices need not have equal parts of a convolution.
        """
        kind = kernel.root.kind
        if kind.name in _PRODUCTS:
            return work_of(kind).flops > 2.0 * kind.results[0].elements * self.devices
        dilation: tuple[int, ...] = kind.fact("lhs_dilation", ())  # type: ignore[assignment]
        is_plain = kind.fact("batch_group_count", 1) == 1 and all(step == 1 for step in dilation)
        return kind.name == _CONVOLUTION and is_plain

    def _product(self, kernel: Kernel, known: Collection[int] | None) -> float:
        """The least time of a product on a device."""
        kind, hardware = kernel.root.kind, self.hardware
        rate = hardware.matrix_flops_per_s(kind.operands[0].dtype) * hardware.matrix_efficiency
        read = [value for value in kernel.reads if known is None or value in known]
        moved = sum(self.tensors[value].bytes for value in (*read, *kernel.writes))
        shared = max(work_of(kind).flops / rate, moved / hardware.bytes_per_s(is_product=True)) / self.devices
        return max(shared, hardware.kernel_floor_s)
