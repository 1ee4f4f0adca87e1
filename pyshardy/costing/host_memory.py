"""Values in the memory of the host: they take no memory of a device, and copies to and from it take time.

JAX marks the places where a value moves: `jax.device_put` to a memory of kind `pinned_host`, and policies of
`jax.checkpoint` that offload. It also says which arguments are there. Slices, updates and states of loops stay where
their array is.
"""

from __future__ import annotations

from typing import Final

from pyshardy.costing.flat import BARRIER, BITCAST, Flat, FlatBlock, FlatOp
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.program import CostInput, CostKind, CostOp, CostTensor, OpTraffic
from pyshardy.rules.opspec import op_names

PLACEMENT: Final = "placement"
"""The fact of a custom call that moves a value: "host" or "device"."""
TO_HOST, FROM_HOST = "copy_to_host", "copy_from_host"
HOST_COPIES: Final = frozenset((TO_HOST, FROM_HOST))
_KEEPING = frozenset(
    [*op_names("stablehlo.", "dynamic_slice dynamic_update_slice slice reshape transpose copy"), BITCAST]
)
"""Ops whose result is where their first operand is."""
_UPDATE = "stablehlo.dynamic_update_slice"


def host_copy_seconds(traffic: OpTraffic, hardware: Hardware) -> float:
    """The time of a copy; 0 where the chip's file does not say how fast it is."""
    return 0.0 if hardware.host_bytes_per_s is None else traffic.sent_bytes / hardware.host_bytes_per_s


def with_host_memory(flat: Flat, inputs: tuple[CostInput, ...]) -> Flat:
    """A program in which values on the host have no bytes, and moves between memories are copies with traffic.

    Args:
        flat: The program.
        inputs: Its inputs, which say whether they are on the host.
    """
    given = {value for entry, value in zip(inputs, flat.body.arguments) if entry.is_on_host}
    if not given and not _has_moves(flat.body):
        return flat
    finder = _Finder(flat, given)
    while finder.block(flat.body):
        pass
    body = finder.rewritten(flat.body)
    tensors = [_without_bytes(one) if at in finder.hosts else one for at, one in enumerate(finder.tensors)]
    return flat._replace(tensors=tensors, body=body, uniform=flat.uniform - finder.hosts)


def _has_moves(block: FlatBlock) -> bool:
    return any(
        one.op.kind.fact(PLACEMENT) is not None or any(_has_moves(region) for region in one.inner) for one in block.ops
    )


def _without_bytes(tensor: CostTensor) -> CostTensor:
    return CostTensor(tensor.shape, tensor.dtype, 0)


class _Finder:
    """Finds the values on the host, as more of them become known."""

    def __init__(self, flat: Flat, given: set[int]) -> None:
        self.uniform, self.tensors, self.hosts = flat.uniform, list(flat.tensors), set(given)

    def block(self, block: FlatBlock) -> bool:
        """Look at all ops once; whether anything was found."""
        before = len(self.hosts)
        for one in block.ops:
            op = one.op
            placement = op.kind.fact(PLACEMENT)
            if placement is not None:
                self.hosts.update(op.results if placement == "host" else ())
            elif op.is_loop:
                self._loop(one)
            elif one.inner:
                for region in one.inner:
                    self.block(region)
                    self.hosts.update(
                        result for result, value in zip(op.results, region.results) if value in self.hosts
                    )
            elif op.kind.name == BARRIER:
                self.hosts.update(after for value, after in zip(op.operands, op.results) if value in self.hosts)
            elif op.kind.name in _KEEPING:
                sources = op.operands[: 2 if op.kind.name == _UPDATE else 1]
                if self.hosts.intersection(sources):
                    self.hosts.update(op.results)
        return len(self.hosts) > before

    def _loop(self, one: FlatOp) -> None:
        condition, body = one.inner
        for place, operand in enumerate(one.op.operands):
            state = (condition.arguments[place], body.arguments[place], body.results[place], one.op.results[place])
            if operand in self.hosts or self.hosts.intersection(state):
                self.hosts.update(state)
        self.block(condition)
        self.block(body)

    def rewritten(self, block: FlatBlock) -> FlatBlock:
        """A block with copies, and with fills of their own for states on the host."""
        fills = {
            one.op.results[0]: one for one in block.ops if one.op.results[:1] and one.op.results[0] in self.uniform
        }
        ops: list[FlatOp] = []
        for one in block.ops:
            op = one.op
            if one.inner:
                one = one._replace(inner=tuple([self.rewritten(region) for region in one.inner]))
            if op.is_loop:
                operands = list(op.operands)
                for place, value in enumerate(operands):
                    if one.inner[1].arguments[place] in self.hosts and value in fills and value not in self.hosts:
                        operands[place] = self._new(self.tensors[value])
                        fill = fills[value]
                        ops.append(fill._replace(op=fill.op._replace(results=(operands[place],))))
                one = one._replace(op=op._replace(operands=tuple(operands)))
            elif op.kind.fact(PLACEMENT) is not None:
                one = one._replace(op=self._copied(op))
            ops.append(one)
        return block._replace(ops=tuple(ops))

    def _new(self, tensor: CostTensor) -> int:
        self.tensors.append(tensor)
        self.hosts.add(len(self.tensors) - 1)
        return len(self.tensors) - 1

    def _copied(self, op: CostOp) -> CostOp:
        """A move as a copy; one within a memory does nothing."""
        is_from, is_to = op.operands[0] in self.hosts, op.results[0] in self.hosts
        if is_from == is_to:
            return op._replace(kind=CostKind(BITCAST, op.kind.operands, op.kind.results))
        size = self.tensors[op.operands[0]].bytes
        return op._replace(traffic=OpTraffic(FROM_HOST if is_from else TO_HOST, None, None, 1, size, size, size))
