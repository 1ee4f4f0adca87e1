"""Adds what a compiler's back end adds to a program: copies for layouts and collectives, expansions of ops."""

from __future__ import annotations

from math import prod

from pyshardy.costing.carried import with_carried
from pyshardy.costing.compilers import Compiler
from pyshardy.costing.flat import BITCAST, KEPT_COPY, Flat, FlatBlock, FlatOp
from pyshardy.costing.flatten import without_dead
from pyshardy.costing.hoisting import hoisted, without_twins
from pyshardy.costing.pooling import expanded
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.costing.sinking import Sinker
from pyshardy.costing.turned_products import with_turned_products
from pyshardy.costing.vector_products import with_vector_sums
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers, GatherNumbers

TRANSPOSE, CONCATENATE, SLICE = "stablehlo.transpose", "stablehlo.concatenate", "stablehlo.slice"
COPY = "stablehlo.copy"
"""A copy that the compiler adds."""
CONVERT, NEGATE = "stablehlo.convert", "stablehlo.negate"


def lower(flat: Flat, compiler: Compiler) -> Flat:
    """The program with the ops that its compiler adds."""
    if compiler.sums_vector_products:
        flat = with_vector_sums(flat)
    if compiler.carries_repeated:
        flat = with_carried(flat)
    if compiler.turns_products:
        flat = with_turned_products(flat)
    if not compiler.adds_ops:
        return flat
    lowering = _Lowering(flat, compiler)
    body = hoisted(flat.body, flat.constants | flat.uniform) if compiler.hoists else flat.body
    body = without_dead(lowering.block(body))
    return Flat(lowering.tensors, body, frozenset(lowering.uniform), flat.constants)


class _Lowering:
    def __init__(self, flat: Flat, compiler: Compiler) -> None:
        self.compiler = compiler
        self.fixed = {*flat.constants, *flat.uniform, *flat.body.arguments}
        self.tensors = list(flat.tensors)
        self.uniform = {*flat.uniform}
        self.copies: dict[tuple[int, tuple[int, ...]], int] = {}

    def block(self, block: FlatBlock, *, has_layout: bool = True) -> FlatBlock:
        """A block; its results have the default layout, or any layout."""
        around, self.copies = self.copies, {}
        ops = self._ops(block, has_layout)
        self.copies = around
        return block._replace(ops=tuple(ops))

    def _ops(self, block: FlatBlock, has_layout: bool) -> list[FlatOp]:
        ops: list[FlatOp] = []
        if self.compiler.sinks_broadcasts:
            sinker = Sinker(self.tensors, self.uniform)
            sunk = [one for flat in block.ops for one in ([flat] if flat.inner else sinker.ops(flat.op))]
            block = without_twins(block._replace(ops=tuple(sunk)))
        makers = {flat.op.results[0]: flat.op for flat in block.ops if len(flat.op.results) == 1}
        turned = self._turned(block, makers) if has_layout and self.compiler.copies_for_products else frozenset()
        for flat in block.ops:
            if flat.op.kind.name == BITCAST and flat.op.operands[0] in self.fixed:
                self.fixed.update(flat.op.results)
            inner = tuple([self.block(region, has_layout=not flat.op.is_loop) for region in flat.inner])
            if flat.op.results[:1] and flat.op.results[0] in turned:
                before = self._new(flat.op.kind.results[0])
                ops.append(FlatOp(flat.op._replace(results=(before,))))
                ops.append(self._copy(before, flat.op.results[0], KEPT_COPY))
            else:
                self._add(FlatOp(flat.op, inner), makers, ops)
        return ops

    def _turned(self, block: FlatBlock, makers: dict[int, CostOp]) -> frozenset[int]:
        """Results of a collective that are transposed at once: copies restore the layout, and change it again."""
        found = set()
        for value in block.results:
            op = makers.get(value)
            if op is not None and op.kind.name == TRANSPOSE:
                source = makers.get(op.operands[0])
                if source is not None and source.traffic is not None and not _moves_nothing(op):
                    found.add(value)
        return frozenset(found)

    def _add(self, flat: FlatOp, makers: dict[int, CostOp], ops: list[FlatOp]) -> None:
        op, name = flat.op, flat.op.kind.name
        if name == "stablehlo.dot_general" and self.compiler.sums_inner_products and _is_inner(op):
            op = self._inner_product(op, ops)
        elif name == "stablehlo.dot_general" and self.compiler.copies_for_products:
            op = self._product(op, makers, ops)
        elif name == "stablehlo.convolution" and self.compiler.copies_for_products:
            op = self._convolution(op, ops)
        elif name == "stablehlo.all_to_all" and self.compiler.splits_all_to_all and len(op.results) == 1:
            self._all_to_all(op, ops)
            return
        elif name == "stablehlo.select_and_scatter" and self.compiler.expands_pooling:
            ops += [FlatOp(one) for one in expanded(op, self._new)]
            return
        elif name in _SUMMING and self.compiler.promotes_sums and _is_short(op):
            self._promoted_sum(op, ops)
            return
        elif name == "stablehlo.reduce" and self.compiler.negates_sums and _is_sum(op):
            op = self._negated_sum(op, makers, ops)
        elif name == "stablehlo.scatter" and self.compiler.keeps_reshapes and len(op.results) == 1:
            op = self._scatter(op, ops)
        elif op.is_loop and self.compiler.copies_first_state:
            op = self._loop(op, ops)
        elif name == "stablehlo.all_gather" and self.compiler.copies_for_gathers and len(op.results) == 1:
            shape = op.kind.operands[0].shape or ()
            if any(size != 1 for size in shape[: int(str(op.kind.fact("all_gather_dim", 0)))]):
                gathered = self._new(op.kind.results[0])
                ops.append(FlatOp(op._replace(results=(gathered,))))
                ops.append(self._copy(gathered, op.results[0]))
                return
        ops.append(FlatOp(op, flat.inner))

    def _new(self, tensor: CostTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _copy(self, value: int, result: int, name: str = TRANSPOSE) -> FlatOp:
        kind = CostKind(name, (self.tensors[value],), (self.tensors[result],))
        return FlatOp(CostOp(kind, (value,), (result,)))

    def _loop(self, op: CostOp, ops: list[FlatOp]) -> CostOp:
        """A loop that starts from copies of constants and arguments."""
        operands = list(op.operands)
        for place, value in enumerate(operands):
            if value in self.fixed or value in operands[:place]:
                operands[place] = self._new(self.tensors[value])
                ops.append(self._copy(value, operands[place], COPY))
        return op._replace(operands=tuple(operands))

    def _inner_product(self, op: CostOp, ops: list[FlatOp]) -> CostOp:
        """An elementwise multiplication and a sum instead of a product of vectors."""
        whole = op.kind.operands[0]
        product = self._new(whole)
        ops.append(FlatOp(CostOp(CostKind("stablehlo.multiply", (whole, whole), (whole,)), op.operands, (product,))))
        kind = CostKind("stablehlo.reduce", (whole,), op.kind.results, (("body", ("stablehlo.add",)),))
        return CostOp(kind, (product,), op.results, place=op.place)

    def _promoted_sum(self, op: CostOp, ops: list[FlatOp]) -> None:
        """A sum over devices of f32, with conversions before and after it."""
        operands, results = (
            tuple([_as_f32(one) for one in op.kind.operands]),
            tuple([_as_f32(one) for one in op.kind.results]),
        )
        sent, summed = [self._new(one) for one in operands], [self._new(one) for one in results]
        ops += [self._copy(value, new, CONVERT) for value, new in zip(op.operands, sent)]
        kind = CostKind(op.kind.name, operands, results, op.kind.facts)
        ops.append(FlatOp(op._replace(kind=kind, operands=tuple(sent), results=tuple(summed))))
        ops += [self._copy(new, value, CONVERT) for new, value in zip(summed, op.results)]

    def _negated_sum(self, op: CostOp, makers: dict[int, CostOp], ops: list[FlatOp]) -> CostOp:
        """The negated sum of values instead of the sum of their negatives."""
        maker = makers.get(op.operands[0])
        if maker is None or maker.kind.name != NEGATE:
            return op
        total = self._new(op.kind.results[0])
        ops.append(FlatOp(op._replace(operands=(*maker.operands, *op.operands[1:]), results=(total,))))
        return CostOp(CostKind(NEGATE, op.kind.results, op.kind.results), (total,), op.results, place=op.place)

    def _product(self, op: CostOp, makers: dict[int, CostOp], ops: list[FlatOp]) -> CostOp:
        """A product with operands in the layout that it needs; it reads through transposes that serve it alone."""
        numbers = op.kind.fact("dot_dimension_numbers")
        assert isinstance(numbers, DotNumbers)
        sides = (
            (numbers.lhs_batching, numbers.lhs_contracting),
            (numbers.rhs_batching, numbers.rhs_contracting),
        )
        operands = list(op.operands)
        for place, (batching, contracting) in enumerate(sides):
            value = operands[place]
            shape = op.kind.operands[place].shape or ()
            maker = makers.get(value)
            is_turned = maker is not None and maker.kind.name == TRANSPOSE and maker.kind.facts
            if is_turned and maker is not None and maker.kind.results[0] == op.kind.operands[place]:
                order: tuple[int, ...] = maker.kind.fact("permutation")  # type: ignore[assignment]
                source = maker.kind.operands[0].shape or ()
                turned = tuple(order[dim] for dim in batching), tuple(order[dim] for dim in contracting)
                if any(_in_order(source, one) for one in _product_orders(len(source), *turned, is_right=place == 1)):
                    operands[place] = maker.operands[0]
                    continue
            orders = _product_orders(len(shape), batching, contracting, is_right=place == 1)
            if not any(_in_order(shape, one) for one in orders):
                operands[place] = self._turned_copy(value, orders[0], ops)
            elif self.compiler.keeps_reshapes and not _is_matrix(shape, batching, contracting):
                operands[place] = self._as_matrix(value, op.kind.operands[place], ops)
        return op._replace(operands=tuple(operands))

    def _scatter(self, op: CostOp, ops: list[FlatOp]) -> CostOp:
        """A scatter whose first dimension of updates is the only one, with windows as large as those of the operand."""
        numbers = op.kind.fact("scatter_dimension_numbers")
        if not isinstance(numbers, GatherNumbers) or len(op.operands) != 3:
            return op
        target, indices, updates = op.operands
        rank = len(op.kind.operands[2].shape or ())
        places = [dim for dim in range(rank) if dim not in numbers.window]
        if len(places) != 1:
            indices = self._as_matrix(indices, op.kind.operands[1], ops)
        if len(places) > 1 or places != [*range(len(places))]:
            updates = self._turned_copy(updates, (*places, *numbers.window), ops)
        elif numbers.dropped:
            updates = self._as_matrix(updates, op.kind.operands[2], ops)
        return op._replace(operands=(target, indices, updates))

    def _as_matrix(self, value: int, tensor: CostTensor, ops: list[FlatOp]) -> int:
        """A value reshaped to a matrix, once per block."""
        if (value, ()) not in self.copies:
            if value in self.fixed:
                return value
            flat = CostTensor((tensor.elements,), tensor.dtype, tensor.bytes)
            self.copies[value, ()] = self._new(flat)
            ops.append(self._copy(value, self.copies[value, ()], BITCAST))
        return self.copies[value, ()]

    def _turned_copy(self, value: int, order: tuple[int, ...], ops: list[FlatOp]) -> int:
        """A copy of a value with its dimensions in another order, once per block."""
        if (value, order) not in self.copies:
            self.copies[value, order] = self._new(self.tensors[value])
            ops.append(self._copy(value, self.copies[value, order]))
        return self.copies[value, order]

    def _convolution(self, op: CostOp, ops: list[FlatOp]) -> CostOp:
        """A convolution with batch first and features last, kernels with input features before output features."""
        numbers = op.kind.fact("dimension_numbers")
        assert isinstance(numbers, ConvolutionNumbers)
        orders = (
            (numbers.lhs_batch, *numbers.lhs_spatial, numbers.lhs_feature),
            (*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature),
        )
        operands = list(op.operands)
        for place, order in enumerate(orders):
            shape = op.kind.operands[place].shape or ()
            if not _in_order(shape, order):
                operands[place] = self._turned_copy(operands[place], order, ops)
        order = (numbers.output_batch, *numbers.output_spatial, numbers.output_feature)
        if _in_order(op.kind.results[0].shape or (), order):
            return op._replace(operands=tuple(operands))
        result = self._new(op.kind.results[0])
        ops.append(FlatOp(op._replace(operands=tuple(operands), results=(result,))))
        return CostOp(CostKind(TRANSPOSE, op.kind.results, op.kind.results), (result,), op.results)

    def _all_to_all(self, op: CostOp, ops: list[FlatOp]) -> None:
        """An all-to-all of one array per device, with slices before it and a concatenation after it."""
        count = 1 if op.traffic is None else op.traffic.group_size
        whole = op.kind.operands[0]
        part = CostTensor(None, whole.dtype, -(-whole.bytes // count))
        cut = [self._new(part) for _ in range(count)]
        sent = [self._new(part) for _ in range(count)]
        for value in cut:
            ops.append(FlatOp(CostOp(CostKind(SLICE, (whole,), (part,)), op.operands, (value,), place=op.place)))
        kind = CostKind(op.kind.name, (part,) * count, (part,) * count, op.kind.facts)
        ops.append(FlatOp(op._replace(kind=kind, operands=tuple(cut), results=tuple(sent))))
        ops.append(FlatOp(CostOp(CostKind(CONCATENATE, (part,) * count, op.kind.results), tuple(sent), op.results)))


_SUMMING = frozenset(("stablehlo.all_reduce", "stablehlo.reduce_scatter"))
"""Collectives that add."""


def _is_short(op: CostOp) -> bool:
    """Whether all operands are 16-bit floats."""
    return all(tensor.dtype in ("bf16", "f16") for tensor in op.kind.operands)


def _as_f32(tensor: CostTensor) -> CostTensor:
    return CostTensor(tensor.shape, "f32", 2 * tensor.bytes)


def _is_sum(op: CostOp) -> bool:
    return len(op.results) == 1 and op.kind.fact("body") == ("stablehlo.add",)


def _is_matrix(shape: tuple[int, ...], batching: tuple[int, ...], contracting: tuple[int, ...]) -> bool:
    """Whether an operand of a product is already one matrix per batch."""
    return len(contracting) == 1 and len(shape) == len(batching) + 2 and 1 not in shape


def _is_inner(op: CostOp) -> bool:
    """Whether a product has one number per batch: both operands have only batch and contracting dimensions."""
    lhs, rhs = op.kind.operands
    if not lhs.elements or len(op.results) != 1 or op.kind.results[0].dtype != lhs.dtype:
        return False
    return lhs.elements == rhs.elements and op.kind.results[0].elements == _batches(op) < lhs.elements


def _batches(op: CostOp) -> int:
    numbers = op.kind.fact("dot_dimension_numbers")
    assert isinstance(numbers, DotNumbers)
    shape = op.kind.operands[0].shape or ()
    return prod(shape[dim] for dim in numbers.lhs_batching)


def _in_order(shape: tuple[int, ...], order: tuple[int, ...]) -> bool:
    moved = [dim for dim in order if shape[dim] != 1]
    return moved == sorted(moved)


def _moves_nothing(op: CostOp) -> bool:
    """Whether a transpose keeps the order of elements."""
    order: tuple[int, ...] = op.kind.fact("permutation", ())  # type: ignore[assignment]
    shape = op.kind.operands[0].shape or ()
    moved = [dim for dim in order if shape[dim] != 1]
    return moved == sorted(moved)


def _product_orders(
    rank: int, batching: tuple[int, ...], contracting: tuple[int, ...], *, is_right: bool
) -> tuple[tuple[int, ...], ...]:
    """The orders of dimensions in which a product takes an operand.

    A matrix may be transposed, also each one of a batch. Of operands with more dimensions,
    contracted dimensions come last on the left and first on the right.

    >>> _product_orders(3, (0,), (1,), is_right=False), _product_orders(2, (), (1,), is_right=True)
    (((0, 2, 1), (0, 1, 2)), ((1, 0), (0, 1)))
    """
    free = tuple(dim for dim in range(rank) if dim not in batching and dim not in contracting)
    inner, outer = (*batching, *contracting, *free), (*batching, *free, *contracting)
    is_batch_of_matrices = len(contracting) == len(free) == 1 and batching == tuple(range(rank - 2))
    if batching and not is_batch_of_matrices:
        return (inner,) if is_right else (outer,)
    return (inner, outer) if is_right else (outer, inner)
