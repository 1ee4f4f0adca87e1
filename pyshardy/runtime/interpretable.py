"""Rewrites per-device programs for StableHLO's interpreter."""

from __future__ import annotations

from jaxlib.mlir import ir

from pyshardy.errors import ShardyError
from pyshardy.ir.functions import calls, functions
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.symbols import post_order
from pyshardy.passes.importing.flatten_call_graph import FlattenCallGraph
from pyshardy.passes.pipeline import run_on_root
from pyshardy.runtime.device_lists import list_devices
from pyshardy.transforms.channels import CHANNEL, Channels

_LOOP = "stablehlo.while"


def make_interpretable(root: Op, module: Module) -> None:
    """Rewrite products and replica groups into the forms that the interpreter supports.

    The interpreter keeps the data of each channel for ever, so a collective that runs twice would get old data.
    Therefore every call gets its own function, and every collective its own channel. Collectives in loops are refused.

    Args:
        root: The module to change.
        module: The module that it comes from.

    Raises:
        ShardyError: A collective in a loop.
    """
    run_on_root(module, root, [FlattenCallGraph()])
    with module.context:
        channels = Channels(root, module.attrs)
        repeated = _called_in_loops(root)
        for function in functions(root):
            for op in walk(function):
                if op.name == "stablehlo.dot":
                    _make_general(op)
                elif CHANNEL in op.attrs:
                    _check_runs_once(op, function in repeated)
                    op.set_attr(CHANNEL, channels.next())
        list_devices(root, module)


def _called_in_loops(root: Op) -> set[Op]:
    """The functions that a loop calls, directly or indirectly; every function has at most one call."""
    callers = {call.attrs["callee"]: call for call in calls(root)}
    found: set[Op] = set()
    for function in reversed(post_order(root)):
        call = callers.get(function.attrs["sym_name"])
        if call is not None and (call.enclosing(_LOOP) or call.enclosing("func.func") in found):
            found.add(function)
    return found


def _check_runs_once(op: Op, is_repeated: bool) -> None:
    if is_repeated or op.enclosing(_LOOP) is not None:
        raise ShardyError(
            "running a program in the interpreter",
            where=format_location(op.location),
            got=f"a {op.name} that runs several times",
            needed="collectives outside of loops, because the interpreter returns old data the second time",
            hint="another engine",
        )


def _make_general(op: Op) -> None:
    last = len(op.operands[0].type.shape or ()) - 1
    numbers = f"lhs_contracting_dimensions = [{last}], rhs_contracting_dimensions = [0]"
    op.rename("stablehlo.dot_general")
    op.set_attr("dot_dimension_numbers", ir.Attribute.parse(f"#stablehlo.dot<{numbers}>"))
