"""Padding of ops with regions, of functions and of calls.

Source: docs/semantics/partitioner.md#functions-and-calls
Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import (
    CALL,
    arg_sharding,
    functions,
    is_declaration,
    is_public,
    result_sharding,
    return_op,
    signature,
)
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.rules.properties import CONTROL_FLOW, IDENTITIES
from pyshardy.transforms.padding.padder import Padder

_WITH_ENTRY = frozenset(("stablehlo.while", "sdy.manual_computation", "sdy.named_computation"))
_HINT = "try -sdy-insert-explicit-reshards='enable-full-version=true' first"


def pad_signature(function: Op, padder: Padder) -> None:
    """The arguments of a function.

    Raises:
        PassError: The function can be called from outside and has an argument or result that is not divisible.
    """
    if is_declaration(function):
        return
    args = function.region.blocks[0].args
    returned = return_op(function).operands
    for kind, values, sharding_of in (("argument", args, arg_sharding), ("result", returned, result_sharding)):
        for index, value in enumerate(values):
            sharding = sharding_of(function, index)
            if is_divisible(value, sharding, padder):
                continue
            if is_public(function):
                raise PassError(
                    function,
                    f"has {kind} {index} of type {value.type} sharded as {sharding}, which is not divisible; try "
                    "-sdy-update-non-divisible-input-output-shardings first",
                )
            padder.functions.add(function.attrs["sym_name"])
    for arg in args:
        padder.pad_result(arg)


def is_divisible(value: Value, sharding: TensorSharding | None, padder: Padder) -> bool:
    """Whether a value needs no padding for a sharding."""
    shape = value.type.shape
    if sharding is None or shape is None or not value.type.is_ranked_tensor:
        return True
    return padder.padded_for(shape, sharding) == shape


def pad_region_op(op: Op, padder: Padder) -> None:
    """Pad the results and block arguments of an op with regions."""
    for result in op.results:
        padder.pad_result(result)
    for region in op.regions:
        for block in region.blocks:
            for arg in block.args:
                padder.pad_result(arg)


def pad_call(op: Op, padder: Padder) -> None:
    """Pad the results of a call if the function is padded."""
    for result in op.results:
        _pad_if(op.attrs["callee"] in padder.functions, result, padder)


def pad_carried(op: Op, padder: Padder) -> None:
    """Pad the results of an identity, or of an op of another dialect than StableHLO, if an operand is padded.

    Raises:
        PassError: An identity's own sharding needs another padding than its operand has.
    """
    is_padded = not padder.originals.keys().isdisjoint(op.operands)
    for result in op.results:
        _pad_if(is_padded, result, padder)
    if is_padded and op.name in IDENTITIES:
        _check(op, 0, op.operands[0], op.result.type.shape)


def pad_computation_args(op: Op, padder: Padder) -> None:
    """Pad the block arguments of a manual or named computation whose operands are padded."""
    for arg, operand in zip(op.region.block.args, op.operands):
        _pad_if(operand in padder.originals, arg, padder)


def pad_computation_results(op: Op, padder: Padder) -> None:
    """Pad the results of a manual or named computation whose returned values are padded."""
    computation = op.parent_op
    assert computation is not None
    for result, value in zip(computation.results, op.operands):
        _pad_if(value in padder.originals, result, padder)


def _pad_if(is_padded: bool, value: Value, padder: Padder) -> None:
    """Pad a value if its source is padded. If it is not, but the sharding needs padding, record it as unpadded."""
    if is_padded:
        padder.pad_result(value)
    elif value.type.is_ranked_tensor and padder.padded_shape(value) != value.type.shape:
        padder.unpadded.add(value)


def check_operands(op: Op, padder: Padder) -> None:
    """Check that an op takes no value that should have been padded.

    Raises:
        PassError: It takes one.
    """
    for index, value in enumerate(op.operands):
        if value in padder.unpadded:
            raise PassError(
                op,
                f"takes operand {index} of type {value.type}, sharded as {get_sharding(value)}, but its producer "
                f"does not pad it to a multiple of its shards; {_HINT}",
            )


def check_agreement(root: Op, padder: Padder) -> None:
    """Write the types of functions, and check that both sides of calls, returns and entries agree on the padding.

    Raises:
        PassError: A value is padded on one side only.
    """
    symbols = SymbolTable(root)
    for function in functions(root):
        if is_declaration(function):
            continue
        for index, value in enumerate(return_op(function).operands):
            if not value.type.is_ranked_tensor:
                continue
            sharding = result_sharding(function, index)
            needed = padder.original_shape(value) if sharding is None else padder.padded_shape(value, sharding)
            _check(return_op(function), index, value, needed)
        function.set_attr("function_type", tuple(signature(function)))
    for op in ops_named(root, {CALL} | _WITH_ENTRY | CONTROL_FLOW):
        if op.name == CALL:
            _check_call(op, symbols, padder)
        if op.name in _WITH_ENTRY:
            _check_entry(op)
        if op.name in CONTROL_FLOW:
            _check_exits(op)


def _check_call(op: Op, symbols: SymbolTable, padder: Padder) -> None:
    callee = symbols.callee(op)
    if is_declaration(callee):
        for index, value in enumerate(op.operands):
            _check(op, index, value, padder.originals.get(value, value.type).shape)
        return
    inputs, results = signature(callee)
    for index, (value, type) in enumerate(zip(op.operands, inputs)):
        _check(op, index, value, type.shape)
    for value, type in zip(op.results, results):
        if value.type is not type:
            raise PassError(op, f"gives result {value.index} as {value.type}, but the function returns {type}")


def _check_entry(op: Op) -> None:
    for region in op.regions:
        for arg in region.block.args:
            outer = op.operands[arg.index]
            if op.name == "sdy.manual_computation":
                continue
            _check(op, arg.index, outer, arg.type.shape)


def _check_exits(op: Op) -> None:
    for region in op.regions[1:] if op.name == "stablehlo.while" else op.regions:
        last = region.block.terminator
        for index, (value, result) in enumerate(zip(last.operands, op.results)):
            _check(last, index, value, result.type.shape)


def _check(op: Op, index: int, value: Value, needed: tuple[int, ...] | None) -> None:
    if value.type.is_ranked_tensor and value.type.shape != needed:
        raise PassError(
            op,
            f"takes operand {index} of type {value.type}, padded to a multiple of its shards, where the other side has "
            f"{needed}; {_HINT}",
        )
