"""Gather and scatter, which share one scheme: a scatter is a gather read backwards.

Source: docs/semantics/rules.md#gather-and-scatter
"""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.dimension_numbers import GatherNumbers
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder

_PASS, _REDUCE, _REPLICATE = FactorKind.PASS_THROUGH, FactorKind.REDUCTION, FactorKind.NEED_REPLICATION


def gather(spec: OpSpec, conservative: bool) -> Rule:
    """Sharded input dimensions that windows pick from give partial results; index dimensions pass through.

    >>> numbers = GatherNumbers(window=(1,), dropped=(0,), index_vector=1)
    >>> spec = OpSpec("stablehlo.gather", [(50, 16), (7,)], [(7, 16)], {"dimension_numbers": numbers})
    >>> print(gather(spec, False))
    <([k, j], [i])->([i, j]) {i=7, j=16, k=50} reduction={k}>
    """
    return _Scheme(builder_of(spec), spec.attr("dimension_numbers"), inputs=[0], indices=1, windows=[2]).fill()


def scatter(spec: OpSpec, conservative: bool) -> Rule:
    """Updates of one place are reduced if the fact `plain_combiner` holds, and else need replication.

    >>> facts = {"scatter_dimension_numbers": GatherNumbers((1,), (0,), index_vector=1), "plain_combiner": True}
    >>> spec = OpSpec("stablehlo.scatter", [(50, 16), (7, 1), (7, 16)], [(50, 16)], facts)
    >>> print(scatter(spec, False))
    <([k, j], [i, l], [i, j])->([k, j]) {i=7, j=16, k=50, l=1} reduction={i} need_replication={l}>
    """
    builder = builder_of(spec)
    count = len(spec.result_shapes)
    scheme = _Scheme(
        builder,
        spec.attr("scatter_dimension_numbers"),
        inputs=[*range(count), *builder.results],
        indices=count,
        windows=list(range(count + 1, 2 * count + 1)),
        is_scatter=True,
        index_kind=_REDUCE if spec.attr("plain_combiner", False) else _REPLICATE,
    )
    return scheme.fill()


@dataclass(slots=True)
class _Scheme:
    """The three parties of a gather or scatter, as numbers of values, and the walk over the windows' dimensions.

    Attributes:
        builder: The rule under construction.
        numbers: The parts the dimensions play.
        inputs: What is read or updated; for a scatter with its results.
        indices: The start indices.
        windows: What was read, or the updates.
        is_scatter: Which of the two it is.
        index_kind: Kind of the factors that run over the indices, batching dimensions apart.
    """

    builder: RuleBuilder
    numbers: GatherNumbers
    inputs: list[int]
    indices: int
    windows: list[int]
    is_scatter: bool = False
    index_kind: FactorKind = _PASS

    def fill(self) -> Rule:
        numbers = self.numbers
        input_shape, index_shape = self.shape(self.inputs[0]), self.shape(self.indices)
        not_in_window = (*numbers.dropped, *numbers.input_batching)
        input_dims = iter([dim for dim in range(len(input_shape)) if dim not in not_in_window])
        index_dims = iter([dim for dim in range(len(index_shape)) if dim != numbers.index_vector])
        for dim in range(len(self.shape(self.windows[0]))):
            if dim in numbers.window:
                self.add_window(next(input_dims), dim)
            else:
                self.add_batch(next(index_dims), dim)
        for dim in numbers.dropped:
            self.add_dropped(dim, input_shape[dim])
        if numbers.index_vector < len(index_shape):
            vector = numbers.index_vector
            self.builder.factor(index_shape[vector], [(self.indices, vector)], _REPLICATE)
        return self.builder.finish()

    def shape(self, value: int) -> tuple[int, ...]:
        return self.builder.shapes[value] or ()

    def add_window(self, input_dim: int, window_dim: int) -> None:
        """A dimension of the windows that is one of the input too, whole or cut."""
        size, cut = self.shape(self.inputs[0])[input_dim], self.shape(self.windows[0])[window_dim]
        inputs = [(value, input_dim) for value in self.inputs]
        windows = [(value, window_dim) for value in self.windows]
        if size == cut:
            self.builder.factor(size, inputs + windows)
        elif self.is_scatter or cut == 1:
            self.builder.factor(size, inputs, _REPLICATE if self.is_scatter else _REDUCE)
            self.builder.factor(cut, windows, _REPLICATE)
        else:
            self.builder.factor(size, inputs + windows, _REPLICATE, blocked=True)

    def add_batch(self, index_dim: int, window_dim: int) -> None:
        """A dimension of the windows that is one of the indices, and of the input if that is a batching dimension."""
        size, kind = self.shape(self.windows[0])[window_dim], self.index_kind
        places = [(self.indices, index_dim), *((value, window_dim) for value in self.windows)]
        if index_dim in self.numbers.index_batching:
            paired = self.numbers.input_batching[self.numbers.index_batching.index(index_dim)]
            places += [(value, paired) for value in self.inputs]
            kind = _PASS
        self.builder.factor(size, places, kind)

    def add_dropped(self, dim: int, size: int) -> None:
        """A dimension of the input that the windows lack."""
        if self.is_scatter:
            kind = _PASS
        else:
            kind = _REPLICATE if size == 1 else _REDUCE
        self.builder.factor(size, [(value, dim) for value in self.inputs], kind)
