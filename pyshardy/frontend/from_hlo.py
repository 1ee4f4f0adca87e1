"""Loads HLO: text and protocol buffers, as in dumps of XLA."""

from __future__ import annotations

import re

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.functions import main_function, result_attrs, result_count, set_result_attr
from pyshardy.ir.hlo import bytecode_of_hlo_proto, bytecode_of_hlo_text
from pyshardy.ir.hlo_attributes import HLO_SHARDING
from pyshardy.ir.module import Module
from pyshardy.ir.strings import string_of

_TEXT = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*HloModule\b", re.DOTALL)
_OPEN_RESULTS = re.compile(rb"\ballow_spmd_sharding_propagation_to_output=\{([a-z,]+)\}")
_SCHEDULED = re.compile(r"\bis_scheduled=true\b")


def is_hlo_text(text: str) -> bool:
    """Whether a text is an HLO module.

    >>> is_hlo_text("HloModule jit_f, num_partitions=8"), is_hlo_text("module @jit_f {}")
    (True, False)
    """
    return _TEXT.match(text) is not None


def load_hlo_text(text: str, name: str) -> bytes:
    """The StableHLO of HLO text, as bytecode; `name` is its name in messages.

    Raises:
        InvalidModuleError: It is not an HLO module, StableHLO cannot express it, or it is already compiled.
    """
    if _SCHEDULED.search(text.lstrip().partition("\n")[0]) is not None:
        raise InvalidModuleError(
            "reading a module",
            where=name,
            got="HLO that XLA has partitioned and scheduled: the program of one device",
            needed="the HLO before that, such as *.before_optimizations.txt",
        )
    return bytecode_of_hlo_text(text, name)


def load_hlo_proto(proto: bytes, name: str) -> bytes:
    """The StableHLO of a serialized `HloModuleProto`, as bytecode; `name` is its name in messages."""
    return bytecode_of_hlo_proto(proto, name)


def with_open_results(module: Module, content: bytes) -> Module:
    """The module without the shardings of results that HLO text leaves to propagation.

    If one result has a sharding, HLO gives all results one. Its first line tells which of them may change.

    Args:
        module: The module that was read from it.
        content: The HLO. Only text has this information.
    """
    match = _OPEN_RESULTS.search(content.partition(b"\n")[0])
    if match is None:
        return module
    flags = match[1].split(b",")
    root = module.copy_root()
    main = main_function(root)
    count = result_count(main)
    for index, flag in enumerate(flags * count if len(flags) == 1 else flags[:count]):
        if flag == b"true" and string_of(result_attrs(main, index).get(HLO_SHARDING)) == "{replicated}":
            set_result_attr(main, index, HLO_SHARDING, None)
    return module.with_root(root)
