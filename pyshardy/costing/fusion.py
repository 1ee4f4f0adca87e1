"""Groups ops into kernels, as a compiler would fuse them.

Elementwise ops, and others that can compute single elements, are fused into their users; cheap ones into every user.
Contractions, sorts, collectives and calls are kernels of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyshardy.costing.choice import Choice
from pyshardy.costing.compilers import ACCELERATOR, Compiler
from pyshardy.costing.flat import BITCAST, Flat, FlatBlock, FlatOp
from pyshardy.costing.joining import joined
from pyshardy.costing.kernels import UPDATING, Kernel, Kernels, without_bitcasts
from pyshardy.costing.multi_output import merged
from pyshardy.costing.orders import find_orders
from pyshardy.costing.own_copies import with_own_copies
from pyshardy.costing.products import with_products
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.costing.scatters import with_scatters
from pyshardy.costing.siblings import without_overwriting
from pyshardy.costing.softmaxes import softmaxes, with_softmaxes
from pyshardy.costing.work import TRANSCENDENTAL, is_product
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE

_LOOPS = ELEMENTWISE | frozenset(
    [
        *op_names("stablehlo.", "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather iota pad"),
        *op_names("stablehlo.", "reduce reverse slice transpose bitcast_convert constant partition_id map"),
        *op_names("stablehlo.", "copy replica_id reduce_precision"),
        BITCAST,
        *TRANSCENDENTAL,
    ]
)
"""Ops that can be parts of a kernel that computes element by element."""
_EXPENSIVE = (TRANSCENDENTAL - frozenset(op_names("stablehlo.", "sine cosine"))) | frozenset(
    op_names("stablehlo.", "divide gather reduce remainder")
)
"""Ops that are not computed twice to save memory."""
_REPEATED = ELEMENTWISE | TRANSCENDENTAL
"""Ops that some compilers compute again in every reader of a costly value: costly ones, and the ops before them."""
_MOST_REPEATED = 30
"""The most ops that are computed again with a costly one."""
_ONCE = frozenset(op_names("stablehlo.", "concatenate"))
"""Ops that move much data for a small result, and are not computed twice."""
_BRANCHING = frozenset(op_names("stablehlo.", "concatenate pad"))
"""Ops whose elements come from several places, which XLA computes once in a kernel of several ops."""
_SLICES = frozenset(op_names("stablehlo.", "slice dynamic_slice"))
_WITH_LIBRARY_REDUCES = frozenset(op_names("stablehlo.", "multiply broadcast_in_dim"))
"""Ops that a library computes while it reduces."""
_SUM = "stablehlo.all_reduce"
_MOST_OPS = 400
"""A kernel of more ops is not made longer."""
_MOST_PLACES = 15
"""An op is not computed at more places of one kernel, as XLA limits it."""


def fuse(flat: Flat, compiler: Compiler = ACCELERATOR) -> Kernels:
    """The kernels of a program.

    Args:
        flat: The program.
        compiler: What is known of the compiler.
    """
    fuser = _Fuser(flat, compiler)
    block = fuser.block(flat.body)
    if fuser.softmaxes:
        block = with_softmaxes(block, fuser.softmaxes, flat.tensors)
    if compiler.fills_in_scatters:
        block = with_scatters(block, flat.tensors, can_fuse, computes_updates=compiler.merges_kernels)
    if compiler.merges_kernels:
        orders = find_orders(flat).of
        block = merged(with_own_copies(block, flat.tensors, orders), flat.tensors, orders)
    if compiler.fuses_into_products:
        block = without_overwriting(
            with_products(block, flat.tensors, lambda name: can_fuse(name) and name not in compiler.alone)
        )
    if compiler.keeps_reshapes or compiler.keeps_barriers:
        block = without_bitcasts(block, {})
    return joined(block, compiler.joins, compiler.joined_bytes) if compiler.joins else block


class _Fuser:
    def __init__(self, flat: Flat, compiler: Compiler) -> None:
        self.recomputes, self.library_elements = compiler.recomputes, compiler.library_elements
        self.repeats_costly, self.sums_in_place = compiler.repeats_costly, compiler.sums_in_place
        self.repeats_all = compiler.fuses_into_products
        self.alone = compiler.alone
        self.makers: dict[int, CostOp] = {}
        self.tensors, self.uniform, self.constants = flat.tensors, flat.uniform, flat.constants
        self.loops: dict[CostKind, bool] = {}
        self.softmax_row, self.softmaxes = compiler.softmax_row, dict[int, int]()

    def _is_loop(self, op: CostOp) -> bool:
        found = self.loops.get(op.kind)
        if found is None:
            is_loop = _is_loop(op) and op.kind.name not in self.alone
            found = self.loops[op.kind] = is_loop and not self._is_library_reduce(op)
        return found

    def block(self, block: FlatBlock) -> Kernels:
        makers = {value: flat for flat in block.ops for value in flat.op.results}
        choice = self._decide(block)
        kernels = []
        for flat in block.ops:
            if flat.op.results and not choice.kept.issuperset(flat.op.results):
                continue
            kernels.append(self._kernel(flat, makers, choice))
        return Kernels(block.arguments, tuple(kernels), block.results)

    def _decide(self, block: FlatBlock) -> Choice:
        """The values that are kept in memory, and those that each kernel computes for itself."""
        choice = Choice(block.results)
        self.makers.update((value, flat.op) for flat in block.ops for value in flat.op.results)
        if self.softmax_row:
            self.softmaxes.update(softmaxes(block, self.softmax_row))
        if self.recomputes:
            choice.find_ancestors(block)
        for flat in block.ops:
            if flat.op.kind.name == "stablehlo.broadcast_in_dim":
                choice.spread.update(flat.op.results)
            for value in dict.fromkeys(flat.op.operands):
                choice.users.setdefault(value, []).append(flat.op)
            for region in flat.inner:
                choice.kept.update(value for value in region.outer if not self._is_anywhere(value))
        if self.recomputes:
            choice.find_order(block)
        for flat in reversed(block.ops):
            op = flat.op
            if self._is_loop(op):
                self._join(op, choice)
            else:
                choice.kept.update(op.results)
                if self._is_library_reduce(op):
                    choice.library.add(op.results[0])
                    choice.start(op)
        return choice

    def _join(self, op: CostOp, choice: Choice) -> None:
        """Decide which of the kernels that read the value of an op compute it for themselves."""
        (value,) = op.results
        readers = choice.readers.get(value, {})
        consumers = choice.users.get(value, ())
        if any(not self._is_loop(user) and not self._is_library_reduce(user) for user in consumers) or not consumers:
            choice.kept.add(value)
        if value in self.softmaxes:
            joined = []
            choice.kept.add(value)
        elif value in self.uniform or value in self.constants or op.kind.name == "stablehlo.iota":
            joined = list(readers)
        else:
            joined = [kernel for kernel in readers if self._may_join(op, kernel, choice)]
            if len(joined) < len(readers):
                choice.kept.add(value)
            if self._is_costly(op) and len(joined) < len(readers):
                joined = []  # who reads it does not compute it as well
            is_again = len(readers) > 1 and not (self.recomputes or (self.repeats_all and self._pays_again(op, choice)))
            if (value in choice.kept or is_again) and not self._is_unary(op, choice):
                joined = []
            if value in choice.kept:
                joined = [kernel for kernel in joined if kernel not in choice.library]
            if joined and self.recomputes and not self._is_unary(op, choice) and choice.is_needed_elsewhere(value):
                choice.kept.add(value)
                joined = []
        if len(joined) < len(readers):
            choice.kept.add(value)
        for kernel in joined:
            choice.join(op, kernel)
        if value in choice.kept:
            choice.start(op)

    def _may_join(self, op: CostOp, kernel: int, choice: Choice) -> bool:
        """Whether a kernel may compute the value of an op for itself."""
        (value,) = op.results
        if op.kind.name == "stablehlo.dynamic_update_slice" or len(choice.members[kernel]) >= _MOST_OPS:
            return False
        if kernel in choice.library:
            return op.kind.name in _WITH_LIBRARY_REDUCES and len(choice.users[value]) == 1
        if choice.targets.get(kernel) in op.operands:
            return False  # a kernel does not read elsewhere what it updates in place
        alone = len(choice.readers[value]) == 1 and value not in choice.kept
        if op.kind.name in _ONCE and not alone and not self.recomputes:
            return False
        places = choice.places(value, kernel)
        if self.recomputes and op.kind.name in _BRANCHING and choice.is_fused(kernel, value):
            return places == 1 and len(choice.readers[value]) == 1 and len(choice.users[value]) == 1
        if self._is_costly(op):
            is_once = places == 1 and not choice.readers[value][kernel].is_repeated
            return is_once and (alone or self._pays_again(op, choice))
        if op.kind.name == "stablehlo.pad" and self._is_sliced(value, choice):
            return False
        return places <= _MOST_PLACES or op.kind.name == "stablehlo.broadcast_in_dim"

    def _is_costly(self, op: CostOp) -> bool:
        """Whether an op costs more than moving its operands; the division by a constant is a multiplication."""
        is_scaling = op.kind.name == "stablehlo.divide" and op.operands[1] in self.constants
        return op.kind.name in _EXPENSIVE and not is_scaling

    def _pays_again(self, op: CostOp, choice: Choice) -> bool:
        """Whether all readers of a costly value compute it for themselves, as this moves less than storing it."""
        (value,) = op.results
        if not self.repeats_costly or value in choice.kept or op.kind.name not in _REPEATED:
            return False
        sources = self._sources(op, choice)
        if sources is None:
            return False
        readers = len(choice.readers[value])
        return sum(self.tensors[one].bytes for one in sources) * readers < self.tensors[value].bytes * (1 + readers)

    def _sources(self, op: CostOp, choice: Choice) -> set[int] | None:
        """The arrays from which an op's value is computed element by element; None if they are many ops away.

        An op between that reads several computed values is computed again only on TPUs.
        """
        sources: set[int] = set()
        pending, seen = [op], {op.results[0]}
        while pending:
            current = pending.pop()
            if len(seen) > _MOST_REPEATED:
                return None
            if not (self.repeats_all or self._is_unary(current, choice)):
                (value,) = current.results
                if len(choice.users[value]) == 1 or current is op:
                    return None
                sources.add(value)  # it is stored
                continue
            for value in current.operands:
                maker = self.makers.get(value)
                if value in self.uniform or value in choice.spread or value in seen:
                    continue
                if maker is None or maker.kind.name not in _REPEATED or value in choice.kept:
                    sources.add(value)
                else:
                    seen.add(value)
                    pending.append(maker)
        return sources

    def _is_sliced(self, value: int, choice: Choice) -> bool:
        """Whether several slices read a value, and more of it than it has."""
        slices = [user.kind.results[0].bytes for user in choice.users[value] if user.kind.name in _SLICES]
        return len(slices) > 1 and (self.recomputes or sum(slices) > self.tensors[value].bytes)

    def _is_library_reduce(self, op: CostOp) -> bool:
        """Whether a library computes the reduction; its kernel can hold few other ops."""
        return (
            self.library_elements > 0
            and op.kind.name == "stablehlo.reduce"
            and len(op.results) == 1
            and op.kind.operands[0].dtype == "f32"
            and op.kind.operands[0].elements >= self.library_elements
        )

    def _is_unary(self, op: CostOp, choice: Choice) -> bool:
        """Whether computing an op again reads no more: one array of the same rank, and broadcast values."""
        if op.kind.name == "stablehlo.reduce" or (op.kind.name in _ONCE and not self.recomputes):
            return False
        result = self.tensors[op.results[0]]
        rank = _true_rank(result)
        arrays = [
            value
            for value in op.operands
            if value not in self.uniform and value not in choice.spread and _true_rank(self.tensors[value]) >= rank
        ]
        return len(arrays) <= 1 or sum(self.tensors[value].bytes for value in {*op.operands}) <= result.bytes

    def _kernel(self, flat: FlatOp, makers: Mapping[int, FlatOp], choice: Choice) -> Kernel:
        op = flat.op
        inner = tuple([self.block(region) for region in flat.inner])
        outer = [value for region in flat.inner for value in region.outer if not self._is_anywhere(value)]
        if inner or len(op.results) != 1 or op.results[0] not in choice.members:
            reads = dict.fromkeys((*self._from_here(op.operands, makers), *outer))
            is_in_place = op.kind.name in UPDATING or (self.sums_in_place and op.kind.name == _SUM)
            in_place = frozenset(op.operands[:1] if is_in_place else ())
            return Kernel((op,), tuple(reads), op.results, in_place, inner)
        ops, read, shared = self._gather(op, makers, choice.members[op.results[0]])
        return Kernel(tuple(ops), tuple(read), op.results, frozenset(shared))

    def _gather(
        self, root: CostOp, makers: Mapping[int, FlatOp], members: set[int]
    ) -> tuple[list[CostOp], list[int], set[int]]:
        """The ops that run in one kernel with an op, producers first, and the values that they read."""
        ops: dict[int, CostOp] = {}
        reads: dict[int, bool] = {}
        size = self.tensors[root.results[0]].bytes
        pending: list[tuple[CostOp, bool]] = [(root, True)]
        seen: set[int] = {root.results[0]}
        while pending:
            op, is_pointwise = pending.pop()
            ops[op.results[0]] = op
            for place, value in enumerate(op.operands):
                inner = is_pointwise and (
                    op.kind.name in ELEMENTWISE or (op.kind.name == "stablehlo.dynamic_update_slice" and place == 0)
                )
                if value in members and value in makers:
                    if value not in seen:
                        seen.add(value)
                        pending.append((makers[value].op, inner))
                else:
                    reads[value] = reads.get(value, True) and inner
        in_place = {value for value, flag in reads.items() if flag and self.tensors[value].bytes == size}
        order = [op for op in reversed(ops.values()) if op is not root]
        return [*order, root], self._from_here(reads, makers), in_place

    def _is_anywhere(self, value: int) -> bool:
        """Whether a block computes a value for itself instead of reading it from outside."""
        return value in self.uniform or value in self.constants

    def _from_here(self, values: Iterable[int], makers: Mapping[int, FlatOp]) -> list[int]:
        return [value for value in values if value in makers or not self._is_anywhere(value)]


def _true_rank(tensor: CostTensor) -> int:
    """The number of dimensions with more than one element."""
    return sum(size != 1 for size in tensor.shape or ())


def _is_loop(op: CostOp) -> bool:
    """Whether an op can be part of a kernel that computes element by element; an outer product can."""
    if op.kind.name == "stablehlo.dot_general" and len(op.results) == 1:
        return not is_product(op.kind)
    return op.kind.name in _LOOPS and len(op.results) == 1


def can_fuse(name: str) -> bool:
    """Whether an op of this name can be part of a kernel that computes element by element.

    >>> can_fuse("stablehlo.add"), can_fuse("stablehlo.sort")
    (True, False)
    """
    return name in _LOOPS


def is_expensive(name: str) -> bool:
    """Whether an op of this name is not computed twice to save memory.

    >>> is_expensive("stablehlo.exponential"), is_expensive("stablehlo.add")
    (True, False)
    """
    return name in _EXPENSIVE
