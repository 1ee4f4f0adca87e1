"""Refuses programs of dialects that no engine knows."""

from __future__ import annotations

from pyshardy.errors import InvalidModuleError, ShardyError
from pyshardy.ir.module import Module

_NOWHERE = ":0:0"
"""The end of the location of an error that is at no op."""


def check_known(module: Module, doing: str) -> None:
    """Raise an error if the module has ops, types or attributes of unregistered dialects.

    XLA refuses them as well, but prints the reason to standard error instead of returning it.

    Args:
        module: The program.
        doing: What is being done, for the error.

    Raises:
        ShardyError: There is such an op, type or attribute; says which and where.
    """
    if not module.context.allow_unregistered_dialects:
        return
    try:
        Module.parse(module.bytecode())
    except InvalidModuleError as error:
        where = None if error.where is None or error.where.endswith(_NOWHERE) else error.where
        reason = (error.got or "").partition(". If this is intended")[0]
        needed = "dialects that XLA knows, such as StableHLO"
        raise ShardyError(doing, where=where, got=reason, needed=needed) from error
