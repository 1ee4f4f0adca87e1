"""`sdy-per-instruction-partitioning`: partitions every op on its own.

Source: docs/semantics/partitioner.md#one-op-at-a-time
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxlib.mlir import ir

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions, is_declaration, is_public
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.table import pass_of
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.single_op_module import partition_alone

_NEVER = frozenset(
    (
        "sdy.data_flow_edge", "sdy.manual_computation", "sdy.mesh", "sdy.propagation_barrier",
        "sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced", "sdy.return", "sdy.sharding_constraint",
        "sdy.sharding_group", "mhlo.copy",
    )
)  # fmt: skip
_MARKERS = frozenset(("Sharding", "mhlo.sharding"))
"""Custom calls that annotate a value with a sharding and compute nothing."""


class PerInstructionPartitioning(Pass):
    """Partition the ops of one function one by one, each into a manual computation, to find out which one fails.

    Between the ops, values keep their global types.

    Attributes:
        filter: Which ops to partition, as a list separated by commas. `selectLow=N` and `selectHigh=N` bound their
            numbers, `func=NAME` chooses the function, and any other text is a part of an op's name. If empty, all ops.
        enable_halo_exchange: Whether devices exchange halos with their neighbours.
        replica_count: The number of replicas. If there are several, the replica id identifies a device.
        partition_count: The number of partitions; only one of the two counts can exceed 1.
        rng_bit_generator_unsafe: Whether random tensors may stay sharded; their elements then depend on the sharding.
    """

    filter: str = ""
    enable_halo_exchange: bool = True
    replica_count: int = 1
    partition_count: int = 1
    rng_bit_generator_unsafe: bool = True

    name = "sdy-per-instruction-partitioning"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        selection = Selection.parse(self.filter)
        function = target_function(op, selection.function)
        if is_declaration(function):
            return
        passes = self._passes()
        current = ir.Context.current
        assert current is not None, "run_on_root enters it"

        def partition(module: Op) -> None:
            run_on_root(Module(current, context.attrs, root=module), module, passes, context.diagnostics)

        for number, ops in enumerate(list(candidates(function))):
            if selection.has(number, ops[0].name):
                partition_alone(ops, context, partition)

    def _passes(self) -> list[Pass]:
        counts = {"replica_count": self.replica_count, "partition_count": self.partition_count}
        return [
            pass_of(
                "sdy-resolve-permutation-factors",
                enable_halo_exchange=self.enable_halo_exchange,
                rng_bit_generator_unsafe=self.rng_bit_generator_unsafe,
                **counts,
            ),
            pass_of("sdy-reshard-to-collectives"),
            pass_of("sdy-optimize-collectives"),
            pass_of("canonicalize", enable_patterns="sdy-collective", top_down=False),
            pass_of("sdy-pad-for-divisibility"),
            pass_of("sdy-convert-global-to-local", **counts),
            pass_of("sdy-drop-sharding-and-mesh"),
        ]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which ops of which function are partitioned.

    Attributes:
        function: The name of the function; None for the main one.
        low: The smallest number.
        high: The largest number; None for no bound.
        names: Parts of names; an op is selected if its name contains one of them, or if there are none.
    """

    function: str | None = None
    low: int = 0
    high: int | None = None
    names: tuple[str, ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> Selection:
        """A selection from the text of the option.

        >>> Selection.parse("selectLow=2,dot,func=f")
        Selection(function='f', low=2, high=None, names=('dot',))
        """
        function, bounds, names = None, dict[str, int](), list[str]()
        for part in filter(None, map(str.strip, text.split(","))):
            key, _, value = part.partition("=")
            if key in ("func", "function"):
                function = value
            elif key not in ("selectLow", "selectHigh"):
                names.append(part)
            elif value.isdecimal():
                bounds[key] = int(value)
        return cls(function, bounds.get("selectLow", 0), bounds.get("selectHigh"), tuple(names))

    def has(self, number: int, name: str) -> bool:
        """Whether the op with this number and name is selected."""
        if number < self.low or (self.high is not None and number > self.high):
            return False
        return not self.names or any(part in name for part in self.names)


def target_function(root: Op, name: str | None) -> Op:
    """The function of this name; without a name the only function, `main`, or the first public one.

    Raises:
        PassError: There is none.
    """
    found = list(functions(root))
    if name is not None:
        wanted = [function for function in found if function.attrs["sym_name"] == name]
    elif len(found) == 1:
        wanted = found
    else:
        main = [function for function in found if function.attrs["sym_name"] == "main"]
        wanted = main or [function for function in found if is_public(function)]
    if not wanted:
        names = ", ".join(format_symbol(function.attrs["sym_name"]) for function in found) or "none"
        needed = f"the function @{name}" if name is not None else "a single, public or main function"
        raise PassError(root, f"lacks {needed}, whose ops would be partitioned; it has {names}")
    return wanted[0]


def candidates(function: Op) -> Iterator[list[Op]]:
    """The ops to partition one by one; a convolution and the all-reduce of its result count as one."""
    for op in function.region.blocks[0]:
        if op.is_terminator or op.name in _NEVER or _is_marker(op) or _completes_convolution(op):
            continue
        if not any(_is_sharded(get_sharding(value)) for value in (*op.operands, *op.results)):
            continue
        user = op.result.only_user() if len(op.results) == 1 else None
        yield [op] if user is None or not _completes_convolution(user) else [op, user]


def _is_marker(op: Op) -> bool:
    return op.name == "stablehlo.custom_call" and str(op.attrs["call_target_name"]).strip('"') in _MARKERS


def _is_sharded(sharding: TensorSharding | None) -> bool:
    return sharding is not None and not sharding.is_fully_replicated


def _completes_convolution(op: Op) -> bool:
    """Whether the op all-reduces the partial result of a convolution."""
    if op.name != "sdy.all_reduce":
        return False
    source = op.operands[0].defining_op
    if source is None or source.name != "stablehlo.convolution":
        return False
    sharding = get_sharding(source.result)
    return sharding is not None and bool(sharding.unreduced)
