"""The shardings that visits of ops read and write, in a run or in a replay of one.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.plans import Current
from pyshardy.propagation.program import NO_VALUE
from pyshardy.propagation.step import Update
from pyshardy.propagation.views import from_other_side, to_other_side


class ShardingStore:
    """The shardings that visits of ops read and write.

    Args:
        layout: The program.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def get(self, value: int) -> TensorSharding | None:
        """The current sharding of a value."""
        raise NotImplementedError

    def put(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value."""
        raise NotImplementedError

    def schedule_readers(self, value: int) -> None:
        """Schedule the ops to visit again after a value got a new sharding."""

    def current(self, op: int) -> Current:
        """The shardings that a visit of an op reads, tensor by tensor."""
        layout = self.layout
        found = tuple([None if value == NO_VALUE else self.get(value) for value in layout.tensors[op]])
        view = layout.program.views.get(op) if layout.program.views else None
        return found if view is None else (*found[:-1], to_other_side(view, found[-1]))

    def write(self, op: int, updates: Sequence[Update]) -> None:
        """Write the outcome of a visit of an op."""
        layout = self.layout
        tensors, view = layout.tensors[op], layout.program.views.get(op) if layout.program.views else None
        for tensor, given in updates:
            value = tensors[tensor]
            if value == NO_VALUE:
                continue
            held = given if view is None or tensor < len(tensors) - 1 else from_other_side(view, given)
            self.set(value, held)
            self.schedule_readers(value)
            for member in layout.group_of.get(value, ()):
                if member != value and self.get(member) is not given:
                    self.set(member, given)
                    self.schedule_readers(member)

    def set(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value; values of the same list that have none yet get an open one."""
        if self.get(value) is sharding:
            return
        self.put(value, sharding)
        program = self.layout.program
        for sibling in program.siblings.get(value, ()) if program.siblings else ():
            if self.get(sibling) is None:
                rank = len(program.shapes[sibling] or ())
                self.put(sibling, TensorSharding.fully_replicated(sharding.mesh, rank, is_open=True))
