"""MLIR attributes from text that depends on the program."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.diagnostics import PassError, errors_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import is_utf8, readable


def read_attribute(op: Op, name: str, text: str) -> Any:
    """An attribute of an op, in the context that is entered.

    Args:
        op: The op.
        name: The attribute's name, for the message.
        text: Its text.

    Raises:
        PassError: The text is not UTF-8, or MLIR cannot read it.
    """
    if not is_utf8(text):
        raise PassError(op, f"has {name} = {readable(text)}, which is not UTF-8")
    with errors_of(ir.Context.current) as errors:
        try:
            return ir.Attribute.parse(text)
        except ir.MLIRError as error:
            raise PassError(op, f"has {name} = {readable(text)}, which cannot be read: {errors[0].message}") from error
