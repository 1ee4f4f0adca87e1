"""Puts the loops of windowed products into kernels, where one op stood for each. Equal loops share their kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple

from pyshardy.costing.flat import Flat
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.program import WINDOWED, CostBlock, CostInput, CostKind, CostOp, CostProgram, CostTensor
from pyshardy.costing.windowed_loops import LOOP, LoopKind, Loops

KernelsOf = Callable[[CostProgram], tuple[Flat, Kernels]]
"""Gives the ops that are left before fusion, and the kernels, of a program."""


def with_windowed_kernels(
    program: CostProgram, flat: Flat, block: Kernels, kernels_of: KernelsOf
) -> tuple[Flat, Kernels]:
    """The kernels of a program with the loops of windowed products, and its values with those of the loops.

    Args:
        program: The program.
        flat: The ops that are left before fusion.
        block: The kernels.
        kernels_of: What the compiler makes of a program.
    """
    writer = _Writer(program, flat.tensors, kernels_of)
    found = writer.block(block)
    return (flat, block) if found is block else (flat._replace(tensors=writer.loops.tensors), found)


class _Made(NamedTuple):
    """The kernels of equal loops."""

    kind: CostKind
    inner: tuple[Kernels, ...]


class _Writer:
    def __init__(self, program: CostProgram, tensors: list[CostTensor], kernels_of: KernelsOf) -> None:
        self.program, self.kernels_of = program, kernels_of
        self.loops = Loops(list(tensors))
        self.made: dict[Hashable, _Made] = {}

    def block(self, block: Kernels) -> Kernels:
        """A block with loops; the same if it has none."""
        kernels = [self._kernel(kernel) for kernel in block.kernels]
        is_same = all(new is old for new, old in zip(kernels, block.kernels))
        return block if is_same else block._replace(kernels=tuple(kernels))

    def _kernel(self, kernel: Kernel) -> Kernel:
        op = kernel.root
        if op.kind.name != WINDOWED:
            inner = tuple([self.block(one) for one in kernel.inner])
            is_same = all(new is old for new, old in zip(inner, kernel.inner))
            return kernel if is_same else kernel._replace(inner=inner)
        key = (op.kind, None if op.place is None else (op.place.scope, op.place.source))
        if key not in self.made:
            self.made[key] = self._loop(op)
        made, loop = self.made[key], op.kind.fact(LOOP)
        assert isinstance(loop, LoopKind)
        state = op.operands[-len(op.results) :]
        held = op.operands[: -len(op.results)]
        root = op._replace(kind=made.kind, operands=state, rounds=loop.rounds)
        return kernel._replace(ops=(root,), reads=tuple(dict.fromkeys((*state, *held))), inner=made.inner)

    def _loop(self, op: CostOp) -> _Made:
        """The kernels of a loop: those of a program that has nothing else."""
        loop = op.kind.fact(LOOP)
        assert isinstance(loop, LoopKind)
        tensors = self.loops.tensors
        first = len(tensors)
        tensors += [*op.kind.operands, *op.kind.results, *op.kind.results]
        values = [*range(first, len(tensors))]
        count, left = len(op.results), len(op.operands)
        operands, results, tested = values[:left], values[left : left + count], values[left + count :]
        body = self.loops.body(loop, op.place, operands[:-count])
        test = CostBlock(tuple(tested), (), (tested[0],))
        kind = CostKind("stablehlo.while", op.kind.results, op.kind.results)
        # two rounds at least: a loop of one round would become a part of what is around it
        whole = CostOp(
            kind, tuple(operands[-count:]), tuple(results), (test, body), max(2, loop.rounds), place=op.place
        )
        alone = replace(
            self.program,
            tensors=tuple(tensors),
            functions=(CostBlock(tuple(operands), (whole,), tuple(results)),),
            main=0,
            inputs=tuple(CostInput("") for _ in operands),
            outputs=("",) * count,
        )
        flat, block = self.kernels_of(alone)
        self.loops.tensors = list(flat.tensors)
        (kernel,) = (one for one in block.kernels if one.inner)
        return _Made(kind, kernel.inner)
