"""Partitions a program with other annotations, and measures what they save."""

from __future__ import annotations

from collections.abc import Hashable

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.compilers import ACCELERATOR, assumed
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.peak import peak_bytes
from pyshardy.errors import ShardyError
from pyshardy.ir.cost_program import cost_program
from pyshardy.results.edit import edited_result
from pyshardy.results.edit_base import EditState
from pyshardy.results.hints.edits import AnnotationEdit, AnyEdit, Trial, device_work, is_better
from pyshardy.results.program_result import PerDevice
from pyshardy.results.sharded_program import shard


class Tries:
    """Tries annotations of one program.

    Annotations that propagate to the same shardings are partitioned once; those that change no sharding, never.

    Args:
        before: The program as it is.
        hardware: The chip whose memory is estimated; None for none in particular.

    Attributes:
        now: Its cost.
        partitioned: How often a program was partitioned.
    """

    def __init__(self, before: PerDevice, hardware: Hardware | None = None) -> None:
        self.before = before
        self._hardware = hardware
        self.now = self._trial(before)
        self.partitioned = 0
        self._edits: dict[AnyEdit, Trial | None] = {}
        self._states: dict[Hashable, Trial | None] = {_key(before.editing): None}

    def __call__(self, edit: AnyEdit) -> Trial | None:
        """The cost with an annotation; None if that is no better, or if the program cannot be partitioned with it."""
        if edit not in self._edits:
            self._edits[edit] = self._try(edit)
        return self._edits[edit]

    def _try(self, edit: AnyEdit) -> Trial | None:
        try:
            if not isinstance(edit, AnnotationEdit):
                self.partitioned += 1
                sharded, root = shard(edit.apply(self.before.before), self.before.sharded.options)
                return self._better(self.before.remade(sharded, root))
            edited = edited_result(self.before, [(edit.kind, index, edit.sharding) for index in edit.indices])
            key = edit if edited.state is None else _key(edited.state)
            if key not in self._states:
                self.partitioned += 1
                self._states[key] = None
                self._states[key] = self._better(edited.result)
        except ShardyError:
            return None
        return self._states[key]

    def _better(self, found: PerDevice) -> Trial | None:
        sent, work = found.traffic.sent_bytes_per_device, device_work(found.module.root)
        return self._trial(found) if is_better(sent, work, self.now) else None

    def _trial(self, found: PerDevice) -> Trial:
        root = found.module.root
        chip = self._hardware
        held = peak_bytes(cost_program(root, {}), ACCELERATOR if chip is None else assumed(chip))
        sent, name = found.traffic.sent_bytes_per_device, "" if chip is None else chip.name
        return Trial(sent, held, device_work(root), found.inputs, found.outputs, name)


def _key(state: EditState) -> Hashable:
    """The shardings that partitioning reads and that differ from the base; dimensions are compared as closed."""
    base = state.base.run.propagated.shardings
    pairs = [(value, _closed(base[value]), _closed(new)) for value, new in state.shardings.items()]
    return frozenset((value, new) for value, old, new in pairs if new != old)


def _closed(sharding: TensorSharding | None) -> TensorSharding | None:
    return None if sharding is None else sharding.without_priorities().closed()
