"""The module after every user priority, written to files.

Source: docs/semantics/propagation.md#dumps
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.dumps import module_text, save_text


@dataclass(slots=True)
class RoundDumps:
    """Writes `{directory}/{number}.propagation_after_user_priority_{priority}.mlir` for every priority but the last.

    Attributes:
        directory: The directory.
        number: The number of the first file.
        context: The pass context.
        index: The ops and values that the numbers of the program stand for.
        stored: The shardings that are written on the nodes.
    """

    directory: str
    number: int
    context: PassContext
    index: ProgramIndex
    stored: Sequence[TensorSharding | None]
    _last: tuple[str, str] | None = field(default=None, init=False)

    def after_round(self, priority: int, engine: PropagationEngine) -> None:
        """Write the module after the previous round, which was not the last one, and record the current state."""
        if self._last is not None:
            title, text = self._last
            save_text(text, self.directory, self.number, title)
        self._bring_up_to_date(engine)
        text = module_text(self.context.root, self.context)
        self._last = f"propagation_after_user_priority_{priority}", text

    def _bring_up_to_date(self, engine: PropagationEngine) -> None:
        """Write the current shardings and the rules onto the nodes, and remove the dead ops."""
        now = engine.shardings[: len(self.stored)]
        self.index.store(now, self.stored)
        self.stored = now
        erase_dead([self.index.ops[number] for number in engine.erased])
        self.index.store_rules()


def erase_dead(ops: Sequence[Op]) -> None:
    """Erase the dead ops that are still there, users first. They are given in program order."""
    for op in reversed(ops):
        if op.block is not None:
            op.erase()
